"""What a user's chats cost, by the day (UTC) on which each ended, by API key and by agent. Pure.

Dollars are those of the model calls of turns and tools, by the price table, including failed chats. Summaries and
digests are made after a chat is settled: of a chat by a key they are charged in lines of their own, on the day on which
they are made; of others only the receipt has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.clock import day_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dualtrack.answers import Spending as SpendingView
    from dualtrack.answers import SpendingDay
    from dualtrack.credits.account import Movement

MAX_DAYS: Final = 92
MAX_LINES: Final = 5_000
"""Ledger lines that one request reads: less than a megabyte."""

_ENDS: Final = ("settle", "release", "expire")
_COSTS: Final = (*_ENDS, "cost")


@dataclass(frozen=True, slots=True)
class Spending:
    """One day: the chats that ended, the credits charged, and 10⁻⁹ dollars of their model calls."""

    day: str
    chats: int = 0
    credits: int = 0
    nanodollars: int = 0

    @property
    def dollars(self) -> float:
        """The same in dollars."""
        return self.nanodollars / 1e9

    def view(self) -> SpendingDay:
        """As the API shows it."""
        return {"day": self.day, "chats": self.chats, "credits": self.credits, "dollars": self.dollars}

    def with_line(self, movement: Movement) -> Spending:
        """The day with one more line. One that frees no credits ends no chat: its chat had ended before."""
        ended = movement.kind in _ENDS and movement.amount > 0
        charged = movement.amount if movement.kind == "settle" else 0
        nanodollars = self.nanodollars + movement.nanodollars
        return Spending(self.day, self.chats + ended, self.credits + charged, nanodollars)


def spending_by_day(movements: Iterable[Movement]) -> tuple[Spending, ...]:
    """The days on which chats ended or cost something, newest first."""
    days: dict[str, Spending] = {}
    for movement in movements:
        if movement.kind in _COSTS:
            day = day_of(movement.at)
            days[day] = days.get(day, Spending(day)).with_line(movement)
    return tuple(days[day] for day in sorted(days, reverse=True))


def spending_by_key(movements: Iterable[Movement]) -> Mapping[str, tuple[Spending, ...]]:
    """The same for each API key under which chats ran, by its id."""
    return _spending_by(movements, lambda movement: movement.key_id)


def spending_by_profile(movements: Iterable[Movement]) -> Mapping[str, tuple[Spending, ...]]:
    """The same for each agent, by its profile's name; lines of before the ledger had it are in none."""
    return _spending_by(movements, lambda movement: movement.profile)


def _spending_by(
    movements: Iterable[Movement], name_of: Callable[[Movement], str]
) -> Mapping[str, tuple[Spending, ...]]:
    lines: dict[str, list[Movement]] = {}
    for movement in movements:
        if movement.kind in _COSTS and (name := name_of(movement)):
            lines.setdefault(name, []).append(movement)
    return {name: spending_by_day(own) for name, own in sorted(lines.items())}


def spending_view(user: str, movements: Sequence[Movement], *, complete: bool) -> SpendingView:
    """The spending as the API shows it. ``complete``: whether these are all lines of its days."""
    return {
        "user_id": user,
        "complete": complete,
        "days": [day.view() for day in spending_by_day(movements)],
        "keys": [
            {"key_id": key_id, "days": [day.view() for day in own]}
            for key_id, own in spending_by_key(movements).items()
        ],
        "profiles": [
            {"profile": name, "days": [day.view() for day in own]}
            for name, own in spending_by_profile(movements).items()
        ],
    }


def first_moment(now: float, days: int) -> float:
    """Epoch seconds at which the first of ``days`` days begins; today is the last."""
    return now - now % 86_400 - (days - 1) * 86_400
