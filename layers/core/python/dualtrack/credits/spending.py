"""What a user's chats took, by the day (UTC) on which each ended, from the ledger's own lines. Pure.

Dollars are those of the chats' turns and of what their tools asked of models, by the price table, failed chats' too.
Summaries and digests are made after a chat is settled: a chat's receipt has them.
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
"""Of the ledger that one request looks at: under a megabyte."""

_ENDS: Final = ("settle", "release", "expire")


@dataclass(frozen=True, slots=True)
class Spending:
    """Of one day: chats that ended, credits that they were charged, and 10⁻⁹ dollars of their turns and tools."""

    day: str
    chats: int = 0
    credits: int = 0
    nanodollars: int = 0

    @property
    def dollars(self) -> float:
        """In dollars."""
        return self.nanodollars / 1e9

    def with_end(self, movement: Movement) -> Spending:
        """With one more chat, by the line that ended it."""
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
    """Epoch seconds at which the first of so many days begins, today the last."""
    return now - now % 86_400 - (days - 1) * 86_400
