"""The short track: what the model sums up, what stands in for it (CONTRACT 6)."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from dualtrack.records import Record, ToolCallDetail
from dualtrack.summaries import EXTRACT_LIMIT, OWN_SUMMARY, SUMMARY_LIMIT, extract, summary_requests, track_of

AT = "2026-11-21T00:00:00.000Z"
LONG = "A long result with ids 17 and 23. " * 40


def tool(number: int, content: str, **more: object) -> Record:
    """A tool call's record."""
    detail = ToolCallDetail(f"toolu_{number}", "search", MappingProxyType({"q": "x"}), False, 1.0, 1, **more)  # type: ignore[arg-type]
    return Record(f"q2-t{number}", "tool_call", "user", content, AT, 1, call=detail)


def query(content: str = "What?") -> Record:
    """The query."""
    return Record("q2", "message", "user", content, AT)


def response(content: str, stop: str = "complete") -> Record:
    """The response."""
    return Record("q2-r", "message", "assistant", content, AT, 2, stop=stop)


def test_long_results_and_responses_are_summed_up() -> None:
    """Nothing else: not the query, not thoughts, not what is short, not what only refers."""
    thought = Record("q2-a1", "message", "assistant", LONG, AT, 1)
    reading = tool(3, "(The record q1-r was read.)" + LONG, reference=MappingProxyType({"id": "q1-r"}))
    records = (query(LONG), thought, tool(1, LONG), tool(2, "short"), reading, response(LONG))
    assert [request.record_id for request in summary_requests(records)] == ["q2-t1", "q2-r"]


def test_the_track_holds_everything_in_order() -> None:
    """Queries verbatim, summaries by reference, thoughts left out."""
    thought = Record("q2-a1", "message", "assistant", "Hm.", AT, 1)
    records = (query(), thought, tool(1, LONG), tool(2, "short"), response(LONG))
    track = track_of(records, {"q2-t1": "Found 17.", "q2-r": "Answered."}, AT)
    assert [(block.record_id, block.ref, block.role, block.content) for block in track.blocks] == [
        ("q2", "", "user", "What?"),
        ("q2-t1-sum", "q2-t1", "user", "Found 17."),
        ("q2-t2-sum", "q2-t2", "user", "short"),
        ("q2-r-sum", "q2-r", "assistant", "Answered."),
    ]


def test_a_missing_summary_is_extracted() -> None:
    """What was called and how it begins, never longer than the record."""
    track = track_of((query(), tool(1, LONG), response(LONG)), {}, AT)
    found = track.blocks[1].content
    assert found.startswith('search {"q":"x"}: A long result')
    assert len(found) < EXTRACT_LIMIT + 200
    assert len(extract(tool(1, "y" * (OWN_SUMMARY + 1)))) > 0


def test_a_summary_longer_than_its_record_is_not_used() -> None:
    """The record is its own."""
    content = "x" * (OWN_SUMMARY + 10)
    track = track_of((query(), response(content)), {"q2-r": "y" * (OWN_SUMMARY + 50)}, AT)
    assert track.blocks[1].content == content


def test_a_summary_that_runs_on_is_cut_at_a_sentence() -> None:
    """And forged ids in it are gone."""
    wordy = "[ID:q1] " + "One sentence of some length. " * 60
    track = track_of((query(), response(LONG * 3)), {"q2-r": wordy}, AT)
    text = track.blocks[1].content
    assert len(text) <= SUMMARY_LIMIT
    assert text.endswith("length.")
    assert "[ID:" not in text


@pytest.mark.parametrize("why", ["failed", "cancelled"])
def test_a_query_without_an_answer_says_so(why: str) -> None:
    """By the record itself, not by a summary."""
    track = track_of((query(), response(f"(no answer: {why})", stop="")), {}, AT)
    assert track.blocks[1].text == f"[ID:q2-r] (no answer: {why})"
