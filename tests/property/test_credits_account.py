"""The account's decisions, in any order at any time: never below zero, never above a limit."""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from dualtrack.credits import account as credit_account
from dualtrack.credits.account import (
    EXPIRED_AT_ONCE,
    HOLD_SECONDS,
    MAX_OPEN_HOLDS,
    Account,
    AccountChange,
    Cost,
    CreditPart,
    Hold,
    HoldRefusal,
    Movement,
)
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import CAPS as CAP_NAMES
from dualtrack.credits.keys import NANO, Caps, UnderKey
from dualtrack.credits.plans import CHAT_PRICE, ONCE_PRICES, price_calls, price_chat
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.tool_values import PriceClass
    from dualtrack.vocabulary import PlanName

    Move = Callable[[Account, float], object]

BEGIN = 1_798_700_000.0  # 2026-12-31 06:53 UTC: near a month's end

CHATS = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from(["k", "l"])
NANODOLLARS = st.integers(0, 400)
CREDITS = st.none() | st.integers(0, 60)
DOLLARS = st.none() | st.integers(0, 1_000).map(lambda parts: parts / NANO)
SAID = st.fixed_dictionaries(
    {}, optional={name: CREDITS if name.startswith("credits") else DOLLARS for name in CAP_NAMES}
)
CALLS = st.lists(st.sampled_from(["documentation", "github", "other"]), max_size=5)


def _hold(chat: str, amount: int) -> Move:
    return lambda account, now: account.hold(chat, amount, now)


def _tools(chat: str, calls: list[PriceClass], paid: list[PriceClass]) -> Move:
    return lambda account, now: account.hold_tools(chat, calls, paid, now)


def _hold_by_key(chat: str, key_id: str, nanodollars: int) -> Move:
    under = UnderKey(key_id, nanodollars)
    return lambda account, now: None if chat in account.holds else account.hold(chat, 5, now, under)


def _settle(chat: str, amount: int, cost: Cost) -> Move:
    return lambda account, now: account.settle(chat, amount, now, cost)


def _release(chat: str, cost: Cost) -> Move:
    return lambda account, now: account.release(chat, now, cost)


def _charge(chat: str, cost: Cost) -> Move:
    def move(account: Account, now: float) -> object:
        hold = account.holds.get(chat)
        return None if hold and hold.parts else account.charge(chat, now, cost)

    return move


def _pause(chat: str, seconds: int, nanodollars: int) -> Move:
    return lambda account, now: account.pause(chat, now + seconds, now, nanodollars)


def _resume(chat: str, calls: list[PriceClass], nanodollars: int) -> Move:
    return lambda account, now: account.resume(chat, calls, (), now, nanodollars)


def _change_caps(key_id: str, said: Mapping[str, float | None]) -> Move:
    def move(account: Account, now: float) -> object:
        use = account.keys.get(key_id)
        return None if use is None or use.is_revoked else account.change_caps(key_id, said, now)

    return move


def _revoke(key_id: str) -> Move:
    return lambda account, now: account.revoke(key_id, now)


def _grant(amount: int) -> Move:
    return lambda account, now: account.grant("payment", amount, "pack", now)


def _plan(plan: PlanName) -> Move:
    return lambda account, now: account.set_plan(plan, now)


def _expire(account: Account, now: float) -> object:
    return account.expire(now)


COSTS = st.builds(Cost, NANODOLLARS, st.just("") | KEYS, st.integers(0, 100))
MOVES = st.one_of(
    st.builds(_hold, CHATS, st.integers(0, 60)),
    st.builds(_tools, CHATS, CALLS, CALLS),
    st.builds(_hold_by_key, CHATS, KEYS, NANODOLLARS),
    st.builds(_pause, CHATS, st.integers(60, 30 * 86_400), NANODOLLARS),
    st.builds(_resume, CHATS, CALLS, NANODOLLARS),
    st.builds(_settle, CHATS, st.integers(0, 90), COSTS),
    st.builds(_release, CHATS, COSTS),
    st.builds(_charge, CHATS, COSTS),
    st.builds(_change_caps, KEYS, SAID),
    st.builds(_revoke, KEYS),
    st.builds(_grant, st.integers(1, 600)),
    st.builds(_plan, st.sampled_from(["free", "pro"])),
    st.just(_expire),
)
WAITS = st.sampled_from([0.0, 1.0, 300.0, 1_500.0, 40_000.0, 86_400.0, 700_000.0, -2.0])


@pytest.mark.parametrize("at_once", [1, EXPIRED_AT_ONCE])
@given(story=st.lists(st.tuples(WAITS, MOVES), max_size=40))
def test_the_ledger_always_explains_the_account(at_once: int, story: list[tuple[float, Move]]) -> None:
    """Also when dead holds accumulate, because a movement frees only one of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credit_account, "EXPIRED_AT_ONCE", at_once)
        _tell(story)


def _tell(story: list[tuple[float, Move]]) -> None:
    account, lines, now = Account("ann"), list[Movement](), BEGIN
    for key_id in ("k", "l"):
        made = account.add_key(key_id, Caps(), now)
        account, lines = made.account, [*lines, *made.movements]
    for wait, move in story:
        now += wait
        before = account.available(now)
        decision = move(account, now)
        if not isinstance(decision, AccountChange):
            continue
        account = decision.account
        lines += decision.movements
        assert audit(account, lines) == ()
        assert account.available(now) >= 0
        for line in decision.movements:
            assert line.kind != "hold" or line.amount <= before
            assert line.kind != "settle" or line.amount == sum(part.amount for part in line.parts)
            if line.kind == "hold" and line.key_id:
                _check_caps(account, line, now)
        assert decision.movements or decision.account in (account.at(now), account)


def _check_caps(account: Account, line: Movement, now: float) -> None:
    """No hold above a cap of its key: credits ever, dollars as the chat starts or goes on after a pause."""
    use, held = account.keys[line.key_id], account.held_under(line.key_id, now)
    dollars = sum(part.nanodollars for part in line.key_parts)
    for name in CAP_NAMES:
        cap, wanted = getattr(use.caps, name), line.amount if name.startswith("credits") else dollars
        assert cap is None or wanted <= 0 or getattr(use.used, name) + getattr(held, name) <= cap


@given(st.integers(0, 400), st.integers(0, 199))
def test_a_start_beside_any_number_of_dead_holds_is_small_and_leaves_fewer(dead: int, alive: int) -> None:
    holds = {f"dead {n:03d}": Hold(int(BEGIN) - 400 + n, (CreditPart("", 5),)) for n in range(dead)}
    holds |= {f"alive {n}": Hold(int(BEGIN) + HOLD_SECONDS, (CreditPart("", 1),)) for n in range(alive)}
    account = Account("ann", pack=10_000, holds=MappingProxyType(holds))
    now = BEGIN + HOLD_SECONDS
    decision = account.hold("chat", 5, now)
    assert not isinstance(decision, HoldRefusal)
    assert len(decision.movements) <= EXPIRED_AT_ONCE + 1
    assert decision.account.available(now) == account.available(now) - 5
    assert len(decision.account.holds) <= max(MAX_OPEN_HOLDS, len(holds)), "so the item is bounded"
    assert [line.chat_id for line in decision.movements[:-1]] == [
        f"dead {n:03d}" for n in range(dead)[:EXPIRED_AT_ONCE]
    ], "oldest first"


@given(CALLS)
def test_a_chat_never_costs_more_than_its_calls_one_by_one(calls: list[PriceClass]) -> None:
    single = [price_chat([call]) - CHAT_PRICE for call in calls]
    repeats = max(0, calls.count("documentation") - 1)
    assert price_chat(calls) == CHAT_PRICE + sum(single) - repeats * ONCE_PRICES["documentation"]


@given(CALLS, st.integers(0, 45))
def test_what_fits_is_a_greedy_choice_in_call_order(calls: list[PriceClass], budget: int) -> None:
    account = Account("ann", day="2026-12-31", used_day=45 - budget, used_month=45 - budget)
    started = account.hold("chat", 5, BEGIN)
    assert isinstance(started, AccountChange)
    decision = started.account.hold_tools("chat", calls, paid=(), now=BEGIN)
    ran = [call for call, fits in zip(calls, decision.fits, strict=True) if fits]
    assert decision.amount == sum(price_calls(ran)) <= budget
    still_left = budget - decision.amount
    skipped = [call for call, fits in zip(calls, decision.fits, strict=True) if not fits]
    assert all(price > still_left for price in price_calls(skipped[-1:], ran))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_held_and_freed_leaves_no_trace(amounts: list[int]) -> None:
    account = reduce(
        lambda held, amount: held.grant(f"payment-{amount}", amount, "pack", BEGIN).account,
        amounts,
        Account("ann"),
    )
    held = account
    for number, amount in enumerate(amounts):
        decision = held.hold(f"chat {number}", amount, BEGIN)
        assert isinstance(decision, AccountChange)
        held = decision.account
    for number in range(len(amounts)):
        held = held.release(f"chat {number}", BEGIN).account
    assert held.balance(BEGIN) == account.balance(BEGIN)
