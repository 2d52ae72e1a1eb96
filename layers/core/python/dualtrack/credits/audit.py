"""Checks an account against its ledger: the lines alone must give the account's figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

from dualtrack.credits.account import FREE_CANCELS, FREE_ENDS, REVOKED
from dualtrack.credits.keys import KeyPart, dollar_day, merged, sums_of
from dualtrack.credits.plans import DEFAULT_PLAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dualtrack.credits.account import Account, Movement


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KeyBooks:
    """The sums of the lines of an API key: its caps as the latest line says them, what was charged by day, and what
    each chat holds."""

    caps: str = ""
    charged: tuple[KeyPart, ...] = ()
    held: Mapping[str, tuple[KeyPart, ...]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Books:
    """The sums of a ledger: credits charged by day of the allowance, held by chat, left of packs; those of each API
    key; and when the latest chats were cancelled for free."""

    plan: str = DEFAULT_PLAN
    lines: int = 0
    pack: int = 0
    charged: Mapping[str, int] = field(default_factory=_none)
    held: Mapping[str, int] = field(default_factory=_none)
    keys: Mapping[str, KeyBooks] = field(default_factory=lambda: MappingProxyType({}))
    free_cancels: tuple[int, ...] = ()

    def charged_in(self, period: str) -> int:
        """Allowance credits charged in a day (``2026-11-21``) or month (``2026-11``)."""
        return sum(amount for day, amount in self.charged.items() if day.startswith(period))


def enter(books: Books, movement: Movement) -> Books:
    """The books with one more line."""
    books = replace(books, lines=books.lines + 1)
    if movement.key_id:
        entered = _entered(books.keys.get(movement.key_id, KeyBooks()), movement)
        books = replace(books, keys=MappingProxyType({**books.keys, movement.key_id: entered}))
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
        case "release" | "expire":
            is_free = movement.kind == "release" and movement.reason in FREE_ENDS
            cancels = (
                (*books.free_cancels, int(movement.at))[-FREE_CANCELS:] if is_free else books.free_cancels
            )
            return replace(books, held=_ended(books.held, movement.chat_id), free_cancels=cancels)
        case "grant":
            return replace(books, pack=books.pack + movement.amount)
        case "plan":
            return replace(books, plan=movement.reason)
        case "caps" | "cost":
            pass
    return books


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
        "held": {chat_id: hold.amount for chat_id, hold in account.holds.items() if hold.parts},
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
    ) + tuple(problem for key_id in account.keys for problem in _key_differences(account, books, key_id))


def _key_differences(account: Account, books: Books, key_id: str) -> Iterator[str]:
    use, booked = account.keys[key_id], books.keys.get(key_id, KeyBooks())
    held = {chat: hold.key_parts for chat, hold in account.holds.items() if hold.key_id == key_id}
    for name, said, found in (
        ("caps", REVOKED if use.is_revoked else use.caps.text(), booked.caps),
        ("used", use.used, sums_of(booked.charged, account.day)),
        ("held", held, dict(booked.held)),
    ):
        if said != found:
            yield f"key {key_id}, {name}: the account says {said}, its ledger {found}"


def _entered(books: KeyBooks, movement: Movement) -> KeyBooks:
    """A key's books with one more line. An end frees all but what is kept."""
    old = books.held.get(movement.chat_id, ())
    match movement.kind:
        case "caps":
            return replace(books, caps=movement.reason)
        case "hold":
            held, charged = merged((*old, *movement.key_parts)), books.charged
        case _:
            held = (KeyPart(dollar_day(old), 0, movement.kept),) if old and movement.kept else ()
            charged = merged((*books.charged, *movement.key_parts))
    others = {chat_id: parts for chat_id, parts in books.held.items() if chat_id != movement.chat_id}
    now_held = {**others, movement.chat_id: held} if held else others
    return replace(books, charged=charged, held=MappingProxyType(now_held))


def _charge(charged: Mapping[str, int], movement: Movement) -> Mapping[str, int]:
    days = dict(charged)
    for part in movement.parts:
        if not part.is_pack:
            days[part.day] = days.get(part.day, 0) + part.amount
    return MappingProxyType(days)


def _ended(held: Mapping[str, int], chat_id: str) -> Mapping[str, int]:
    return MappingProxyType({chat: amount for chat, amount in held.items() if chat != chat_id})
