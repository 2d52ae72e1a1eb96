"""A user's account: a frozen value and the pure decisions on it (CONTRACT 8, DESIGN 2.8).

The account stores usage, not remainders, and its open holds apart from it::

    settled usage (used_day, used_month, pack spent)      holds, each part marked with its day
    ────────────────────────────────────────────────      ────────────────────────────────────
    available = max(0, min(day limit − used − held of that day, month limit − used − held of that month))
              + pack − held of the pack

So a new day needs no write, a plan change needs no correction, and a hold that ends after midnight
touches only the day it was taken from. Limits are checked when holding and never again: settling
turns held credits into used ones and cannot fail.

A day never turns back: a writer whose clock is behind works on the day that is already stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal

from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.clock import day_of, iso
from dualtrack.codec import APART, TEXT, stored
from dualtrack.credits.keys import (
    CapReached,
    CapSums,
    KeyPart,
    KeyUse,
    UnderKey,
    charged,
    dollar_day,
    dollars_in,
    freed_dollars,
    merged,
    sums_of,
)
from dualtrack.credits.plans import CHAT_PRICE, DEFAULT_PLAN, PLANS, Plan, price_calls, upgrade
from dualtrack.errors import ApiError, invalid_request, not_found
from dualtrack.vocabulary import CapName, MovementKind, PlanName

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dualtrack.answers import Credits, Details, KeyFigures, Monthly
    from dualtrack.credits.keys import Caps
    from dualtrack.tool_values import PriceClass


HOLD_SECONDS: Final = CHAT_SECONDS + 10 * 60
"""Most chats last at most 15 minutes, and a hold 10 more (CONTRACT 7, 8); after that it is dead. That of a chat that
may take longer begins so much later (`Hold.at`)."""

MAX_OPEN_HOLDS: Final = 200
"""Bounds the size of the account item (about 70 bytes a hold). More chats at once are refused with 429. Dead holds
do not make it larger: a chat that starts removes at least one of them."""

MOST_KEYS: Final = 20
"""API keys of a user that are not revoked; each is about 60 bytes of the account item."""

EXPIRED_AT_ONCE: Final = 20
"""Maximum number of dead holds that one movement frees. Each is a line of the ledger, and so a write in the
movement's transaction, which may have 100 including the chat's."""

_LONG_AGO: Final = 0
"""The time of a hold that is dead for every clock. The chats' ids, which begin with the time, order such holds."""

FREE_CANCELS: Final = 10
FREE_CANCELS_SECONDS: Final = 60 * 60
"""A chat that is cancelled before the model's first byte is free, and one that fails by what its request brought, so
often within this time; then it costs what any chat does. Otherwise chats could be started and ended without end."""

FREE_CANCEL: Final = "cancelled before the model answered"
FREE_FAILURE: Final = "failed by what the request brought"
FREE_ENDS: Final = frozenset({FREE_CANCEL, FREE_FAILURE})
TOO_MANY: Final = f", after {FREE_CANCELS} free ends within an hour"
TOO_MANY_CANCELS: Final = FREE_CANCEL + TOO_MANY
TOO_MANY_FAILURES: Final = FREE_FAILURE + TOO_MANY
REVOKED: Final = "revoked"
PAUSED: Final = "waits for a decision"
RESUMED: Final = "goes on after a decision"
"""Reasons in the ledger."""

MAX_GRANT_ID: Final = 255


@stored(row=True)
@dataclass(frozen=True, slots=True)
class CreditPart:
    """Credits from one source. ``day``: the UTC day whose allowance they count against (pack: empty)."""

    day: str
    amount: int

    @property
    def is_pack(self) -> bool:
        """Whether they are of the pack, and of no day's allowance."""
        return not self.day

    @property
    def month(self) -> str:
        """``2026-11``."""
        return self.day[:7]


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Hold:
    """What a chat has reserved at ``at`` (epoch seconds): credits by source, and under its API key credits and dollars
    by day. A chat by a key that is answered holds no credits any more, but dollars for its summaries and its digest.
    Of a paused chat ``at`` is when what it needs may go: later than the end of its pause. Of one that may take longer
    than most chats it is so much later than the beginning."""

    at: int
    parts: tuple[CreditPart, ...]
    key_id: str = ""
    key_parts: tuple[KeyPart, ...] = ()

    @property
    def amount(self) -> int:
        """Credits held."""
        return _total(self.parts)

    def is_dead(self, now: float) -> bool:
        """Its chat must have ended at least ten minutes ago."""
        return now >= self.at + HOLD_SECONDS


@stored
@dataclass(frozen=True, slots=True)
class Movement:
    """One line of the ledger. ``amount`` ≥ 0 was held, charged, freed or granted, as ``kind`` says; ``parts`` are
    the credits held or charged, by source; ``nanodollars``, in the line that ends a chat, is the model cost of its
    turns, in one of kind `cost` that of its summaries or its digest.

    ``key_id``: the API key of the chat; ``key_parts``: what was held or charged under it, by day (negative: dollars
    that a chat frees as it pauses); ``kept``: the 10⁻⁹ dollars that a chat which has ended still holds under it.
    ``profile``: the chat's, in a line that ends it or has a cost."""

    kind: MovementKind
    amount: int
    available_after: int
    at: Annotated[float, APART]
    chat_id: str = ""
    reason: str = ""
    parts: Annotated[tuple[CreditPart, ...], TEXT] = ()
    nanodollars: int = 0
    key_id: str = ""
    key_parts: Annotated[tuple[KeyPart, ...], TEXT] = ()
    kept: int = 0
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a chat's model calls have cost, in 10⁻⁹ dollars. ``key_id``: its API key, if it has one; ``kept``: what it
    goes on holding under the key for calls to come; ``profile``: its agent."""

    nanodollars: int = 0
    key_id: str = ""
    kept: int = 0
    profile: str = ""


_NO_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class AccountChange:
    """The account as it will be, and the movements that make it so (none: nothing to write).

    ``amount``: credits held, charged, freed or granted. ``fits``: for a hold of several amounts,
    which of them, in order, could be held. ``grant_id`` makes a grant happen once.
    """

    account: Account
    movements: tuple[Movement, ...] = ()
    amount: int = 0
    fits: tuple[bool, ...] = ()
    grant_id: str = ""

    @property
    def charged(self) -> int:
        """The credits that it charges."""
        return sum(movement.amount for movement in self.movements if movement.kind == "settle")

    def because(self, reason: str) -> AccountChange:
        """The same with a reason in the lines that say none."""
        lines = (replace(line, reason=line.reason or reason) for line in self.movements)
        return replace(self, movements=tuple(lines))


@dataclass(frozen=True, slots=True)
class HoldRefusal:
    """A chat that may not start. ``resets_at``: epoch seconds when the allowance covers it again; ``cap``: the cap of
    its API key that it does not fit."""

    required: int
    available: int
    resets_at: float
    why: Literal["credits", "holds", "cap", "revoked"] = "credits"
    cap: CapReached | None = None

    def error(self, upgrade_message: str = "") -> ApiError:
        """402 with the contract's fields, 429 if too many chats of the user are open, or 401 if the key was revoked
        meanwhile. ``upgrade_message``: the deployment's own, if it has one.
        """
        if self.cap:
            return self.cap.error()
        if self.why == "revoked":
            return ApiError("unauthorized", "This API key was revoked.")
        if self.why == "holds":
            message = f"At most {MAX_OPEN_HOLDS} chats may run at once."
            return ApiError("rate_limited", message, {"retry_after": 60})
        extra: Details = {
            "required": self.required,
            "available": self.available,
            "resets_at": iso(self.resets_at),
            "upgrade": upgrade(upgrade_message),
        }
        message = f"This needs {self.required} credits; {self.available} are available."
        return ApiError("insufficient_credits", message, extra)


@stored
@dataclass(frozen=True, slots=True)
class Account:
    """One user's credits as of the last movement. ``seq`` counts the movements; ``free_cancels``: when the latest chats
    were cancelled for free (epoch seconds), at most `FREE_CANCELS`; ``keys``: the user's API keys, a revoked one until
    its last hold has ended."""

    user: Annotated[str, APART]
    plan: PlanName = DEFAULT_PLAN
    seq: int = 0
    day: str = ""
    used_day: int = 0
    used_month: int = 0
    pack: int = 0
    holds: Annotated[Mapping[str, Hold], TEXT] = field(default_factory=lambda: MappingProxyType({}))
    free_cancels: Annotated[tuple[int, ...], TEXT] = ()
    keys: Annotated[Mapping[str, KeyUse], TEXT] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def month(self) -> str:
        """The month of ``used_month``."""
        return self.day[:7]

    @property
    def limits(self) -> Plan:
        """The plan's figures."""
        return PLANS[self.plan]

    # ── state at a time ───────────────────────────────────────────────────────────────────────

    def at(self, now: float) -> Account:
        """The same account with its day and month brought to ``now``; nothing else changes."""
        today = max(self.day, day_of(now))
        if today == self.day:
            return self
        used_month = self.used_month if today[:7] == self.month else 0
        keys = MappingProxyType({key_id: use.next_day() for key_id, use in self.keys.items()})
        return replace(self, day=today, used_day=0, used_month=used_month, keys=keys)

    def dead_holds(self, now: float) -> tuple[str, ...]:
        """Chats whose holds no longer count, oldest first (a DynamoDB map has no order)."""
        dead = [(hold.at, chat_id) for chat_id, hold in self.holds.items() if hold.is_dead(now)]
        return tuple(chat_id for _, chat_id in sorted(dead))

    def held(self, now: float) -> int:
        """Credits in open holds."""
        return sum(hold.amount for hold in self.holds.values() if not hold.is_dead(now))

    def available(self, now: float, key_id: str = "") -> int:
        """Credits that a new hold, under this key, may take; never negative."""
        current = self.at(now)
        left = current._allowance_left(now) + current._pack_left(now)
        if not key_id:
            return left
        use = current.keys.get(key_id)
        return int(min(left, use.credits_left(current.held_under(key_id, now)))) if use else 0

    def held_under(self, key_id: str, now: float) -> CapSums:
        """What the open holds take of a key's caps."""
        holds = (hold for hold in self.holds.values() if hold.key_id == key_id and not hold.is_dead(now))
        return sums_of((part for hold in holds for part in hold.key_parts), self.at(now).day)

    def _allowance_left(self, now: float) -> int:
        parts = [part for part in self._open_parts(now) if not part.is_pack]
        held_day = sum(part.amount for part in parts if part.day == self.day)
        left = self.limits.daily - self.used_day - held_day
        if self.limits.monthly is not None:
            held_month = sum(part.amount for part in parts if part.month == self.month)
            left = min(left, self.limits.monthly - self.used_month - held_month)
        return max(0, left)

    def _pack_left(self, now: float) -> int:
        return self.pack - _total([part for part in self._open_parts(now) if part.is_pack])

    def _open_parts(self, now: float) -> tuple[CreditPart, ...]:
        return tuple(part for hold in self.holds.values() if not hold.is_dead(now) for part in hold.parts)

    # ── decisions ─────────────────────────────────────────────────────────────────────────────

    def hold(
        self, chat_id: str, amount: int, now: float, key: UnderKey | None = None, longer: int = 0
    ) -> AccountChange | HoldRefusal:
        """Reserve the credits that a chat needs to start, and under a key the most that it may cost; all or nothing.
        ``longer``: the seconds that it may take more than most chats."""
        _check_amount(amount)
        available = self.available(now)
        if amount > available:
            return HoldRefusal(amount, available, self.covers_again(amount, now))
        if len(self.holds) - len(self.dead_holds(now)) >= MAX_OPEN_HOLDS and chat_id not in self.holds:
            return HoldRefusal(amount, available, now, "holds")
        refused = self._refused_by(key, amount, now) if key else None
        return refused or self._take(chat_id, amount, now, key, longer)

    def _refused_by(self, key: UnderKey, amount: int, now: float) -> HoldRefusal | None:
        current = self.at(now)
        use = current.keys.get(key.key_id)
        if use is None or use.is_revoked:
            return HoldRefusal(amount, current.available(now, key.key_id), next_day(now), "revoked")
        return current._refused_by_cap(key, amount, now)

    def _refused_by_cap(self, key: UnderKey, amount: int, now: float) -> HoldRefusal | None:
        available, tomorrow = self.available(now, key.key_id), next_day(now)
        wanted = KeyPart(self.day, amount, key.nanodollars)
        cap = self.keys[key.key_id].reached(self.held_under(key.key_id, now), wanted, tomorrow)
        return HoldRefusal(amount, available, tomorrow, "cap", cap) if cap else None

    def hold_tools(
        self,
        chat_id: str,
        calls: Sequence[PriceClass],
        paid: Collection[PriceClass],
        now: float,
    ) -> AccountChange:
        """Reserve a turn's tools in call order, each that fits; ``fits`` says which may run.

        ``paid``: the price classes whose price this chat has held before: what is charged once is free only
        after a paid call. A chat without its own hold (it has ended, or its hold was given up as dead) gets nothing
        more: only the start of a chat opens a hold, so none can appear after a chat's end.
        """
        own = self._running(chat_id, now)
        left = self.available(now, own.key_id) if own else 0
        fits: list[bool] = []
        taken, charged = 0, {*paid}
        for call in calls:
            (price,) = price_calls((call,), charged)
            fits.append(taken + price <= left)
            if fits[-1]:
                taken += price
                charged.add(call)
        return replace(self._take(chat_id, taken, now), fits=tuple(fits))

    def pause(self, chat_id: str, until: float, now: float, nanodollars: int = 0) -> AccountChange:
        """Keep the chat's hold alive ``until`` its pause must be over: a line of 0 credits. Of its dollars under a key
        it holds what its calls have cost."""
        hold = self._running(chat_id, now)
        if hold is None:
            return AccountChange(self)
        return self._held_from(chat_id, hold, until, now, freed_dollars(hold.key_parts, nanodollars), PAUSED)

    def resume(
        self,
        chat_id: str,
        calls: Sequence[PriceClass],
        paid: Collection[PriceClass],
        now: float,
        nanodollars: int = 0,
        longer: int = 0,
    ) -> AccountChange | HoldRefusal:
        """The chat's hold lives as long as it would from ``now`` on, and takes the price of the approved ``calls``, as
        `hold_tools` does. Under a key it holds ``nanodollars`` again, or is refused: a key that was revoked meanwhile
        lets its chats run to their end."""
        hold = self._running(chat_id, now)
        if hold is None:
            return self.hold_tools(chat_id, calls, paid, now)
        missing = max(0, nanodollars - dollars_in(hold.key_parts)) if hold.key_id else 0
        current = self.at(now)
        if missing and (refused := current._refused_by_cap(UnderKey(hold.key_id, missing), 0, now)):
            return refused
        parts = (KeyPart(current.day, 0, missing),) if missing else ()
        running = current._held_from(chat_id, hold, now + longer, now, parts, RESUMED)
        held = running.account.hold_tools(chat_id, calls, paid, now)
        return replace(held, movements=running.movements + held.movements)

    def _running(self, chat_id: str, now: float) -> Hold | None:
        """The hold of a chat that has not ended."""
        hold = self.holds.get(chat_id)
        return hold if hold and hold.parts and not hold.is_dead(now) else None

    def _held_from(
        self, chat_id: str, hold: Hold, at: float, now: float, parts: Sequence[KeyPart], reason: str
    ) -> AccountChange:
        """The hold as if it had begun ``at`` this time, with these parts under its key."""
        current, more = self.at(now), tuple(parts)
        moved = replace(hold, at=int(at), key_parts=merged((*hold.key_parts, *more)))
        line = Movement("hold", 0, 0, now, chat_id, reason, key_id=hold.key_id, key_parts=more)
        return replace(current, holds=_with(current.holds, chat_id, moved))._moved(line)

    def _take(
        self, chat_id: str, amount: int, now: float, key: UnderKey | None = None, longer: int = 0
    ) -> AccountChange:
        """Hold an amount that fits, allowance before pack; this also expires some dead holds."""
        if not amount:
            return AccountChange(self)
        expired = self.expire(now, first=chat_id)
        account = expired.account
        parts = _split(amount, account._allowance_left(now), account.day)
        old = account.holds.get(chat_id, Hold(int(now) + longer, (), key.key_id if key else ""))
        key_parts = (KeyPart(account.day, amount, key.nanodollars if key else 0),) if old.key_id else ()
        hold = replace(old, parts=_merged(old.parts + parts), key_parts=merged(old.key_parts + key_parts))
        held = replace(account, holds=_with(account.holds, chat_id, hold))
        line = Movement("hold", amount, 0, now, chat_id, parts=parts, key_id=hold.key_id, key_parts=key_parts)
        decision = held._moved(line)
        return replace(decision, movements=expired.movements + decision.movements)

    def settle(self, chat_id: str, amount: int, now: float, cost: Cost = _NO_COST) -> AccountChange:
        """Charge up to what the chat holds and free the rest; a chat that holds nothing owes no credits.

        Allowance is charged before pack, that of an older day before today's (it is lost anyway). A dead hold is
        expired and charges no credits: other chats may hold them by now. What the chat has cost counts under its key
        in any case.
        """
        _check_amount(amount)
        hold = self.holds.get(chat_id)
        if hold is None or not hold.parts:
            return self._late(chat_id, now, cost)
        if hold.is_dead(now):
            return replace(self._free("expire", chat_id, now, cost), amount=0)
        spent = _spend(hold.parts, amount)
        freed = hold.amount - _total(spent)
        reason = f"{freed} held credits freed" if freed else ""
        return self._end(Movement("settle", _total(spent), 0, now, chat_id, reason, spent), cost)

    def release(self, chat_id: str, now: float, cost: Cost = _NO_COST) -> AccountChange:
        """Free all that the chat holds; no credits are charged."""
        hold = self.holds.get(chat_id)
        if hold is None or not hold.parts:
            return self._late(chat_id, now, cost)
        return self._free("release", chat_id, now, cost)

    def charge(self, chat_id: str, now: float, cost: Cost) -> AccountChange:
        """Count what a chat that has ended has cost since, its summaries or its digest, under its key; free what it
        does not keep."""
        hold = self.holds.get(chat_id)
        if hold is None:
            return self._late(chat_id, now, cost)
        if hold.parts:
            raise ValueError("A chat that holds credits has not ended.")
        return self._end(Movement("cost", 0, 0, now, chat_id), cost)

    def _late(self, chat_id: str, now: float, cost: Cost) -> AccountChange:
        """The cost of a chat that holds no credits any more; dollars that it holds stay held. A closed account stays
        closed."""
        if not cost.key_id or not cost.nanodollars or not self.seq:
            return AccountChange(self)
        current = self.at(now)
        parts = (KeyPart(current.day, 0, cost.nanodollars),)
        hold = self.holds.get(chat_id)
        kept = dollars_in(hold.key_parts) if hold and hold.key_id == cost.key_id else 0
        line = Movement(
            "cost", 0, 0, now, chat_id, "", (), cost.nanodollars, cost.key_id, parts, kept, cost.profile
        )
        return current._used((), cost.key_id, parts)._moved(line)

    def cancel_unanswered(self, chat_id: str, now: float, cost: Cost = _NO_COST) -> AccountChange:
        """End a chat that was cancelled before the model's first byte: for free, unless there were too many such ends
        within the hour."""
        return self._end_for_free(chat_id, now, cost, FREE_CANCEL)

    def fail_by_caller(self, chat_id: str, now: float, cost: Cost = _NO_COST) -> AccountChange:
        """The same of a chat that has failed by what its request brought: both count together."""
        return self._end_for_free(chat_id, now, cost, FREE_FAILURE)

    def _end_for_free(self, chat_id: str, now: float, cost: Cost, reason: str) -> AccountChange:
        recent = [at for at in self.free_cancels if at > now - FREE_CANCELS_SECONDS]
        if len(recent) >= FREE_CANCELS:
            held = self.holds.get(chat_id)
            price = min(CHAT_PRICE, held.amount) if held else CHAT_PRICE
            return self.settle(chat_id, price, now, cost).because(reason + TOO_MANY)
        freed = self.release(chat_id, now, cost)
        if not freed.amount:
            return freed
        freed = freed.because(reason)
        latest = (*self.free_cancels, int(now))[-FREE_CANCELS:]
        return replace(freed, account=replace(freed.account, free_cancels=latest))

    def expire(self, now: float, first: str = "") -> AccountChange:
        """Free holds whose chats must be dead (a second safeguard after the sweep), at most `EXPIRED_AT_ONCE`:
        that of the chat ``first``, then the oldest. The other dead holds are marked as dead for writers of any clock,
        so that other chats can take their credits.

        Returns the account brought to ``now`` even if no hold was dead.
        """
        due = sorted(self.dead_holds(now), key=lambda chat_id: chat_id != first)
        rest = {chat_id: replace(self.holds[chat_id], at=_LONG_AGO) for chat_id in due[EXPIRED_AT_ONCE:]}
        decision = AccountChange(replace(self.at(now), holds=MappingProxyType({**self.holds, **rest})))
        for chat_id in due[:EXPIRED_AT_ONCE]:
            freed = decision.account._free("expire", chat_id, now)
            decision = AccountChange(
                freed.account, decision.movements + freed.movements, decision.amount + freed.amount
            )
        return decision

    def _free(self, kind: MovementKind, chat_id: str, now: float, cost: Cost = _NO_COST) -> AccountChange:
        hold = self.holds.get(chat_id)
        return self._end(Movement(kind, hold.amount, 0, now, chat_id), cost) if hold else AccountChange(self)

    def _end(self, line: Movement, cost: Cost) -> AccountChange:
        """End a hold, or lower it to what the chat keeps; the line's ``parts`` are charged."""
        hold, current = self.holds[line.chat_id], self.at(line.at)
        kept = cost.kept if hold.key_id else 0
        key_parts = charged(hold.key_parts, _total(line.parts), cost.nanodollars)
        holds = _without(current.holds, line.chat_id)
        if kept:
            rest = (KeyPart(dollar_day(hold.key_parts), 0, kept),)
            holds = _with(holds, line.chat_id, replace(hold, parts=(), key_parts=rest))
        after = replace(current, holds=holds)._used(line.parts, hold.key_id, key_parts)
        of_chat = replace(line, nanodollars=cost.nanodollars, key_id=hold.key_id, profile=cost.profile)
        return after._moved(replace(of_chat, key_parts=key_parts, kept=kept))

    def _used(self, spent: Sequence[CreditPart], key_id: str, key_parts: Sequence[KeyPart]) -> Account:
        """With these credits used, and these parts under the key; without revoked keys that hold nothing."""
        allowance = [part for part in spent if not part.is_pack]
        keys = {
            other: use.spent(key_parts, self.day) if other == key_id else use
            for other, use in self.keys.items()
        }
        return replace(
            self,
            used_day=self.used_day + _total([part for part in allowance if part.day == self.day]),
            used_month=self.used_month + _total([part for part in allowance if part.month == self.month]),
            pack=self.pack - _total([part for part in spent if part.is_pack]),
            keys=self._without_ended(keys),
        )

    def _without_ended(self, keys: Mapping[str, KeyUse]) -> Mapping[str, KeyUse]:
        holding = {hold.key_id for hold in self.holds.values()}
        ended = {key_id for key_id, use in keys.items() if use.is_revoked and key_id not in holding}
        return MappingProxyType({key_id: use for key_id, use in keys.items() if key_id not in ended})

    def grant(self, grant_id: str, credits: int, reason: str, now: float) -> AccountChange:  # noqa: A002
        """Add a pack. The store makes a repeated ``grant_id`` of the same user change nothing."""
        if credits < 1 or not 1 <= len(grant_id) <= MAX_GRANT_ID:
            raise invalid_request(f"A grant needs 1 credit and a grant_id of 1 to {MAX_GRANT_ID} characters.")
        after = replace(self.at(now), pack=self.pack + credits)
        return replace(after._moved(Movement("grant", credits, 0, now, reason=reason)), grant_id=grant_id)

    def set_plan(self, plan: PlanName, now: float) -> AccountChange:
        """Change the plan at once; what was used today and this month stays used."""
        if plan == self.plan:
            return AccountChange(self)
        return replace(self.at(now), plan=plan)._moved(Movement("plan", 0, 0, now, reason=plan))

    def add_key(self, key_id: str, caps: Caps, now: float) -> AccountChange:
        """Make a new key's use. Raises 400 for one key too many."""
        if sum(not other.is_revoked for other in self.keys.values()) >= MOST_KEYS:
            raise invalid_request(f"You have {MOST_KEYS} keys already: revoke one first.")
        return self._with_use(key_id, KeyUse(caps), caps.text(), now)

    def change_caps(self, key_id: str, said: Mapping[str, float | None], now: float) -> AccountChange:
        """Change the caps that are ``said`` at once (`Caps.changed`), the others not: of two changes at the same time
        both count. What was used and what is held stay. Raises 404 for a key that was revoked."""
        use = self.keys.get(key_id)
        if use is None or use.is_revoked:
            raise not_found("There is no such key.")
        caps = use.caps.changed(said)
        if use.caps == caps:
            return AccountChange(self)
        return self._with_use(key_id, replace(use, caps=caps), caps.text(), now)

    def revoke(self, key_id: str, now: float) -> AccountChange:
        """Admit no more chats under a key; those that run are not touched."""
        use = self.keys.get(key_id)
        if use is None or use.is_revoked:
            return AccountChange(self)
        return self._with_use(key_id, replace(use, is_revoked=True), REVOKED, now)

    def _with_use(self, key_id: str, use: KeyUse, reason: str, now: float) -> AccountChange:
        current = self.at(now)
        use = use if current.day == self.day else use.next_day()
        after = replace(current, keys=current._without_ended({**current.keys, key_id: use}))
        return after._moved(Movement("caps", 0, 0, now, reason=reason, key_id=key_id))

    def _moved(self, line: Movement) -> AccountChange:
        """The decision that adds this line, with the credits that are then available."""
        after = replace(self, seq=self.seq + 1)
        written = replace(line, available_after=after.available(line.at))
        return AccountChange(after, (written,), line.amount)

    def near_cap(self, key_id: str, percent: int, now: float) -> CapName | None:
        """The first cap of a key of which so many percent are used or held; None if there is none."""
        current = self.at(now)
        use = current.keys.get(key_id)
        return use.near(current.held_under(key_id, now), percent) if use else None

    # ── views ─────────────────────────────────────────────────────────────────────────────────

    def key_view(self, key_id: str, now: float) -> KeyFigures:
        """The caps of a key, what was used of them and what is held now; of a key without a use, nothing."""
        current = self.at(now)
        use = current.keys.get(key_id, KeyUse())
        held = current.held_under(key_id, now)
        return {"caps": use.caps.view(), "used": use.used.view(), "held": held.view()}

    def covers_again(self, amount: int, now: float) -> float:
        """Epoch seconds of the next time the allowance may cover ``amount``: midnight UTC, or the
        first of the next month if the monthly limit is the obstacle."""
        tomorrow = next_day(now)
        if self.limits.monthly is None or self.available(tomorrow) >= amount:
            return tomorrow
        return next_month(now)

    def balance(self, now: float) -> Credits:
        """The body of GET /v1/credits. ``used`` and ``remaining`` count charged credits; ``held``
        reduces ``available`` until it is charged or freed."""
        current = self.at(now)
        limits = current.limits
        monthly: Monthly | None = None
        if limits.monthly is not None:
            monthly = {"limit": limits.monthly, "used": current.used_month, "resets_at": iso(next_month(now))}
        return {
            "plan": current.plan,
            "available": current.available(now),
            "held": current.held(now),
            "daily": {
                "limit": limits.daily,
                "used": current.used_day,
                "remaining": max(0, limits.daily - current.used_day),
                "resets_at": iso(next_day(now)),
            },
            "monthly": monthly,
            "pack": {"remaining": current.pack},
        }


def next_day(now: float) -> float:
    """Epoch seconds of the next 00:00 UTC."""
    return (_midnight(now) + timedelta(days=1)).timestamp()


def next_month(now: float) -> float:
    """Epoch seconds of 00:00 UTC on the first of the next month."""
    return (_midnight(now).replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()


def _midnight(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _total(parts: Sequence[CreditPart]) -> int:
    return sum(part.amount for part in parts)


def _split(amount: int, allowance: int, day: str) -> tuple[CreditPart, ...]:
    """Parts for an amount: allowance first, then pack."""
    from_allowance = min(amount, allowance)
    parts = (CreditPart(day, from_allowance), CreditPart("", amount - from_allowance))
    return tuple(part for part in parts if part.amount)


def _merged(parts: Sequence[CreditPart]) -> tuple[CreditPart, ...]:
    """One part per source, in order of first appearance (keeps the account item small)."""
    amounts: dict[str, int] = {}
    for part in parts:
        amounts[part.day] = amounts.get(part.day, 0) + part.amount
    return tuple(CreditPart(day, amount) for day, amount in amounts.items())


def _spend(parts: Sequence[CreditPart], amount: int) -> tuple[CreditPart, ...]:
    """The first ``amount`` credits of the parts: allowance by day, then pack."""
    spent: list[CreditPart] = []
    left = amount
    for part in sorted(parts, key=lambda part: (part.is_pack, part.day)):
        taken = min(left, part.amount)
        left -= taken
        if taken:
            spent.append(replace(part, amount=taken))
    return tuple(spent)


def _with(holds: Mapping[str, Hold], chat_id: str, hold: Hold) -> Mapping[str, Hold]:
    return MappingProxyType({**holds, chat_id: hold})


def _without(holds: Mapping[str, Hold], chat_id: str) -> Mapping[str, Hold]:
    return MappingProxyType({key: hold for key, hold in holds.items() if key != chat_id})


def _check_amount(amount: int) -> None:
    if amount < 0:
        raise ValueError("An amount of credits cannot be negative.")
