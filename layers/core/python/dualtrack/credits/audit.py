"""Checks an account against its ledger: the lines alone must give the account's figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

from dualtrack.credits.account import FREE_CANCEL, FREE_CANCELS
from dualtrack.credits.plans import DEFAULT_PLAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.credits.account import Account, Movement


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Books:
    """The sums of a ledger: credits charged by day of the allowance, held by chat, left of packs; and when the latest
    chats were cancelled for free."""

    plan: str = DEFAULT_PLAN
    lines: int = 0
    pack: int = 0
    charged: Mapping[str, int] = field(default_factory=_none)
    held: Mapping[str, int] = field(default_factory=_none)
    free_cancels: tuple[int, ...] = ()

    def charged_in(self, period: str) -> int:
        """Allowance credits charged in a day (``2026-11-21``) or month (``2026-11``)."""
        return sum(amount for day, amount in self.charged.items() if day.startswith(period))


def enter(books: Books, movement: Movement) -> Books:
    """The books with one more line."""
    books = replace(books, lines=books.lines + 1)
    match movement.kind:
        case "hold":
            held = books.held.get(movement.chat_id, 0) + movement.amount
            return replace(books, held=MappingProxyType({**books.held, movement.chat_id: held}))
        case "settle":
            return replace(
                books,
                charged=_charge(books.charged, movement),
                pack=books.pack - sum(part.amount for part in movement.parts if part.is_pack),
                held=_ended(books.held, movement.chat_id),
            )
        case "release" if movement.reason == FREE_CANCEL:
            cancels = (*books.free_cancels, int(movement.at))[-FREE_CANCELS:]
            return replace(books, held=_ended(books.held, movement.chat_id), free_cancels=cancels)
        case "release" | "expire":
            return replace(books, held=_ended(books.held, movement.chat_id))
        case "grant":
            return replace(books, pack=books.pack + movement.amount)
        case "plan":
            return replace(books, plan=movement.reason)


def audit(account: Account, movements: Iterable[Movement]) -> tuple[str, ...]:
    """Where the account differs from its ledger (oldest line first); empty if it does not."""
    return differences(account, reduce(enter, movements, Books()))


def differences(account: Account, books: Books) -> tuple[str, ...]:
    """Where the account differs from its books."""
    said = {
        "plan": account.plan,
        "lines": account.seq,
        "pack": account.pack,
        "used today": account.used_day,
        "used this month": account.used_month,
        "held": {chat_id: hold.amount for chat_id, hold in account.holds.items()},
        "cancelled for free": account.free_cancels,
    }
    booked = {
        "plan": books.plan,
        "lines": books.lines,
        "pack": books.pack,
        "used today": books.charged_in(account.day) if account.day else 0,
        "used this month": books.charged_in(account.month) if account.day else 0,
        "held": dict(books.held),
        "cancelled for free": books.free_cancels,
    }
    return tuple(
        f"{name}: the account says {said[name]}, its ledger {booked[name]}"
        for name in said
        if said[name] != booked[name]
    )


def _charge(charged: Mapping[str, int], movement: Movement) -> Mapping[str, int]:
    days = dict(charged)
    for part in movement.parts:
        if not part.is_pack:
            days[part.day] = days.get(part.day, 0) + part.amount
    return MappingProxyType(days)


def _ended(held: Mapping[str, int], chat_id: str) -> Mapping[str, int]:
    return MappingProxyType({chat: amount for chat, amount in held.items() if chat != chat_id})
