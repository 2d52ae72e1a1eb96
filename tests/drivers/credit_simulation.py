"""Chats, crashes and clocks, all from one seed, against a real DynamoDB engine.

A world has a few users and many chats. Every step of a chat (start, a turn's tools, answer, cancel,
fail) is a generator that stops before and after each of its reads and writes; the world picks whose
turn it is, so everything interleaves. A step may crash at any stop and be run again, be delivered
twice, or sleep for hours and wake as a zombie; writes may meet conflicts and throttling, or succeed
and lose their answer; clocks differ between writers; days, months, plans and packs change meanwhile.

The steps use the real decisions, actions and `transact`, and commit them together with the chat's own record, as the
functions do. Most chats run under API keys with caps: they are charged what they cost, now and then more than they
held, and hold dollars for their summaries and a digest until these are charged. Some pause, for up to days, holding
what they have cost so far, and go on when the caps leave the rest. What is written passes the `Watcher`, which keeps
its own books and checks every rule after every write.

Every failure message names the seed.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast
from unittest.mock import patch

from botocore.exceptions import ClientError
from dualtrack.chat.credit_reset import reset_accounts
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.credits import account as account_module
from dualtrack.credits import audit as audit_module
from dualtrack.credits.account import (
    FREE_CANCELS_SECONDS,
    FREE_ENDS,
    HOLD_SECONDS,
    PAUSED,
    RESUMED,
    Account,
    AccountChange,
    Cost,
    HoldRefusal,
    Movement,
    next_day,
)
from dualtrack.credits.audit import Books, differences, enter
from dualtrack.credits.keys import CAPS, Caps, KeyPart, UnderKey, sums_of
from dualtrack.credits.plans import CHAT_PRICE, PLANS, Plan, price_chat
from dualtrack.errors import Contended
from dualtrack.storage import dynamo
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.ledger import Ledger, account_from, account_moved, movement_from, user_of

from tests.drivers.credit_tables import make_chats, make_ledger, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from dualtrack.storage.dynamo import Action
    from dualtrack.tool_values import PriceClass
    from dualtrack.vocabulary import PlanName
    from mypy_boto3_dynamodb.client import DynamoDBClient

    Step = Generator[None, None, None]

CHATS_PER_WORLD: Final = 40
USERS_PER_WORLD: Final = 2
BEGIN: Final = 1_795_262_400.0
"""2026-11-21 12:00 UTC; a world begins up to two months later."""

KEYS: Final = ("key-a", "key-b")
HELD, KEPT, KEPT_FOR_DIGEST = 25, 5, 2
"""What a chat by a key holds, goes on holding for its summaries, and of that for a digest (10⁻⁹ dollars)."""

PAUSE_SECONDS: Final = 400 * 86_400
"""Longer than any world lasts."""

FREE_CANCELS: Final = 1
"""A limit that a world can reach."""

SMALL_PLANS: Final[Mapping[str, Plan]] = {
    "free": PLANS["free"],
    "pro": replace(PLANS["pro"], daily=70, monthly=110),
    "unlimited": Plan("unlimited", 10**9, None, 0),
}
"""Limits that a world can reach. ``unlimited`` is for a broken variant only."""


class RuleBroken(AssertionError):
    """A rule of the ledger did not hold."""


@dataclass(slots=True)
class Tally:
    """What a run did."""

    chats: int = 0
    steps: int = 0
    writes: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.chats += other.chats
        self.steps += other.steps
        self.writes += other.writes
        self.counts.update(other.counts)


# ── the engine, with its faults ─────────────────────────────────────────────────────────────


class Shaky:
    """A DynamoDB client that shows each committed write to a watcher and sometimes fails."""

    def __init__(self, client: DynamoDBClient, watcher: Watcher, rng: random.Random, tally: Tally) -> None:
        self._client, self._watcher, self._rng, self._tally = client, watcher, rng, tally
        self.faults = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **request: Any) -> Any:
        actions = [next(iter(action.items())) for action in request["TransactItems"]]
        reasons = [{"Code": "None"} for _ in actions]
        reasons[self._rng.randrange(len(reasons))] = {"Code": "TransactionConflict"}
        cancelled = ("TransactionCanceledException", {"CancellationReasons": reasons})
        return self._write("transact_write_items", request, actions, cancelled)

    def put_item(self, **request: Any) -> Any:
        return self._write("put_item", request, [("Put", request)], ("TransactionConflictException", {}))

    def update_item(self, **request: Any) -> Any:
        return self._write(
            "update_item", request, [("Update", request)], ("TransactionConflictException", {})
        )

    def _write(self, call: str, request: Any, actions: Any, conflict: tuple[str, dict[str, Any]]) -> Any:
        luck = self._rng.random() if self.faults else 1.0
        if luck < 0.06:
            self._fail("conflict", *conflict)
        if luck < 0.10:
            self._fail("throttled", "ThrottlingException", {})
        answer = getattr(self._client, call)(**request)
        self._tally.writes += 1
        self._watcher.committed(actions)
        if luck < 0.13:
            self._fail("answer lost", "InternalServerError", {})
        return answer

    def _fail(self, name: str, code: str, more: dict[str, Any]) -> None:
        self._tally.counts[name] += 1
        response: Any = {"Error": {"Code": code, "Message": name}, **more}
        raise ClientError(response, "Write")


class Watcher:
    """Independent books of every user and chat, kept from the writes alone, and the rules."""

    def __init__(self, credits_table: str) -> None:
        self.table = credits_table
        self.items: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.accounts: dict[str, Account] = {}
        self.books: dict[str, Books] = {}
        self.movements: dict[str, list[Movement]] = {}
        self.status: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.settled: Counter[str] = Counter()
        self.charged: dict[str, int] = {}
        self.held_once: dict[str, int] = {}
        self.expired: set[str] = set()
        self.kept_alive: set[str] = set()
        """Chats whose holds a pause has kept alive: a step that wakes hours later finds none that it could keep."""
        self.free_before: dict[str, int] = {}
        self.grants: Counter[str] = Counter()
        self.under: dict[str, int] = {}
        """10⁻⁹ dollars charged under a key, by chat."""

    def committed(self, actions: list[tuple[str, Any]]) -> None:
        """Book a committed transaction and check every rule it touches."""
        touched: set[str] = set()
        ended: list[str] = []
        for kind, request in actions:
            if kind == "Put" and request["TableName"] == self.table:
                touched.add(self._put(dynamo.from_wire(request["Item"])))
            elif kind == "Put":
                self._chat(dynamo.from_wire(request["Item"]))
            elif kind == "Update":
                chat = self._moved(request)
                ended += [chat] if self.status[chat] not in ("running", "paused") else []
        for user in touched:
            self._check(user)
        for chat in ended:
            self._check_end(chat)

    def _put(self, item: dict[str, Any]) -> str:
        user, sk = user_of(item), item["sk"]
        if sk == "account":
            self.accounts[user] = account_from(item)
        elif sk.startswith("entry#"):
            self._entry(user, sk, item)
        elif sk.startswith("grant#"):
            self.grants[user] += 1
        key = ("credits", item["pk"], sk)
        self._rule(sk == "account" or key not in self.items, f"{key} was written twice")
        self.items[key] = item
        return user

    def _entry(self, user: str, sk: str, item: dict[str, Any]) -> None:
        line = movement_from(item)
        books = self.books[user] = enter(self.books.get(user, Books()), line)
        self.movements.setdefault(user, []).append(line)
        self._rule(int(sk.removeprefix("entry#")) == books.lines, f"{user}: line {sk} out of order")
        self._rule(line.available_after >= 0, f"{user}: available {line.available_after}")
        if line.kind == "hold":
            if line.reason == PAUSED:
                self.kept_alive.add(line.chat_id)
            self.held_once[line.chat_id] = self.held_once.get(line.chat_id, 0) + line.amount
            self._limits(user, line)
            self._caps(user, line)
        elif line.key_id:
            spent = sum(part.nanodollars for part in line.key_parts)
            self.under[line.chat_id] = self.under.get(line.chat_id, 0) + spent
            self._rule(spent == line.nanodollars, f"{line} does not add up under its key")
            self._days(user, line)
            charged = sum(part.credits for part in line.key_parts)
            self._rule(
                charged == sum(part.amount for part in line.parts), f"{line} charges its key {charged}"
            )
        if line.kind in ("settle", "release"):
            self.free_before[line.chat_id] = self._free_before(user, line)
        if line.kind == "settle":
            self.settled[line.chat_id] += 1
            self.charged[line.chat_id] = line.amount
            self._rule(self.settled[line.chat_id] == 1, f"{line.chat_id} was settled twice")
            self._rule(line.amount <= self.held_once.get(line.chat_id, 0), f"{line.chat_id} charged unheld")
            self._rule(sum(part.amount for part in line.parts) == line.amount, f"{line} does not add up")
        if line.kind == "expire" and line.amount:
            self.expired.add(line.chat_id)
            waits = self.status.get(line.chat_id) == "paused" and line.chat_id in self.kept_alive
            self._rule(not waits, f"{line.chat_id} lost its hold as it waited")

    def _free_before(self, user: str, line: Movement) -> int:
        """Chats cancelled for free in the hour before a line, from the lines alone."""
        return sum(
            other.reason in FREE_ENDS and int(other.at) > line.at - FREE_CANCELS_SECONDS
            for other in self.movements[user]
            if other is not line
        )

    def _limits(self, user: str, line: Movement) -> None:
        """Nothing above a limit: neither charges nor holds of a period's allowance."""
        plan = SMALL_PLANS[self.books[user].plan]
        for part in line.parts:
            if not part.is_pack:
                day = self._taken(user, part.day)
                self._rule(day <= plan.daily, f"{user}: {day} of {plan.daily} on {part.day}")
                month = self._taken(user, part.month)
                limit = plan.monthly if plan.monthly is not None else month
                self._rule(month <= limit, f"{user}: {month} of {limit} in {part.month}")

    def _caps(self, user: str, line: Movement) -> None:
        """A hold is within every cap of its key, by the lines alone; one for tools holds no dollars, and a pause frees
        them. What dead chats hold is free: the seconds are those by which clocks differ."""
        if not line.key_id or not any(part.credits or part.nanodollars > 0 for part in line.key_parts):
            return
        used, held = [], dict[str, list[Any]]()
        died = line.at - HOLD_SECONDS + 4
        began = self._began(user)
        for other in self.movements[user]:
            if other.key_id != line.key_id or other.kind == "caps":
                continue
            if other.kind == "hold" and began[other.chat_id] > died:
                held.setdefault(other.chat_id, []).extend(other.key_parts)
                continue
            used += other.key_parts if other.kind != "hold" else ()
            parts = held.pop(other.chat_id, [])
            if other.kept and parts:
                held[other.chat_id] = [KeyPart(_dollar_day(parts), 0, other.kept)]
        today = max(part.day for part in line.key_parts)
        sums = sums_of([*used, *(part for parts in held.values() for part in parts)], today)
        starts = any(part.nanodollars > 0 for part in line.key_parts)
        caps = self.accounts[user].keys[line.key_id].caps
        for name in CAPS:
            cap, taken = getattr(caps, name), getattr(sums, name)
            checked = cap is not None and (line.amount if name.startswith("credits") else starts)
            self._rule(not checked or taken <= cap, f"{user}: {taken} of {name} {cap} of {line.key_id}")

    def _began(self, user: str) -> dict[str, float]:
        """When each chat's hold began; a paused one's lives longer than the world."""
        began = dict[str, float]()
        for line in self.movements[user]:
            if line.kind != "hold":
                continue
            at = line.at + PAUSE_SECONDS if line.reason == PAUSED else line.at
            began[line.chat_id] = at if line.reason in (PAUSED, RESUMED) else began.get(line.chat_id, at)
        return began

    def _days(self, user: str, line: Movement) -> None:
        """A chat is charged dollars on the days on which it held them; only on the last of these also more."""
        held = dict[str, int]()
        for other in self.movements[user]:
            for part in other.key_parts if other.kind == "hold" and other.chat_id == line.chat_id else ():
                held[part.day] = held.get(part.day, 0) + part.nanodollars
        last = max((day for day, amount in held.items() if amount), default="")
        over = [
            part for part in line.key_parts if part.day < last and part.nanodollars > held.get(part.day, 0)
        ]
        self._rule(not over, f"{line} charges {over} of {held}")

    def _taken(self, user: str, period: str) -> int:
        """Held and charged credits of a period's allowance, from the lines alone."""
        open_holds: dict[str, int] = {}
        charged = 0
        for line in self.movements[user]:
            here = sum(part.amount for part in line.parts if part.day.startswith(period) and part.day)
            if line.kind == "hold":
                open_holds[line.chat_id] = open_holds.get(line.chat_id, 0) + here
            elif line.kind in {"settle", "release", "expire"}:
                open_holds.pop(line.chat_id, None)
                charged += here
        return charged + sum(open_holds.values())

    def _chat(self, item: dict[str, Any]) -> None:
        key = ("chats", item["pk"], item["sk"])
        self._rule(key not in self.items, f"{key} was written twice")
        self.items[key] = item
        if item["sk"] == "chat":
            self.status[item["pk"]] = "running"
            self.owners[item["pk"]] = item["user"]

    def _moved(self, request: Any) -> str:
        """Note a chat's new status; returns the chat."""
        chat = str(dynamo.from_wire(request["Key"])["pk"])
        self.status[chat] = str(dynamo.from_wire(request["ExpressionAttributeValues"])[":status"])
        self.items["chats", chat, "chat"]["status"] = self.status[chat]
        return chat

    def _check(self, user: str) -> None:
        account, books = self.accounts[user], self.books[user]
        wrong = differences(account, books)
        self._rule(not wrong, f"{user}: {'; '.join(wrong)}")
        held = sum(hold.amount for hold in account.holds.values())
        self._rule(held == sum(books.held.values()), f"{user}: holds {held}")
        granted = sum(line.kind == "grant" for line in self.movements[user])
        self._rule(granted == self.grants[user], f"{user}: {granted} grants for {self.grants[user]} payments")
        pack_held = sum(p.amount for h in account.holds.values() for p in h.parts if p.is_pack)
        known = {line.key_id for line in self.movements[user] if line.kind == "caps"}
        self._rule(account.keys.keys() <= known, f"{user}: keys {[*account.keys]}")
        self._rule(0 <= pack_held <= account.pack, f"{user}: pack {account.pack}, of it held {pack_held}")
        self._rule(account.used_day >= 0 and account.used_month >= account.used_day, f"{user}: {account}")

    def _check_end(self, chat: str) -> None:
        held = self.books[self.owners[chat]].held
        self._rule(chat not in held, f"{chat} is {self.status[chat]} and still holds credits")

    def _rule(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise RuleBroken(otherwise)


# ── the rules of the ledger, and four ways to break them ─────────────────────────────────────


class Rules:
    """The decisions and conditions as they are."""

    def hold(
        self, seen: Account, fresh: Account, chat: str, now: float, key: UnderKey | None
    ) -> AccountChange | HoldRefusal:
        return fresh.hold(chat, 5, now, key)

    def settle(self, account: Account, chat: str, amount: int, now: float, cost: Cost) -> AccountChange:
        return account.settle(chat, amount, now, cost)

    def release(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        return account.release(chat, now, cost)

    def cancel(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        """Of a chat of which no byte has come."""
        return account.cancel_unanswered(chat, now, cost)

    def refuse(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        """Of a chat that fails by what its request brought."""
        return account.fail_by_caller(chat, now, cost)

    def pause(self, account: Account, chat: str, now: float, nanodollars: int) -> AccountChange:
        """Until the world is over."""
        return account.pause(chat, now + PAUSE_SECONDS, now, nanodollars)

    def resume(
        self,
        account: Account,
        chat: str,
        calls: Sequence[PriceClass],
        paid: Collection[PriceClass],
        now: float,
        nanodollars: int,
    ) -> AccountChange | HoldRefusal:
        """With the calls that were approved."""
        return account.resume(chat, calls, paid, now, nanodollars)

    def end(self, table: str, chat: str, status: str) -> Action:
        """running → answered | cancelled | failed, once."""
        return self.change(table, chat, status)

    def change(self, table: str, chat: str, status: str, was: str = "running") -> Action:
        """From one status to another."""
        return self._end(table, chat, "#s = :was", {":status": status, ":was": was})

    def _end(self, table: str, chat: str, condition: str, values: dict[str, str]) -> Action:
        key = {"pk": chat, "sk": "chat"}
        return dynamo.update("chat", table, key, "SET #s = :status", condition, values, {"#s": "status"})


class CheckThenCharge(Rules):
    """Broken: the limit is checked on figures read earlier, the credits are taken from fresh ones."""

    def hold(
        self, seen: Account, fresh: Account, chat: str, now: float, key: UnderKey | None
    ) -> AccountChange | HoldRefusal:
        checked = seen.hold(chat, 5, now, key)
        if isinstance(checked, HoldRefusal):
            return checked
        unlimited: Any = "unlimited"
        taken = replace(fresh, plan=unlimited).hold(chat, 5, now, key)
        if isinstance(taken, HoldRefusal):
            return taken
        return replace(taken, account=replace(taken.account, plan=fresh.plan))


class CapsOnOldFigures(Rules):
    """Broken: a key's caps are checked on figures read earlier."""

    def hold(
        self, seen: Account, fresh: Account, chat: str, now: float, key: UnderKey | None
    ) -> AccountChange | HoldRefusal:
        checked = seen.hold(chat, 5, now, key)
        if isinstance(checked, HoldRefusal) or key is None or key.key_id not in fresh.keys:
            return fresh.hold(chat, 5, now, key)
        free = {**fresh.keys, key.key_id: replace(fresh.keys[key.key_id], caps=Caps())}
        taken = replace(fresh, keys=free).hold(chat, 5, now, key)
        if isinstance(taken, HoldRefusal):
            return taken
        return replace(taken, account=replace(taken.account, keys=fresh.keys))


class ResumeWithoutCaps(Rules):
    """Broken: a chat that goes on after a pause holds its dollars whatever the cap of its key leaves."""

    def resume(
        self,
        account: Account,
        chat: str,
        calls: Sequence[PriceClass],
        paid: Collection[PriceClass],
        now: float,
        nanodollars: int,
    ) -> AccountChange | HoldRefusal:
        free = {key_id: replace(use, caps=Caps()) for key_id, use in account.keys.items()}
        taken = replace(account, keys=free).resume(chat, calls, paid, now, nanodollars)
        if isinstance(taken, HoldRefusal):
            return taken
        return replace(taken, account=replace(taken.account, keys=account.at(now).keys))


class PausedHoldsDie(Rules):
    """Broken: the hold of a paused chat lives as long as any other, so others take its credits."""

    def pause(self, account: Account, chat: str, now: float, nanodollars: int) -> AccountChange:
        return account.pause(chat, now, now, nanodollars)


class FreeFailures(Rules):
    """Broken: a failed chat costs its key nothing."""

    def release(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        return account.release(chat, now)


class ReleaseWithoutLimit(Rules):
    """Broken: a release gives five credits back without checking the chat's hold."""

    def release(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        decision = account.release(chat, now, cost)
        refunded = replace(decision.account, used_day=decision.account.used_day - 5)
        return replace(decision, account=refunded)


class SettleTwice(Rules):
    """Broken: settling checks neither the chat's status nor its hold."""

    def settle(self, account: Account, chat: str, amount: int, now: float, cost: Cost) -> AccountChange:
        if chat not in account.holds:
            held = account.hold(chat, amount, now)
            if isinstance(held, AccountChange):
                return replace(held.account, seq=account.seq).settle(chat, amount, now, cost)
        return account.settle(chat, amount, now, cost)

    def end(self, table: str, chat: str, status: str) -> Action:
        return self._end(table, chat, "", {":status": status})


class FreeWithoutEnd(Rules):
    """Broken: cancelling early is free, however often."""

    def cancel(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        return replace(account, free_cancels=()).cancel_unanswered(chat, now, cost)


class RefusedWithoutEnd(Rules):
    """Broken: failing by one's own tool is free, however often."""

    def refuse(self, account: Account, chat: str, now: float, cost: Cost) -> AccountChange:
        return replace(account, free_cancels=()).fail_by_caller(chat, now, cost)


BROKEN: Final = (
    RefusedWithoutEnd,
    CheckThenCharge,
    ReleaseWithoutLimit,
    SettleTwice,
    FreeWithoutEnd,
    CapsOnOldFigures,
    FreeFailures,
    ResumeWithoutCaps,
    PausedHoldsDie,
)


ENDS: Final[Mapping[str, tuple[str, ...]]] = {
    "answer": ("answered",),
    "cancel": ("cancelled",),
    "cancel early": ("cancelled",),
    "fail": ("failed",),
    "fail by its tool": ("failed",),
    "die": (),
    "double": ("answered", "cancelled", "failed"),
}
"""The step that each way of ending starts after the last round."""


AFTER: Final[Mapping[str, str]] = {"answered": "summaries", "summaries": "digest"}
"""The step that follows in a chat by a key."""


# ── a world ───────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Chat:
    """One chat and what its workflow has yet to do."""

    id: str
    user: str
    rounds: tuple[tuple[PriceClass, ...], ...]
    fate: str
    key_id: str = ""
    cost: int = 0
    """10⁻⁹ dollars of its turns; now and then more than it held."""
    waits: tuple[PriceClass, ...] = ()
    """The calls that wait for leave before its first round: it pauses for them."""
    started: float = 0.0
    crashes: int = 0


@dataclass(slots=True)
class Run:
    """A step under way: ``wakes`` is when a zombie goes on."""

    chat: Chat | None
    name: str
    step: Step
    spare: bool = False
    wakes: float = 0.0


class World:
    """Users, chats and a clock on fresh tables."""

    def __init__(self, client: DynamoDBClient, seed: str, chats: int, rules: Rules | None = None) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.rules = rules or Rules()
        self.tally = Tally(chats=chats)
        self.real = make_ledger(client)
        self.chats_table = make_chats(client)
        self.watcher = Watcher(self.real.table)
        faults = random.Random(f"{seed} faults")
        self.client: Any = cast("Any", Shaky(client, self.watcher, faults, self.tally))
        self.ledger = Ledger(self.client, self.real.table)
        self.now = BEGIN + self.rng.randrange(60 * 86_400)
        self.users = [f"user-{number}" for number in range(USERS_PER_WORLD)]
        self.todo = [self._chat(number) for number in range(chats)]
        self.early = {chat.id for chat in self.todo if chat.fate == "cancel early"}
        self.admitted: list[Chat] = []
        self.runs: list[Run] = []

    def _chat(self, number: int) -> Chat:
        calls: tuple[PriceClass, ...] = ("documentation", "github", "other")
        rounds = tuple(
            tuple(self.rng.choice(calls) for _ in range(self.rng.randint(1, 4)))
            for _ in range(self.rng.choice((0, 0, 1, 1, 2)))
        )
        fate = self.rng.choice(
            ("answer",) * 6
            + (
                "cancel",
                "cancel early",
                "cancel early",
                "fail",
                "fail by its tool",
                "fail by its tool",
                "die",
                "double",
            )
        )
        rounds = () if fate == "cancel early" else rounds
        key_id = self.rng.choice(("", *KEYS))
        cost = self.rng.choice((3, 12, HELD - KEPT, HELD + 9))
        waits = self.rng.choice(((), (), ("other",), ("documentation",))) if fate != "cancel early" else ()
        return Chat(f"ch_{number:04d}", self.rng.choice(self.users), rounds, fate, key_id, cost, waits)

    def play(self) -> Tally:
        """Run until every chat has ended; raise `RuleBroken` with the seed at the first broken rule."""
        try:
            with (
                patch.object(account_module, "PLANS", SMALL_PLANS),
                patch.object(account_module, "FREE_CANCELS", FREE_CANCELS),
                patch.object(audit_module, "FREE_CANCELS", FREE_CANCELS),
            ):
                self._make_keys()
                while self.todo or self.runs or self._open():
                    self._tick()
                self._close()
        except RuleBroken as broken:
            raise RuleBroken(f"seed {self.seed!r}: {broken}") from broken
        finally:
            self.client.delete_table(TableName=self.real.table)
            self.client.delete_table(TableName=self.chats_table)
        return self.tally

    def _make_keys(self) -> None:
        for user in self.users:
            for key_id in KEYS:
                self.ledger.add_key(user, key_id, Caps().changed(self._some_caps()), self.now)

    def _some_caps(self) -> dict[str, float | None]:
        """Caps that a world can reach, in credits and dollars."""
        limits = ((None, 30, 80), (None, 100e-9, 400e-9), (None, 15, 30), (None, 50e-9, 100e-9))
        return {name: self.rng.choice(limit) for name, limit in zip(CAPS, limits, strict=True)}

    def _open(self) -> list[Chat]:
        return [chat for chat in self.admitted if self.watcher.status.get(chat.id) in ("running", "paused")]

    # ── whose turn it is ──────────────────────────────────────────────────────────────────────

    def _tick(self) -> None:
        self.tally.steps += 1
        self._advance_clock()
        if self.todo and len(self.runs) < 8 and self.rng.random() < 0.5:
            self._admit(self.todo.pop())
        if self.rng.random() < 0.03:
            self._operator()
        self._sweep()
        awake = [run for run in self.runs if run.wakes <= self.now]
        if awake:
            self._advance(self.rng.choice(awake))
        elif self.runs:
            self.now = min(run.wakes for run in self.runs)

    def _advance_clock(self) -> None:
        luck = self.rng.random()
        if luck < 0.002:
            self.now += self.rng.choice((3_600, 86_400, 20 * 86_400))
        elif luck < 0.006:
            self.now = next_day(self.now) - self.rng.random() * 2
        else:
            self.now += self.rng.random() * 4

    def _clock(self) -> float:
        """A writer's clock, slightly off."""
        return self.now + self.rng.uniform(-1.5, 1.5)

    def _admit(self, chat: Chat) -> None:
        self.admitted.append(chat)
        self._spawn(chat, "start")

    def _spawn(self, chat: Chat, name: str, *, spare: bool = False) -> None:
        self.runs.append(Run(chat, name, self._step(chat, name), spare))
        if not spare and self.rng.random() < 0.12:
            self.tally.counts["duplicate"] += 1
            self._spawn(chat, name, spare=True)

    def _step(self, chat: Chat, name: str) -> Step:
        if name == "start":
            return self._start(chat)
        if name.startswith("tools"):
            return self._tools(chat, int(name.removeprefix("tools")))
        if name in ("summaries", "digest"):
            return self._charge(chat, name)
        if name == "pause":
            return self._pause(chat)
        if name == "resume":
            return self._resume(chat)
        return self._finish(chat, name)

    def _advance(self, run: Run) -> None:
        luck = self.rng.random()
        if luck < 0.02:
            self.tally.counts["zombie"] += 1
            run.wakes = self.now + self.rng.choice((30, 600, CHAT_SECONDS, 5 * 3_600))
            if not run.spare:
                run.spare = True
                self._retry(run)
            return
        try:
            next(run.step)
        except StopIteration:
            self.runs.remove(run)
            self._done(run)
        except Contended:
            self._crash(run, "contended")
        else:
            if luck > 0.95:
                self._crash(run, "crash")

    def _crash(self, run: Run, why: str) -> None:
        self.tally.counts[why] += 1
        run.step.close()
        self.runs.remove(run)
        if not run.spare:
            self._retry(run)

    def _retry(self, run: Run) -> None:
        """The workflow runs a step three times, then fails the chat; a dead step is not retried."""
        chat = run.chat
        if chat is None:
            return
        chat.crashes += 1
        if run.name == "start" and chat.crashes > 2:
            return  # the client gives up; if the chat was admitted, the sweep ends it
        self._spawn(chat, run.name if chat.crashes <= 3 or run.name == "failed" else "failed")

    def _done(self, run: Run) -> None:
        chat = run.chat
        if run.spare or chat is None:
            return
        if chat.key_id and self.watcher.status.get(chat.id) == "answered":
            if run.name in AFTER and self.rng.random() < 0.9:
                self._spawn(chat, AFTER[run.name])
            return
        if self.watcher.status.get(chat.id) != "running":
            return
        if following := self._following(chat, run.name):
            for name in following:
                self._spawn(chat, name)

    def _following(self, chat: Chat, name: str) -> tuple[str, ...]:
        if name == "start" and chat.waits:
            return ("pause",)
        if not name.startswith(("start", "resume", "tools")):
            return ()
        done = int(name.removeprefix("start").removeprefix("resume").removeprefix("tools") or 0)
        if chat.fate == "die" and self.rng.random() < 0.5:
            return ()
        return (f"tools{done + 1}",) if done < len(chat.rounds) else ENDS[chat.fate]

    def _sweep(self) -> None:
        """End some of the chats past their deadline; the rest is left to the ledger's own expiry of holds. Of paused
        ones somebody decides, at any time."""
        for chat in self._open():
            busy = any(run.chat is chat and not run.spare for run in self.runs)
            waits = self.watcher.status[chat.id] == "paused"
            late = waits or self.now > chat.started + CHAT_SECONDS
            if late and not busy and self.rng.random() < (0.02 if waits else 0.1):
                self._spawn(chat, "resume" if waits else "failed")
        if not self.runs:
            self.now += 60

    def _operator(self) -> None:
        """Grants, plans, resets and expiries, each its own writer, without retries."""
        user, now = self.rng.choice(self.users), self._clock()
        match self.rng.choice(("grant", "plan", "reset", "rest", "expire", "caps", "caps", "revoke")):
            case "caps":
                key_id, said = self.rng.choice(KEYS), self._some_caps()
                step = self._move(user, lambda account: _with_caps(account, key_id, said, now))
            case "revoke" if self.rng.random() < 0.1:
                key_id = self.rng.choice(KEYS)
                step = self._move(user, lambda account: account.revoke(key_id, now))
            case "revoke":
                return
            case "grant":
                payment, amount = f"payment-{self.rng.randrange(4)}", self.rng.choice((5, 20, 50))
                step = self._move(user, lambda account: account.grant(payment, amount, "pack", now))
            case "plan":
                plan: PlanName = self.rng.choice(("free", "pro"))
                step = self._move(user, lambda account: account.set_plan(plan, now))
            case "expire":
                step = self._move(user, lambda account: account.expire(now))
            case "rest":
                step = self._rest(user, now)
            case _:
                reset_accounts(self.ledger, now, page=2, writers=1)
                return
        self.runs.append(Run(None, "operator", step, spare=True))

    def _move(self, user: str, decide: Callable[[Account], AccountChange]) -> Step:
        while True:
            account = self.ledger.load(user)
            yield
            if (yield from self._commit(self.ledger.actions(account, decide(account)))):
                return

    def _rest(self, user: str, now: float) -> Step:
        """Reset one account, with pauses in which other writers may come first."""
        account = self.ledger.expire(user, now)
        yield
        if account.seq:
            yield from self._commit([self.ledger.rest_action(account, now)])

    # ── the steps of a chat ───────────────────────────────────────────────────────────────────

    def _start(self, chat: Chat) -> Step:
        seen = self.ledger.load(chat.user)
        while True:
            yield
            now = self._clock()
            account = self.ledger.load(chat.user)
            key = UnderKey(chat.key_id, HELD) if chat.key_id else None
            decision = self.rules.hold(seen, account, chat.id, now, key)
            if isinstance(decision, HoldRefusal):
                self.tally.counts["refused"] += 1
                reached = decision.cap.cap if decision.cap else decision.why
                self.tally.counts[f"refused: {reached}"] += 1
                return
            chat.started = self.now
            item = {"pk": chat.id, "sk": "chat", "user": chat.user, "status": "running"}
            record = dynamo.put_absent("chat", self.chats_table, item)
            yield
            if (yield from self._commit([record, *self.ledger.actions(account, decision)])):
                return

    def _tools(self, chat: Chat, number: int) -> Step:
        while True:
            yield
            turns = self._turns(chat)
            if number in turns:
                return
            paid = {call for ran in turns.values() for call in ran}
            now = self._clock()
            account = self.ledger.load(chat.user)
            calls = chat.rounds[number - 1]
            decision = account.hold_tools(chat.id, calls, paid, now)
            ran = [call for call, fits in zip(calls, decision.fits, strict=True) if fits]
            item = {"pk": chat.id, "sk": f"turn#{number}", "ran": ",".join(ran)}
            record = dynamo.put_absent("turn", self.chats_table, item)
            yield
            if (
                yield from self._commit(
                    [self._still_running(chat), record, *self.ledger.actions(account, decision)]
                )
            ):
                return

    def _pause(self, chat: Chat) -> Step:
        """A hold of what it has cost by now."""
        while True:
            yield
            now, account = self._clock(), self.ledger.load(chat.user)
            decision = self.rules.pause(account, chat.id, now, chat.cost // 2)
            waits = self.rules.change(self.chats_table, chat.id, "paused")
            once = dynamo.put_absent("pause", self.chats_table, {"pk": chat.id, "sk": "pause"})
            yield
            if (yield from self._commit([waits, once, *self.ledger.actions(account, decision)])):
                return

    def _resume(self, chat: Chat) -> Step:
        """Its calls are approved; if its key's cap leaves too little, it waits on, or fails."""
        while True:
            yield
            now, account = self._clock(), self.ledger.load(chat.user)
            needed = HELD if chat.key_id else 0
            decision = self.rules.resume(account, chat.id, chat.waits, (), now, needed)
            if isinstance(decision, HoldRefusal):
                self.tally.counts["refused to go on"] += 1
                if self.rng.random() < 0.8:
                    return
                cost = Cost(chat.cost, chat.key_id)
                ended = account.release(chat.id, now, cost)
                moves = [self.rules.change(self.chats_table, chat.id, "failed", "paused")]
            else:
                self.tally.counts["went on"] += 1
                chat.started, ended = self.now, decision
                ran = [call for call, fits in zip(chat.waits, decision.fits, strict=True) if fits]
                item = {"pk": chat.id, "sk": "turn#0", "ran": ",".join(ran)}
                moves = [
                    self.rules.change(self.chats_table, chat.id, "running", "paused"),
                    dynamo.put_absent("turn", self.chats_table, item),
                ]
            yield
            if (yield from self._commit([*moves, *self.ledger.actions(account, ended)])):
                return

    def _finish(self, chat: Chat, status: str) -> Step:
        while True:
            yield
            turns = self._turns(chat)
            now = self._clock()
            account = self.ledger.load(chat.user)
            cost = Cost(chat.cost, chat.key_id, KEPT if status == "answered" else 0)
            if status == "failed" and chat.fate == "fail by its tool":
                decision = self.rules.refuse(account, chat.id, now, cost)
            elif status == "failed":
                decision = self.rules.release(account, chat.id, now, cost)
            elif chat.fate == "cancel early":
                decision = self.rules.cancel(account, chat.id, now, cost)
            else:
                amount = price_chat([call for ran in turns.values() for call in ran])
                decision = self.rules.settle(account, chat.id, amount, now, cost)
            ending = self.rules.end(self.chats_table, chat.id, status)
            yield
            if (yield from self._commit([ending, *self.ledger.actions(account, decision)])):
                return

    def _charge(self, chat: Chat, name: str) -> Step:
        """The summaries or the digest of an answered chat, each recorded once."""
        while True:
            yield
            now = self._clock()
            account = self.ledger.load(chat.user)
            cost = Cost(2, chat.key_id, KEPT_FOR_DIGEST if name == "summaries" else 0)
            decision = account.charge(chat.id, now, cost)
            record = dynamo.put_absent(name, self.chats_table, {"pk": chat.id, "sk": name})
            yield
            if (yield from self._commit([record, *self.ledger.actions(account, decision)])):
                return

    def _still_running(self, chat: Chat) -> Action:
        key = {"pk": chat.id, "sk": "chat"}
        return dynamo.check("chat", self.chats_table, key, "#s = :r", {":r": "running"}, {"#s": "status"})

    def _turns(self, chat: Chat) -> dict[int, tuple[PriceClass, ...]]:
        items = dynamo.query(self.client, self.chats_table, chat.id, prefix="turn#")
        return {int(item["sk"].removeprefix("turn#")): _calls(item["ran"]) for item in items}

    def _commit(self, actions: list[Action]) -> Generator[None, None, bool]:
        """Whether the step is over: written, or already written by another. Otherwise decide again."""
        try:
            if actions:
                dynamo.transact(self.client, actions, _no_pause)
        except ConditionFailed as lost:
            if account_moved(lost):
                self.tally.counts["decided anew"] += 1
                return False
            self.tally.counts["overtaken"] += 1
        yield
        return True

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def _close(self) -> None:
        """At the end nothing is held, the engine has what the watcher saw, and prices are right."""
        self.client.faults = False
        self.now += HOLD_SECONDS + 10
        for user in self.users:
            self.ledger.expire(user, self.now)
            account = self.ledger.load(user)
            self._rule(not account.holds, f"{user} still holds {dict(account.holds)}")
        reset_accounts(self.ledger, next_day(self.now), writers=1)
        indexed = len(rows(self.client, self.real.table, "active"))
        self._rule(indexed == 0, f"{indexed} accounts at rest are in the index")
        self._compare()
        for lines in self.watcher.movements.values():
            self.tally.counts.update(f"line: {line.kind}" for line in lines)
        for chat, status in self.watcher.status.items():
            self._price(chat, status)

    def _compare(self) -> None:
        stored = {
            (table, item["pk"], item["sk"]): item
            for table, name in (("credits", self.real.table), ("chats", self.chats_table))
            for item in map(dynamo.from_wire, rows(self.client, name))
        }
        self._rule(stored == self.watcher.items, "the engine's items are not those that were written")

    def _price(self, chat: str, status: str) -> None:
        self.tally.counts[status] += 1
        self._cost(chat, status)
        turns = [item["ran"] for key, item in self.watcher.items.items() if key[1] == chat and "ran" in item]
        price = price_chat([call for ran in turns for call in _calls(ran)])
        charged = self.watcher.charged.get(chat, 0)
        own = next(admitted for admitted in self.admitted if admitted.id == chat)
        if status == "failed" and own.fate == "fail by its tool" and chat not in self.watcher.expired:
            wanted = CHAT_PRICE if self.watcher.free_before[chat] >= FREE_CANCELS else 0
            self._rule(charged == wanted, f"{chat} failed by its tool for {charged} instead of {wanted}")
        elif status == "failed":
            self._rule(charged == 0, f"{chat} failed and was charged {charged}")
        elif chat in self.early and chat not in self.watcher.expired:
            wanted = price if self.watcher.free_before[chat] >= FREE_CANCELS else 0
            self.tally.counts[f"cancelled early for {charged}"] += 1
            self._rule(charged == wanted, f"{chat} was cancelled early for {charged} instead of {wanted}")
        elif chat in self.watcher.expired:
            self._rule(charged <= price, f"{chat} was charged {charged} instead of {price}")
        else:
            self._rule(charged == price, f"{chat} was charged {charged} instead of {price}")

    def _cost(self, chat: str, status: str) -> None:
        """A chat by a key has cost it exactly what was recorded, however it ended; a cancelled one has cost as much."""
        own = next(admitted for admitted in self.admitted if admitted.id == chat)
        sides = [("chats", chat, name) in self.watcher.items for name in ("summaries", "digest")]
        wanted = own.cost * (status != "running") + 2 * sum(sides) if own.key_id else 0
        self.tally.counts["cost more than it held"] += own.key_id != "" and own.cost > HELD
        self.tally.counts["a digest under a key"] += sides[1]
        charged = self.watcher.under.get(chat, 0)
        self._rule(charged == wanted, f"{chat} ({status}) has cost its key {charged} instead of {wanted}")

    def _rule(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise RuleBroken(otherwise)


def _dollar_day(parts: Sequence[KeyPart]) -> str:
    """The last day on which a chat holds dollars, else its first."""
    held = dict[str, int]()
    for part in parts:
        held[part.day] = held.get(part.day, 0) + part.nanodollars
    return max((day for day, amount in held.items() if amount), default=parts[0].day)


def _with_caps(account: Account, key_id: str, said: Mapping[str, float | None], now: float) -> AccountChange:
    """Other caps for a key that was not revoked."""
    use = account.keys.get(key_id)
    return AccountChange(account) if use is None or use.is_revoked else account.change_caps(key_id, said, now)


def _calls(text: str) -> tuple[Any, ...]:
    return tuple(text.split(",")) if text else ()


def _no_pause(attempt: int) -> None:
    """Retries do not wait: time is simulated."""


def worlds(chats: int, seed: int) -> Iterator[tuple[str, int]]:
    """Seeds and sizes of worlds that together have this many chats."""
    for number in range(-(-chats // CHATS_PER_WORLD)):
        yield f"{seed}/{number}", min(CHATS_PER_WORLD, chats - number * CHATS_PER_WORLD)
