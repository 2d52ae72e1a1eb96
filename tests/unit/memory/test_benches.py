"""The measuring code of the memory benches."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from dualtrack.memory.notes import read_notes

from bench.memory_kinds import KINDS, conversation
from bench.note_writers.writers import WRITERS, Asked
from bench.other_memories import (
    Exchange,
    Service,
    cleared_tool_uses,
    compaction,
    full_history,
    last_exchanges,
    pause_before,
)
from tests.drivers.long_memory import Resent, picture, prose, query_starts, resent
from tests.servers.metered_model import Call, measured, serve_metered_model

TOOLS = [{"name": "kit_page", "description": "A page.", "input_schema": {"type": "object"}}]
FIRST = {"model": "claude-haiku-5-5", "max_tokens": 100, "system": "Be brief.", "tools": TOOLS}
EXCHANGES = tuple(
    Exchange(
        number,
        f"query {number}",
        (prose(f"a {number}", 9_000), prose(f"b {number}", 9_000)),
        prose(f"c {number}", 2_000),
    )
    for number in range(1, 9)
)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.3, 30), (1.0, 100)])
def test_pauses_are_spread_evenly(share: float, count: int) -> None:
    pauses = [pause_before(query, 360.0, share) for query in range(1, 101)]
    assert abs(pauses.count(360.0) - count) <= 1
    assert all(abs(pauses[start : start + 20].count(360.0) - 20 * share) <= 2 for start in range(80))


def start(*texts: str) -> Call:
    """A query's first call: the part of the past that is sent, and the query."""
    said = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]
    return measured({**FIRST, "stream": True, "messages": said})


def test_tokens_resent_outside_the_prefix_are_counted_apart_from_folds() -> None:
    first = start("[ID:q1] m-1: one")
    second = start("[ID:q1] m-1: one", "[ID:q1-r-sum] 4444 8888", "[ID:q2] m-2: two")
    assert resent([first, second]) == Resent(starts=2)
    late = start("[ID:q1] m-1: one", "[ID:q1-t1-sum] late", "[ID:q1-r-sum] 4444 8888", "[ID:q2] m-2: two")
    broken = resent([first, second, late])
    assert (broken.broken, broken.folds) == (1, 0)
    assert broken.between == sum(block.tokens for block in second.blocks[1:])
    folded = resent(
        [first, second, start("[ID:d1, ref:q1..q1] short", "[ID:q2] m-2: two", "[ID:q3] m-3: three")]
    )
    assert (folded.broken, folded.between, folded.folds) == (0, 0, 1)
    assert folded.at_folds == second.blocks[-1].tokens


def test_a_query_starts_with_its_first_call_alone() -> None:
    first, again = start("[ID:q1] m-1: one"), start("[ID:q1] m-1: one")
    other = start("[ID:q1] somebody else's")
    assert query_starts([first, again, other], "m") == [first]


def test_cautious_tokens_and_files_are_counted_within_results() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    brought: list[dict[str, Any]] = [{"type": "text", "text": "x" * 4_000}, image]
    asked = {"type": "tool_use", "id": "t", "name": "kit_page", "input": {}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [asked]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": brought}]},
    ]
    call = measured({**FIRST, "messages": messages})
    assert call.media == 1
    assert 1_300 + 2_100 < call.cautious < 1_300 + 2_100 + 100
    assert 1_000 + 1_500 < call.counted < call.cautious


def test_the_meter_records_usage_and_refusals() -> None:
    with serve_metered_model() as model:
        body = {**FIRST, "messages": [{"role": "user", "content": "Hello."}]}
        headers = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
        httpx.post(f"{model.url}/v1/messages", json=body, headers=headers)
        httpx.post(f"{model.url}/v1/messages", json=body | {"stream": True}, headers=headers)
        httpx.post(f"{model.url}/v1/messages", json=body | {"max_tokens": 10**9}, headers=headers)
        plain, streamed, refused = model.calls
    assert plain.usage["input_tokens"] == streamed.usage["input_tokens"] == plain.counted
    assert plain.output_tokens == streamed.output_tokens > 0
    assert refused.refused.startswith("max_tokens")


def test_full_history_reads_its_past_from_the_cache_until_the_window_is_full() -> None:
    done = full_history(Service(FIRST, 1_000_000), EXCHANGES)
    last = done.charges[-1][0]
    assert last.read > 0.9 * last.tokens
    assert (done.recalled, done.old) == (14, 14)
    full = full_history(Service(FIRST, 20_000), EXCHANGES)
    assert full.ended.startswith("query 5: ")
    assert len(full.charges) == 4


@pytest.mark.parametrize(
    ("way", "expected"),
    [(last_exchanges, 0), (cleared_tool_uses, 1), (compaction, 2)],
    ids=["window", "clearing", "compaction"],
)
def test_how_much_other_policies_keep_of_old_results(way: Any, expected: int) -> None:
    done = way(Service(FIRST, 1_000_000), EXCHANGES)
    assert (done.recalled, done.old) == (expected, 14)
    assert not done.ended


def test_pictures_have_their_size_and_prose_is_exact() -> None:
    data = picture("a", 500_000)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert 490_000 < len(data) < 510_000
    assert [len(prose("a", size)) for size in (1, 80, 32_000)] == [1, 80, 32_000]
    assert prose("a", 500) == prose("a", 500) != prose("b", 500)


def test_a_pause_before_each_query_loses_the_cached_history() -> None:
    warm, paused = (full_history(Service(FIRST, 1_000_000, pause), EXCHANGES) for pause in (0.0, 360.0))
    assert [query[0].read > 0 for query in warm.charges] == [False, *[True] * 7]
    assert [query[0].read > 0 for query in paused.charges] == [False] * 8
    assert all(query[1].read > 0 for query in paused.charges[1:]), (
        "its second call reads what its first has written"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_the_lengths_that_it_names(kind: str) -> None:
    """And a longer conversation begins with the queries of a shorter one."""
    bounds, exchanges = KINDS[kind], conversation(kind, 4)
    assert exchanges[:2] == conversation(kind, 2)
    for exchange in exchanges:
        assert len(exchange.results) == bounds.tools
        assert all(bounds.results[0] <= len(text) <= bounds.results[1] for text in exchange.results)
        assert bounds.answer[0] <= len(exchange.answer) <= bounds.answer[1]


def test_a_query_without_tools_is_one_call() -> None:
    exchanges = conversation("no tools, answers 400", 3)
    assert [len(query) for query in full_history(Service(FIRST, 1_000_000), exchanges).charges] == [1, 1, 1]
    assert last_exchanges(Service(FIRST, 1_000_000), exchanges).ended == ""


@pytest.mark.parametrize(
    ("writer", "noted"),
    [*zip(WRITERS, (("t1", "t2", "t3"), ("t1", "t2"), (), *[("t1", "t2", "t3")] * 5, ("t1",)), strict=True)],
)
def test_whoever_writes_the_notes_no_word_of_the_answer_is_lost(writer: str, noted: tuple[str, ...]) -> None:
    ids, mark = tuple(f"q1-t{place}" for place in (1, 2, 3)), "[[notes:00000000]]"
    lines = tuple(f"{each}: it says that {'much ' * 10}of it is blue." for each in ids)
    text = WRITERS[writer](Asked("The sky is blue, and so is the sea.", mark, lines))
    answer, notes, _ = read_notes(text, mark, ids, cut=writer == "cut off in the middle")
    assert " ".join(answer.split()).startswith("The sky is blue, and so is the sea.")
    assert tuple(notes) == tuple(f"q1-{each}" for each in noted)
