"""How much of the running query is sent, whatever its results and its budget (CONTRACT 6, "The window")."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.codec import dump, load
from dualtrack.frozen import freeze
from dualtrack.memory.blocks import SentResult
from dualtrack.memory.budget import (
    LEAST_QUERY,
    OWN_EXTRACT,
    STEPS,
    fair_shares,
    fit,
    room_for,
    smaller,
)
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.extracts import EXTRACT_LIMIT
from dualtrack.memory.records import TrackBlock
from dualtrack.memory.refused_files import without_files
from dualtrack.memory.sending import Cuts, ResultCut, Sending
from dualtrack.memory.view import PastTurn, View, build
from dualtrack.models.thinking import Thinking
from dualtrack.models.turn import ToolCall
from dualtrack.models.windows import context_window
from dualtrack.profiles import all_profiles
from dualtrack.text import cautious_tokens, within_tokens
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERY = TrackBlock("q1", "user", "What is it?", "2026-11-22T00:00:00.000Z")
IMAGE = MappingProxyType({"media_type": "image/png", "data": "aGk="})
PDF = MappingProxyType({"media_type": "application/pdf", "data": "aGk="})
LONG = "word " * 20_000


def turn(number: int, results: Sequence[SentResult]) -> PastTurn:
    """A turn that thought and called a tool for each result."""
    calls = tuple(
        ToolCall(f"q1-t{number * 100 + index}", f"toolu_{number}_{index}", "search", freeze({}))
        for index in range(len(results))
    )
    said: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Hm. " * 20, "signature": "sig"}]
    said += [{"type": "tool_use", "id": call.tool_use_id, "name": "search", "input": {}} for call in calls]
    brought = MappingProxyType({call.id: result for call, result in zip(calls, results, strict=True)})
    return PastTurn(freeze(said), calls, brought)


def turn_by_turn(rounds: Sequence[Sequence[SentResult]], room: int, query: View | None = None) -> list[View]:
    """The views of a query's calls, each with the cuts of the one before, as they are stored."""
    views = [fit(query or View((), QUERY), room)]
    for number, results in enumerate(rounds, start=1):
        before = load(Sending, dump(Sending(views[-1].cuts))).cuts
        turns = (*views[-1].turns, turn(number, results))
        views.append(fit(replace(views[-1], turns=turns, cuts=before), room))
    return views


def tokens(view: View) -> int:
    return message_tokens(build(view).messages)


def plain(view: View) -> list[str]:
    """The messages as text, without cache breakpoints."""
    return [
        json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "")
        for message in build(view).messages
    ]


TEXTS = st.one_of(
    st.integers(0, 2_000).map(lambda count: "word " * (count // 5)),
    st.integers(0, 200_000).map(lambda count: "word " * (count // 5)),
    st.integers(0, 30_000).map(lambda count: "文" * count),
    st.integers(0, 30_000).map(lambda count: "[ID:\n" * (count // 5)),
)
RESULTS = st.builds(
    SentResult, TEXTS, st.booleans(), st.lists(st.sampled_from([IMAGE, PDF]), max_size=3).map(tuple)
)
ROUNDS = st.lists(st.lists(RESULTS, min_size=1, max_size=6), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(rounds=ROUNDS, room=st.integers(-5_000, 150_000))
def test_a_view_is_within_the_budget_or_minimal(rounds: list[list[SentResult]], room: int) -> None:
    before: View | None = None
    for view in turn_by_turn(rounds, room):
        assert tokens(view) <= room or is_least(view)
        blocks = [block for message in build(view).messages for block in message["content"]]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert answered == [call.tool_use_id for past_turn in view.turns for call in past_turn.calls]
        assert fit(view, room) == view
        if before:
            assert_goes_on(before, view)
        before = view


def is_least(view: View) -> bool:
    """Only extracts, and no files."""
    return all(cut.files == 0 and cut.characters <= OWN_EXTRACT for cut in view.cuts.results.values())


def assert_goes_on(before: View, view: View) -> None:
    """What was sent is unchanged, but for the one step in which old results become extracts."""
    old = {call_id: view.cuts.results[call_id] for call_id in before.cuts.results}
    for call_id, cut in before.cuts.results.items():
        assert old[call_id] in (cut, replace(cut, files=0), ResultCut(EXTRACT_LIMIT))
    if old == before.cuts.results and view.cuts.without_thinking == before.cuts.without_thinking:
        assert plain(view)[: len(plain(before))] == plain(before)
    else:
        assert view.cuts.without_thinking
        assert "signature" not in "".join(plain(view))


def test_results_of_one_turn_share_the_rest_and_say_how_to_read_on() -> None:
    """Small ones are sent whole, big ones get equal shares."""
    view = turn_by_turn(
        [[SentResult("short"), SentResult(LONG), SentResult(LONG), SentResult("x" * 3_000)]], 20_000
    )[-1]
    first, second, third, last = (cut.characters for cut in view.cuts.results.values())
    assert (first, last) == (5, 3_000)
    assert abs(second - third) < 10
    assert 18_500 < tokens(view) <= 20_000
    text = build(view).messages[-1]["content"][1]["content"][0]["text"]
    assert text.endswith(
        f"\n\n(Cut after {second} of 100000 characters. Read on with retrieve_full_context "
        f'{{"id": "q1-t101", "offset": {second}}}.)'
    )


def test_a_full_budget_is_emptied_by_a_third_in_one_step() -> None:
    room = 90_000
    views = turn_by_turn([[SentResult(LONG), SentResult(LONG)]] * 8, room)
    steps = [
        (before, view)
        for before, view in pairwise(views)
        if any(view.cuts.results[result] != cut for result, cut in before.cuts.results.items())
    ]
    assert 1 <= len(steps) <= 6
    for before, view in steps:
        new = [call.id for call in view.turns[-1].calls]
        old = replace(view, turns=view.turns[:-1], cuts=view.cuts)
        assert tokens(before) - tokens(old) >= room // 3
        assert all(view.cuts.results[result].characters > 10 * EXTRACT_LIMIT for result in new)
    extract = build(views[-1]).messages[2]["content"][0]["content"][0]["text"]
    assert extract.startswith("[ID:q1-t100] word word")
    assert '"id": "q1-t100", "offset": 300' in extract
    assert len(extract) < 500


def test_files_that_do_not_fit_are_counted() -> None:
    view = turn_by_turn([[SentResult("a", media=(IMAGE,) * 9)]], 12_000)[-1]
    assert view.cuts.results["q1-t100"] == ResultCut(1, 5)
    assert build(view).messages[-1]["content"][0]["content"][-1]["text"] == (
        "(Files of this result that could not be shown here: 4.)"
    )


def test_the_text_of_a_query_is_cut_last() -> None:
    """Its files are dropped first, one by one; then its text is cut to its beginning."""
    query = View((), replace(QUERY, content="x" * 32_000), attachments=(IMAGE, PDF, PDF))
    shown = [
        (view.cuts.attachments, view.cuts.query)
        for view in (fit(query, room) for room in (60_000, 26_000, 16_000, 10_000, 100, -9_000))
    ]
    assert shown[:3] == [(3, None), (2, None), (1, None)]
    files, words = shown[3]
    assert files == 0
    assert words is not None
    assert LEAST_QUERY < words < 32_000
    assert shown[4:] == [(0, LEAST_QUERY)] * 2
    said = build(fit(query, 16_000)).messages[0]["content"]
    assert said[-1]["text"] == "(Files of this query that could not be shown here: 2.)"


def test_a_turn_of_an_earlier_release_is_sent_as_before() -> None:
    """It has no cuts: its results went up to the profile's limit, with as many files as a request holds."""
    turns = (turn(1, [SentResult("y" * 150_000, media=(IMAGE,))]), turn(2, [SentResult("new")]))
    view = View((), QUERY, turns=turns)
    before = plain(replace(view, turns=turns[:1]))
    fitted = fit(view, 80_000)
    assert fitted.cuts.results == {"q1-t100": ResultCut(100_000, 1), "q1-t200": ResultCut(3)}
    assert plain(fitted)[:3] == before


def test_each_try_is_smaller_and_the_newest_results_come_first() -> None:
    """They were never sent; if older ones must be cut, the thinking is dropped, too."""
    view = turn_by_turn([[SentResult("old " * 5_000)], [SentResult(LONG), SentResult("short")]], 90_000)[-1]
    steps, tries = iter(STEPS), [view]
    while (less := smaller(tries[-1], steps)) is not None:
        tries.append(less)
    assert [tokens(attempt) for attempt in tries] == sorted(
        {tokens(attempt) for attempt in tries}, reverse=True
    )
    _, newest, older, least = tries
    assert plain(newest)[:-1] == plain(view)[:-1]
    assert not newest.cuts.without_thinking
    assert 3_000 < newest.cuts.results["q1-t200"].characters < 100_000
    assert newest.cuts.results["q1-t201"].characters == 5
    assert older.cuts.without_thinking
    assert older.cuts.results["q1-t100"].characters == EXTRACT_LIMIT
    assert is_least(least)


def test_the_minimal_view_has_no_files_and_the_beginning_of_the_query() -> None:
    view = fit(View((), replace(QUERY, content="x" * 9_000), attachments=(PDF,)), 90_000)
    least = smaller(view, iter(STEPS))
    assert least is not None
    assert (least.cuts.query, least.cuts.without_files) == (LEAST_QUERY, True)
    assert smaller(least, iter(STEPS)) is None


def test_files_that_were_refused_are_left_out_from_then_on() -> None:
    view = without_files(turn_by_turn([[SentResult("a", media=(IMAGE,))]], 90_000)[-1])
    later = fit(replace(view, turns=(*view.turns, turn(2, [SentResult("b", media=(IMAGE,))]))), 90_000)
    assert build(later).files == 0
    assert plain(later)[:3] == plain(view)


@pytest.mark.parametrize(
    ("reported", "room"), [(0, 87_404), (10_000, 87_404), (20_000, 42_202), (90_000, 42_202), (1, 114_525)]
)
def test_the_services_count_corrects_the_estimate(reported: int, room: int) -> None:
    """Within bounds: an implausible count changes little."""
    profile = all_profiles()["assistant"]
    last = Sending(Cuts(), 10_000, reported)
    assert room_for(profile, "claude-haiku-5-5", Thinking(), 3_000, last) == room


def test_the_window_of_the_model_and_the_room_for_an_answer_bound_the_budget() -> None:
    profile = all_profiles()["assistant"]
    large = replace(profile, context_tokens=900_000)
    assert room_for(large, "claude-haiku-4-5", Thinking(8_000), 0, Sending()) == 200_000 - 4_596 - 8_000
    assert room_for(large, "claude-haiku-5-5", Thinking(8_000), 0, Sending()) == 900_000 - 4_596
    small = replace(profile, context_tokens=20_000, max_tokens=64_000)
    assert room_for(small, "claude-haiku-5-5", Thinking(8_000), 0, Sending()) == 5_000
    windows = {"claude-opus-5-5": 1_000_000, "anthropic.claude-sonnet-5": 1_000_000, "some-model": 200_000}
    assert {name: context_window(name) for name in windows} == windows


@given(needs=st.lists(st.integers(0, 1_000)), room=st.integers(-10, 5_000))
def test_shares_are_fair(needs: list[int], room: int) -> None:
    shares = fair_shares(needs, room)
    assert sum(shares) <= max(room, 0)
    assert all(share <= need for share, need in zip(shares, needs, strict=True))
    short = [share for share, need in zip(shares, needs, strict=True) if share < need]
    if short:
        assert max(shares) <= max(short) + 1
        assert max(short) - min(short) <= 1


@given(text=st.text(), tokens=st.integers(-1, 50))
def test_a_text_is_cut_to_a_number_of_tokens(text: str, tokens: int) -> None:
    length = within_tokens(text, tokens)
    assert cautious_tokens(text[:length]) <= max(tokens, 0)
    assert length == len(text) or cautious_tokens(text[: length + 1]) > tokens
