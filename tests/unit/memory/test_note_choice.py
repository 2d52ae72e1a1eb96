"""On which records notes are asked for: within three hundredths of the full history's cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from dualtrack.memory.full_history import CallCosts, MemorySums
from dualtrack.memory.note_choice import (
    EXPECTED_ANSWER,
    CallAhead,
    NoteAsk,
    expected_answer,
    records_to_note,
    spare_nanodollars,
)
from dualtrack.memory.notes import MOST_NOTES, NOTE_TOKENS, ask_for
from dualtrack.memory.records import QueryTrack, TrackBlock
from dualtrack.models.prices import rates_of
from dualtrack.models.prompt_cache import CachedPrefix
from dualtrack.models.turn import Usage
from dualtrack.text import estimate_tokens

RATES = rates_of("claude-haiku-5-5")
NOTE = RATES.nanodollars(Usage(output_tokens=NOTE_TOKENS))
CALL = CallAhead(prompt=10_000, seen=8_000, past=5_000, at=100.0)
ASKS = tuple(NoteAsk(f"q1-t{number}", 1_000 * number) for number in range(1, 12))
PLENTY = 10**12


def price_of(*ids: str, again: bool = False) -> int:
    asked = estimate_tokens(ask_for(ids, "", again=again))
    return RATES.nanodollars(Usage(cache_write_tokens=asked)) + len(ids) * NOTE


def test_the_longest_come_first() -> None:
    assert records_to_note(ASKS[:3], PLENTY, RATES) == ("q1-t3", "q1-t2", "q1-t1")


def test_at_most_eight_are_open() -> None:
    assert len(records_to_note(ASKS, PLENTY, RATES)) == MOST_NOTES
    assert len(records_to_note(ASKS, PLENTY, RATES, open_notes=6, again=True)) == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_as_many_as_can_be_paid_for_to_the_last_nanodollar(count: int) -> None:
    ids = tuple(ask.record_id for ask in reversed(ASKS))
    prices = [price_of(*ids[:number]) for number in range(1, 5)]
    spare = prices[count - 1] if count else prices[0] - 1
    assert len(records_to_note(ASKS, spare, RATES)) == count
    assert list(accumulate(prices, max)) == prices


def test_notes_that_were_asked_for_and_not_written_are_reserved() -> None:
    ids = ("q1-t11",)
    spare = price_of(*ids, again=True) + 2 * NOTE
    assert records_to_note(ASKS, spare, RATES, open_notes=2, again=True) == ids
    assert records_to_note(ASKS, spare - 1, RATES, open_notes=2, again=True) == ()


def test_what_a_conversation_has_saved_may_be_spent() -> None:
    sums = MemorySums(
        CallCosts(own=1_000_000, full=1_000_000), cached=CachedPrefix(8_000, 90.0), tokens=5_000
    )
    even = spare_nanodollars(sums, CALL, RATES)
    own = RATES.nanodollars(Usage(cache_read_tokens=8_000, cache_write_tokens=2_000))
    assert even == int(1.03 * (1_000_000 + own)) - 1_000_000 - own
    saved = spare_nanodollars(replace(sums, costs=CallCosts(1_000_000, 1_500_000)), CALL, RATES)
    assert saved - even == pytest.approx(1.03 * 500_000, abs=2)
    assert spare_nanodollars(replace(sums, aside=500_000), CALL, RATES) == even - 500_000


def test_a_full_history_with_a_longer_past_reads_more() -> None:
    sums = MemorySums(cached=CachedPrefix(8_000, 90.0), tokens=25_000)
    short = replace(sums, tokens=5_000)
    more = RATES.nanodollars(Usage(cache_read_tokens=20_000))
    assert spare_nanodollars(sums, CALL, RATES) - spare_nanodollars(short, CALL, RATES) == pytest.approx(
        1.03 * more, abs=2
    )


def test_where_the_cache_is_cold_everything_is_written() -> None:
    sums = MemorySums(cached=CachedPrefix(8_000, 90.0), tokens=25_000)
    late = spare_nanodollars(sums, replace(CALL, at=1_000.0), RATES)
    written = RATES.nanodollars(Usage(cache_write_tokens=30_000))
    own = RATES.nanodollars(Usage(cache_write_tokens=10_000))
    assert late == pytest.approx(1.03 * written - own, abs=2)


def answered(query: int, length: int, size: int = 0) -> QueryTrack:
    """A query with an answer of this length, or a note of it on one of this ``size``."""
    at, name = "2026-11-28T00:00:00.000Z", f"q{query}-r"
    asked = TrackBlock(f"q{query}", "user", "?" * 5_000, at)
    return QueryTrack(query, (asked, TrackBlock(f"{name}-sum", "assistant", "a" * length, at, name, size)))


@pytest.mark.parametrize(
    ("tracks", "expected"),
    [
        ((), EXPECTED_ANSWER),
        ((answered(1, 200), answered(2, 300), answered(3, 100)), 300),
        ((answered(1, 60, 4_000), answered(2, 200)), 4_000),
        ((answered(1, 4_000), *(answered(query, 200) for query in range(2, 6))), 200),
    ],
    ids=["the first", "short ones", "one that is sent as a note", "long ago"],
)
def test_an_answer_is_expected_to_be_as_long_as_those_before_it(
    tracks: tuple[QueryTrack, ...], expected: int
) -> None:
    """An ask on a short one is paid for nothing, and is sent again with each later query."""
    assert expected_answer(tracks) == expected
