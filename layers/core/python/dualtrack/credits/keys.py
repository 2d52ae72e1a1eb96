"""What may be spent under an API key: its caps, and what has been used of them (CONTRACT 8). Pure.

A key's use is a part of its owner's account, and what its chats hold is a part of the account's holds: one item, one
condition, so chats that start at once cannot take the same rest of a cap::

    used on the day + held on the day  ≤  cap of the day          used + held  ≤  cap in total

Credits count whatever they come from, allowance or pack. Dollars are those of model calls, in 10⁻⁹ dollars: a chat
holds the most that it may cost and settles to what was recorded. Caps are checked when holding and never again, so a
cap that is lowered below what is used admits nothing more and changes nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final

from dualtrack.clock import iso
from dualtrack.codec import stored
from dualtrack.errors import ApiError, invalid_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.answers import Details, KeyCaps, KeySums
    from dualtrack.vocabulary import CapName

MAX_CREDITS: Final = 1_000_000_000
MAX_DOLLARS: Final = 1_000_000
"""The highest caps."""

NANO: Final = 1_000_000_000
"""Parts of a dollar in which the ledger counts."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class KeyPart:
    """Credits and 10⁻⁹ dollars under a key, on the UTC day whose caps they count against."""

    day: str
    credits: int = 0
    nanodollars: int = 0


@stored(row=True)
@dataclass(frozen=True, slots=True)
class CapSums:
    """What was used or is held under a key, against each of its caps. Dollars are 10⁻⁹ dollars."""

    credits_total: int = 0
    dollars_total: int = 0
    credits_day: int = 0
    dollars_day: int = 0

    def plus(self, other: CapSums) -> CapSums:
        """Both together."""
        return CapSums(*(getattr(self, name) + getattr(other, name) for name in CAPS))

    def view(self) -> KeySums:
        """In credits and dollars."""
        return {
            "credits_day": self.credits_day,
            "credits_total": self.credits_total,
            "dollars_day": self.dollars_day / NANO,
            "dollars_total": self.dollars_total / NANO,
        }


@stored
@dataclass(frozen=True, slots=True)
class Caps:
    """The caps of a key; None: there is no such cap. Dollars are 10⁻⁹ dollars. A cap in total stands first, because
    one of a day that is reached as well ends sooner."""

    credits_total: int | None = None
    dollars_total: int | None = None
    credits_day: int | None = None
    dollars_day: int | None = None

    def changed(self, said: Mapping[str, float | None]) -> Caps:
        """The same with the caps that are ``said``, in credits and dollars; None takes one away. Raises 400 for a
        name that is no cap's, and for a number that is negative, not finite, too large or part of a credit."""
        return replace(self, **{name: _cap_of(name, value) for name, value in said.items()})

    def view(self) -> KeyCaps:
        """The caps that there are, in credits and dollars."""
        caps: KeyCaps = {}
        if self.credits_day is not None:
            caps["credits_day"] = self.credits_day
        if self.credits_total is not None:
            caps["credits_total"] = self.credits_total
        if self.dollars_day is not None:
            caps["dollars_day"] = self.dollars_day / NANO
        if self.dollars_total is not None:
            caps["dollars_total"] = self.dollars_total / NANO
        return caps

    def text(self) -> str:
        """The same for a line of the ledger: ``credits_day 15, dollars_total 2.5``."""
        return ", ".join(f"{name} {value}" for name, value in self.view().items()) or "none"


CAPS: Final[tuple[CapName, ...]] = ("credits_total", "dollars_total", "credits_day", "dollars_day")
assert CAPS == tuple(own.name for own in fields(Caps)) == tuple(own.name for own in fields(CapSums))


@stored
@dataclass(frozen=True, slots=True)
class KeyUse:
    """A key's caps and what was used of them. ``is_revoked``: its chats run to their end, and no other starts."""

    caps: Caps = field(default_factory=Caps)
    used: CapSums = field(default_factory=CapSums)
    is_revoked: bool = False

    def spent(self, parts: Iterable[KeyPart], today: str) -> KeyUse:
        """With these parts used."""
        return replace(self, used=self.used.plus(sums_of(parts, today)))

    def next_day(self) -> KeyUse:
        """With nothing used of the day's caps."""
        return replace(self, used=replace(self.used, credits_day=0, dollars_day=0))

    def credits_left(self, held: CapSums) -> float:
        """Credits that the caps leave; infinite without one."""
        limits = [(self.caps.credits_total, "credits_total"), (self.caps.credits_day, "credits_day")]
        left = (
            cap - getattr(self.used, name) - getattr(held, name) for cap, name in limits if cap is not None
        )
        return max(0, min(left, default=math.inf))

    def near(self, held: CapSums, percent: int) -> CapName | None:
        """The first cap of which so many percent are used or held, if there is one; a cap of 0 is no limit to come
        near to."""
        for name in CAPS:
            cap = getattr(self.caps, name)
            if cap and 100 * (getattr(self.used, name) + getattr(held, name)) >= percent * cap:
                return name
        return None

    def reached(self, held: CapSums, wanted: KeyPart, resets_at: float) -> CapReached | None:
        """The first cap that does not leave what is wanted, if there is one; nothing wanted is always left."""
        for name in CAPS:
            cap, used = getattr(self.caps, name), getattr(self.used, name)
            required = wanted.credits if name.startswith("credits") else wanted.nanodollars
            if cap is not None and required and used + getattr(held, name) + required > cap:
                ends = resets_at if name.endswith("day") and required <= cap else None
                return CapReached(name, cap, used, getattr(held, name), required, ends)
        return None


@dataclass(frozen=True, slots=True)
class UnderKey:
    """The key under which a chat starts, and the most that its model calls may cost, in 10⁻⁹ dollars."""

    key_id: str
    nanodollars: int


@dataclass(frozen=True, slots=True)
class CapReached:
    """The cap that a chat does not fit, in credits or 10⁻⁹ dollars. ``resets_at``: epoch seconds when the day's cap
    may cover it again; None if it never does by itself."""

    cap: CapName
    limit: int
    used: int
    held: int
    required: int
    resets_at: float | None

    def error(self) -> ApiError:
        """402 with the contract's fields; dollars are dollars."""
        name, unit = self.cap, "credits" if self.cap.startswith("credits") else "dollars"
        extra: Details = {
            "cap": name,
            "limit": in_units(name, self.limit),
            "used": in_units(name, self.used),
            "held": in_units(name, self.held),
            "required": in_units(name, self.required),
            "resets_at": iso(self.resets_at) if self.resets_at is not None else None,
        }
        message = (
            f"This API key's cap {name} is {extra['limit']} {unit}: {extra['used']} are used, {extra['held']} are "
            f"held for chats that run, and this needs {extra['required']}."
        )
        return ApiError("key_cap_reached", message, extra)


def sums_of(parts: Iterable[KeyPart], today: str) -> CapSums:
    """The sum of the parts, in total and of those of ``today``."""
    every = tuple(parts)
    own = [part for part in every if part.day == today]
    return CapSums(
        sum(part.credits for part in every),
        sum(part.nanodollars for part in every),
        sum(part.credits for part in own),
        sum(part.nanodollars for part in own),
    )


def merged(parts: Iterable[KeyPart]) -> tuple[KeyPart, ...]:
    """One part per day, in order of first appearance."""
    days: dict[str, KeyPart] = {}
    for part in parts:
        old = days.get(part.day, KeyPart(part.day))
        days[part.day] = KeyPart(part.day, old.credits + part.credits, old.nanodollars + part.nanodollars)
    return tuple(days.values())


def charged(held: Sequence[KeyPart], credits: int, nanodollars: int) -> tuple[KeyPart, ...]:  # noqa: A002
    """What a chat is charged of what it held under a key, that of older days first. Dollars beyond what it held count
    on `dollar_day`."""
    if not held:
        return ()
    parts, left, owed = [], credits, nanodollars
    for part in sorted(held, key=lambda part: part.day):
        taken = KeyPart(part.day, min(left, part.credits), min(owed, part.nanodollars))
        left, owed = left - taken.credits, owed - taken.nanodollars
        parts.append(taken)
    parts.append(KeyPart(dollar_day(held), 0, owed))
    return tuple(part for part in merged(parts) if part.credits or part.nanodollars)


def dollar_day(held: Sequence[KeyPart]) -> str:
    """The latest day on which a chat holds dollars, else the first on which it holds anything."""
    return max((part.day for part in held if part.nanodollars), default=held[0].day)


def freed_dollars(held: Sequence[KeyPart], nanodollars: int) -> tuple[KeyPart, ...]:
    """What a hold loses, as negative parts, so that it holds so many dollars at most; older days keep theirs first."""
    spent = {part.day: part.nanodollars for part in charged(held, 0, min(nanodollars, dollars_in(held)))}
    lost = (KeyPart(part.day, 0, spent.get(part.day, 0) - part.nanodollars) for part in held)
    return tuple(part for part in lost if part.nanodollars)


def dollars_in(held: Iterable[KeyPart]) -> int:
    """Their 10⁻⁹ dollars."""
    return sum(part.nanodollars for part in held)


def in_units(name: str, amount: int) -> float:
    """Credits as they are, 10⁻⁹ dollars in dollars, by the name of the cap."""
    return amount if name.startswith("credits") else amount / NANO


def _cap_of(name: str, value: float | None) -> int | None:
    if name not in CAPS:
        raise invalid_request(f"caps.{name}: there is no such cap; there are {', '.join(sorted(CAPS))}.")
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = name.startswith("credits")
    most = MAX_CREDITS if whole else MAX_DOLLARS
    if not is_number or not 0 <= value <= most or (whole and value != int(value)):
        raise invalid_request(
            f"caps.{name}: {'a whole' if whole else 'a'} number from 0 to {most} is needed."
        )
    return int(value) if whole else round(value * NANO)
