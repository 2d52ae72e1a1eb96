"""What a user's chats cost by day, from lines of the ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack.credits.account import Movement
from dualtrack.credits.spending import (
    Spending,
    first_moment,
    spending_by_day,
    spending_by_key,
    spending_by_profile,
)

if TYPE_CHECKING:
    from dualtrack.vocabulary import MovementKind

NOON: Final = 1_795_262_400.0
DAY: Final = 86_400.0


def line(kind: MovementKind, amount: int, at: float, nanodollars: int = 0) -> Movement:
    """A movement of a chat."""
    return Movement(kind, amount, 0, at, "ch", nanodollars=nanodollars)


def test_each_end_of_a_chat_counts_once_on_its_day() -> None:
    lines = (
        line("settle", 7, NOON, 300),
        line("hold", 5, NOON),
        line("release", 5, NOON, 20),
        line("expire", 5, NOON),
        line("grant", 500, NOON),
        line("settle", 5, NOON - DAY, 1),
        line("plan", 0, NOON - 2 * DAY),
    )
    assert spending_by_day(lines) == (
        Spending("2026-11-21", chats=3, credits=7, nanodollars=320),
        Spending("2026-11-20", chats=1, credits=5, nanodollars=1),
    )


def test_a_key_has_its_own_days_with_what_its_summaries_cost() -> None:
    def by(key_id: str, kind: MovementKind, amount: int, at: float, nanodollars: int = 0) -> Movement:
        return replace(line(kind, amount, at, nanodollars), key_id=key_id)

    lines = (
        by("k_1", "cost", 0, NOON, 4),
        by("k_1", "expire", 0, NOON),
        by("k_1", "settle", 7, NOON, 300),
        by("k_2", "release", 5, NOON, 20),
        by("k_2", "caps", 0, NOON),
        by("k_1", "settle", 5, NOON - DAY, 1),
        line("settle", 9, NOON, 1),
    )
    assert spending_by_key(lines) == {
        "k_1": (Spending("2026-11-21", 1, 7, 304), Spending("2026-11-20", 1, 5, 1)),
        "k_2": (Spending("2026-11-21", 1, 0, 20),),
    }
    assert spending_by_day(lines)[0] == Spending("2026-11-21", 3, 16, 325)


def test_an_agent_has_its_own_days_and_lines_without_one_are_in_none() -> None:
    lines = (
        replace(line("settle", 7, NOON, 300), profile="graph"),
        replace(line("hold", 5, NOON), profile="graph"),
        replace(line("release", 5, NOON, 2), profile="assistant"),
        line("settle", 9, NOON, 1),
    )
    assert spending_by_profile(lines) == {
        "assistant": (Spending("2026-11-21", 1, 0, 2),),
        "graph": (Spending("2026-11-21", 1, 7, 300),),
    }


@pytest.mark.parametrize("days", [1, 2, 30])
def test_a_window_ends_with_today(days: int) -> None:
    first = first_moment(NOON, days)
    assert first % DAY == 0
    assert NOON - days * DAY < first <= NOON - (days - 1) * DAY
