"""When summaries pay: the decision, on values (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dualtrack.memory.joint_summaries import MOST_AT_ONCE, LastCall
from dualtrack.memory.records import CallSums, QueryTrack, Record
from dualtrack.memory.summaries import SummaryRequest
from dualtrack.memory.when_they_pay import (
    Summariser,
    WholeQuery,
    batch,
    newest_pace,
    read_price,
    whole_query,
)
from dualtrack.models.prices import Rates
from dualtrack.models.turn import Usage
from hypothesis import given
from hypothesis import strategies as st

MODEL = "claude-haiku-5-5"
AT = "2026-11-23T00:00:00.000Z"
READ, WRITE = 0.05, 1.25
RATES = Rates(1, 5, READ, WRITE, 2)


@st.composite
def queries(draw: st.DrawFn) -> WholeQuery:
    """A query with some records to summarise."""
    lengths = draw(st.lists(st.integers(1_001, 40_000), max_size=50))
    requests = tuple(SummaryRequest(f"q1-t{index}", "", "x" * length) for index, length in enumerate(lengths))
    short = draw(st.integers(10, 500))
    return WholeQuery((), short + sum(lengths) // 4, short + 90 * len(lengths), requests)


@st.composite
def paces(draw: st.DrawFn) -> CallSums:
    """The sums of some queries."""
    count = draw(st.integers(1, 100))
    return CallSums(count, draw(st.integers(count, 15 * count)), draw(st.integers(0, count - 1)))


def summariser(prompt: int = 30_000) -> Summariser:
    return Summariser(LastCall(MODEL, Usage(10, 200, prompt, 500)), MODEL, 350)


some_queries = st.lists(queries(), max_size=6)


@given(some_queries, paces(), st.booleans())
def test_a_batch_is_the_oldest_queries_of_at_most_one_joint_call(
    listed: list[WholeQuery], pace: CallSums, is_forced: bool
) -> None:
    chosen = batch(listed, pace, summariser(), is_forced=is_forced)
    assert [*chosen] == listed[: len(chosen)]
    assert len(chosen) <= 1 or sum(len(query.requests) for query in chosen) <= MOST_AT_ONCE
    assert bool(chosen) or not (is_forced and listed)


@given(some_queries, paces(), st.booleans(), st.integers(0, 100))
def test_a_batch_is_no_more_than_the_chat_can_pay_for(
    listed: list[WholeQuery], pace: CallSums, is_forced: bool, paid: int
) -> None:
    """A past that no longer fits takes its oldest query all the same: the step pays for as much of it as it can."""
    chosen = batch(
        listed, pace, summariser(), is_forced=is_forced, most=lambda requests: min(paid, len(requests))
    )
    assert [*chosen] == listed[: len(chosen)]
    asked = sum(len(query.requests) for query in chosen)
    assert asked <= paid or (is_forced and len(chosen) == 1)
    assert bool(chosen) or not (is_forced and listed)


@given(some_queries, paces())
def test_a_colder_or_busier_conversation_summarises_at_least_as_early(
    listed: list[WholeQuery], pace: CallSums
) -> None:
    if batch(listed, pace, summariser(), is_forced=False):
        colder = replace(pace, cold=pace.queries - 1)
        busier = replace(pace, calls=pace.calls + pace.queries)
        assert batch(listed, colder, summariser(), is_forced=False)
        assert batch(listed, busier, summariser(), is_forced=False)


@given(some_queries, paces(), st.integers(0, 200_000))
def test_a_longer_prefix_never_makes_summaries_pay(
    listed: list[WholeQuery], pace: CallSums, more: int
) -> None:
    if batch(listed, pace, summariser(30_000 + more), is_forced=False):
        assert batch(listed, pace, summariser(30_000), is_forced=False)


@given(paces())
def test_a_token_of_the_past_is_read_by_each_call_warm_or_cold(pace: CallSums) -> None:
    calls = pace.calls / pace.queries
    assert READ * calls <= read_price(pace, RATES) + 1e-9
    assert read_price(pace, RATES) <= WRITE + READ * (calls - 1) + 1e-9


@pytest.mark.parametrize(
    ("pace", "factor"),
    [
        (CallSums(), READ),
        (CallSums(1, 1, 0), READ),
        (CallSums(1, 2, 0), 2 * READ),
        (CallSums(2, 2, 1), WRITE),
        (CallSums(3, 6, 1), (READ + WRITE) / 2 + READ),
    ],
)
def test_the_price_of_a_conversation(pace: CallSums, factor: float) -> None:
    assert read_price(pace, RATES) == pytest.approx(factor)


def test_a_call_five_minutes_after_the_last_one_is_cold() -> None:
    pace = CallSums().after(0.0, 10.0, 2)
    assert pace.after(310.0, 320.0, 1) == CallSums(2, 3, 0, 320.0)
    assert pace.after(310.1, 320.0, 1) == CallSums(2, 3, 1, 320.0)


def test_the_sums_are_those_of_the_newest_answered_query() -> None:
    answered, failed = QueryTrack(1, (), pace=CallSums(1, 2)), QueryTrack(2, ())
    assert newest_pace([answered, failed]) == CallSums(1, 2)
    assert newest_pace([failed]) is None


def test_what_needs_no_summary_spares_nothing_by_it() -> None:
    """A short record stands whole either way."""
    records = (
        Record("q1", "message", "user", "What?", AT),
        Record("q1-r", "message", "assistant", "x" * 1_000, AT, 1, stop="complete"),
    )
    query = whole_query(records, 260, 1_000, 350)
    assert query.requests == ()
    assert batch([query], CallSums(5, 5, 4), summariser(), is_forced=False) == ()
