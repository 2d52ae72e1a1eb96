"""What a user's chats cost, by the day (UTC) on which each ended, from the ledger's lines. Pure.

Dollars are those of the model calls of turns and tools, by the price table, including failed chats. Summaries and
digests are made after a chat is settled, so only its receipt has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.clock import day_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.credits.account import Movement

MAX_DAYS: Final = 92
MAX_LINES: Final = 5_000
"""Ledger lines that one request reads: less than a megabyte."""

_ENDS: Final = ("settle", "release", "expire")


@dataclass(frozen=True, slots=True)
class Spending:
    """One day: the chats that ended, the credits charged, and 10⁻⁹ dollars of their turns and tools."""

    day: str
    chats: int = 0
    credits: int = 0
    nanodollars: int = 0

    @property
    def dollars(self) -> float:
        """The same in dollars."""
        return self.nanodollars / 1e9

    def with_end(self, movement: Movement) -> Spending:
        """The day with one more chat, from the line that ended it."""
        charged = movement.amount if movement.kind == "settle" else 0
        nanodollars = self.nanodollars + movement.nanodollars
        return Spending(self.day, self.chats + 1, self.credits + charged, nanodollars)


def spending_by_day(movements: Iterable[Movement]) -> tuple[Spending, ...]:
    """The days on which chats ended, newest first."""
    days: dict[str, Spending] = {}
    for movement in movements:
        if movement.kind in _ENDS:
            day = day_of(movement.at)
            days[day] = days.get(day, Spending(day)).with_end(movement)
    return tuple(days[day] for day in sorted(days, reverse=True))


def first_moment(now: float, days: int) -> float:
    """Epoch seconds at which the first of ``days`` days begins; today is the last."""
    return now - now % 86_400 - (days - 1) * 86_400
