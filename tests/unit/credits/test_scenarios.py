"""What users are charged, as scenarios. Each has its own clock."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from dualtrack.credits.account import Account, AccountChange, HoldRefusal, Movement
from dualtrack.credits.audit import audit
from dualtrack.credits.plans import price_chat

if TYPE_CHECKING:
    from collections.abc import Collection

    from dualtrack.tool_values import PriceClass
    from dualtrack.vocabulary import PlanName

NOON = "2026-11-21T12:00:00Z"


class Story:
    """One user, a manual clock, and a ledger that must agree after every step."""

    def __init__(self, plan: PlanName = "free", pack: int = 0, at: str = NOON) -> None:
        self.account = Account("ann")
        self.lines: list[Movement] = []
        self.clock(at)
        self.move(self.account.set_plan(plan, self.now))
        if pack:
            self.move(self.account.grant("payment-1", pack, "pack", self.now))

    def clock(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).timestamp()

    def move(self, decision: AccountChange) -> AccountChange:
        self.account = decision.account
        self.lines += decision.movements
        assert audit(self.account, self.lines) == ()
        return decision

    def start(self, chat: str) -> bool:
        """Whether the chat may start."""
        decision = self.account.hold(chat, 5, self.now)
        if isinstance(decision, AccountChange):
            self.move(decision)
        return isinstance(decision, AccountChange)

    def tools(self, chat: str, *calls: PriceClass, paid: Collection[PriceClass] = ()) -> tuple[bool, ...]:
        """Which of a turn's tools may run."""
        return self.move(self.account.hold_tools(chat, calls, paid, self.now)).fits

    def answer(self, chat: str, *ran: PriceClass) -> int:
        """What the answered chat is charged."""
        return self.move(self.account.settle(chat, price_chat(ran), self.now)).amount

    def fail(self, chat: str) -> int:
        """The credits that the failed chat releases."""
        return self.move(self.account.release(chat, self.now)).amount

    def spend(self, amount: int, day: str) -> None:
        """Use this many credits on a day, at noon."""
        self.clock(f"{day}T12:00:00Z")
        decision = self.account.hold("busy", amount, self.now)
        assert isinstance(decision, AccountChange)
        self.move(decision)
        assert self.move(self.account.settle("busy", amount, self.now)).amount == amount

    @property
    def available(self) -> int:
        return self.account.available(self.now)

    @property
    def held(self) -> int:
        return self.account.held(self.now)


# ── prices ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("calls", "price"),
    [
        ((), 5),
        (("documentation",), 15),
        (("documentation", "github", "github"), 21),
        (("documentation", "github", "github", "other", "other"), 25),
    ],
    ids=["a plain question", "with documentation", "and two GitHub calls", "a complex one"],
)
def test_a_chat_costs_what_the_price_list_says(calls: tuple[PriceClass, ...], price: int) -> None:
    story = Story()
    assert story.start("chat")
    assert all(story.tools("chat", *calls))
    assert story.answer("chat", *calls) == price
    assert (story.available, story.held) == (50 - price, 0)


def test_documentation_twice_in_one_turn_is_charged_once() -> None:
    story = Story()
    story.start("chat")
    assert story.tools("chat", "documentation", "documentation") == (True, True)
    assert story.answer("chat", "documentation", "documentation") == 15


def test_documentation_in_two_turns_is_charged_once() -> None:
    story = Story()
    story.start("chat")
    story.tools("chat", "documentation")
    assert story.tools("chat", "documentation", paid=("documentation",)) == (True,)
    assert story.held == 15
    assert story.answer("chat", "documentation", "documentation") == 15


def test_two_chats_pay_for_documentation_each() -> None:
    story = Story()
    for chat in ("first", "second"):
        story.start(chat)
        story.tools(chat, "documentation")
        assert story.answer(chat, "documentation") == 15


def test_a_tool_that_failed_is_charged_like_one_that_worked() -> None:
    story = Story()
    story.start("chat")
    story.tools("chat", "github")
    assert story.answer("chat", "github") == 8  # it ran, so it is among the calls that ran


def test_an_unknown_tool_and_one_that_never_ran_are_free() -> None:
    story = Story()
    story.start("chat")
    story.tools("chat", "other", "other")  # an unknown tool is never held
    assert story.answer("chat", "other") == 7
    assert (story.available, story.held) == (43, 0)


# ── what fits ─────────────────────────────────────────────────────────────────────────────────


def test_twenty_credits_let_four_chats_start() -> None:
    story = Story()
    story.spend(30, "2026-11-21")
    assert [story.start(f"chat {n}") for n in range(6)] == [True, True, True, True, False, False]
    assert (story.available, story.held) == (0, 20)


def test_a_refusal_says_what_is_missing_and_what_can_be_bought() -> None:
    story = Story()
    story.spend(48, "2026-11-21")
    refused = story.account.hold("chat", 5, story.now)
    assert isinstance(refused, HoldRefusal)
    error = refused.error()
    assert error.status == 402
    body = error.body()["error"]
    assert isinstance(body, dict)
    assert (body["code"], body["required"], body["available"]) == ("insufficient_credits", 5, 2)
    assert body["resets_at"] == "2026-11-22T00:00:00.000Z"
    upgrade = body["upgrade"]
    assert isinstance(upgrade, dict)
    assert upgrade["plans"] == [
        {"name": "free", "credits_per_day": 50, "credits_per_month": None, "dollars_per_month": 0},
        {"name": "pro", "credits_per_day": 150, "credits_per_month": 3000, "dollars_per_month": 19},
    ]
    assert upgrade["packs"] == [{"credits": 500, "dollars": 20}]
    assert "$19 a month" in str(upgrade["message"])
    own = refused.error("Ask the platform team.").extra["upgrade"]
    assert own == {**upgrade, "message": "Ask the platform team."}


def test_every_tool_of_a_turn_that_fits_runs_in_call_order() -> None:
    story = Story()
    story.spend(40, "2026-11-21")
    story.start("chat")  # five are left
    assert story.tools("chat", "documentation", "github", "github", "other") == (False, True, False, True)
    assert story.available == 0
    assert story.answer("chat", "github", "other") == 10


def test_documentation_that_does_not_fit_does_not_make_its_repeat_free() -> None:
    story = Story()
    story.spend(40, "2026-11-21")
    story.start("chat")
    assert story.tools("chat", "documentation", "documentation") == (False, False)
    assert story.answer("chat") == 5


def test_when_nothing_fits_nothing_is_written() -> None:
    story = Story()
    story.spend(45, "2026-11-21")
    story.start("chat")
    lines = len(story.lines)
    assert story.tools("chat", "github", "other") == (False, False)
    assert len(story.lines) == lines


# ── ends ──────────────────────────────────────────────────────────────────────────────────────


def test_a_failed_chat_is_charged_nothing() -> None:
    story = Story()
    story.start("chat")
    story.tools("chat", "documentation")
    assert story.fail("chat") == 15
    assert (story.available, story.held) == (50, 0)


def test_a_chat_cancelled_before_its_first_model_call_is_charged_nothing() -> None:
    story = Story()
    story.start("chat")
    assert story.fail("chat") == 5
    assert story.available == 50


def test_a_cancelled_chat_pays_for_what_had_begun() -> None:
    story = Story()
    story.start("chat")
    story.tools("chat", "documentation", "github", "github")
    assert story.answer("chat", "documentation") == 15
    assert (story.available, story.held) == (35, 0)
    assert story.lines[-1].reason == "6 held credits freed"


def test_a_chat_is_charged_once_however_often_it_is_settled() -> None:
    story = Story()
    story.start("chat")
    assert story.answer("chat") == 5
    assert story.answer("chat") == 0
    assert story.fail("chat") == 0
    assert story.available == 45


def test_more_than_was_held_is_never_charged() -> None:
    story = Story()
    story.start("chat")
    assert story.answer("chat", "documentation") == 5


def test_the_hold_of_a_dead_chat_stops_counting_after_25_minutes() -> None:
    story = Story()
    story.spend(45, "2026-11-21")
    assert story.start("dead")
    story.clock("2026-11-21T12:24:59Z")
    assert not story.start("next")
    story.clock("2026-11-21T12:25:00Z")
    assert (story.available, story.held) == (5, 0)
    assert story.start("next")
    assert [line.kind for line in story.lines[-2:]] == ["expire", "hold"]


def test_a_chat_without_its_hold_gets_no_tools() -> None:
    story = Story()
    story.start("chat")
    story.fail("chat")
    assert story.tools("chat", "github", "documentation") == (False, False)
    assert story.held == 0


def test_a_chat_given_up_as_dead_gets_no_tools_either() -> None:
    story = Story()
    story.start("chat")
    story.clock("2026-11-21T12:25:00Z")
    assert story.tools("chat", "github") == (False,)
    assert story.held == 0


def test_at_most_200_chats_of_a_user_are_open() -> None:
    story = Story(pack=5_000)
    assert all(story.start(f"chat {n}") for n in range(200))
    refused = story.account.hold("one more", 5, story.now)
    assert isinstance(refused, HoldRefusal)
    assert refused.error().status == 429
    assert story.tools("chat 7", "github") == (True,)  # those that run go on


# ── days and months ───────────────────────────────────────────────────────────────────────────


def test_a_new_day_brings_a_new_allowance_without_any_write() -> None:
    story = Story()
    story.spend(50, "2026-11-21")
    story.clock("2026-11-21T23:59:59Z")
    assert story.available == 0
    story.clock("2026-11-22T00:00:00Z")
    assert story.available == 50


def test_a_chat_over_midnight_is_charged_to_the_day_it_started() -> None:
    story = Story(at="2026-11-21T23:59:59Z")
    story.start("chat")
    story.clock("2026-11-22T00:00:30Z")
    assert story.available == 50  # the hold is yesterday's
    story.tools("chat", "github")
    assert story.available == 47  # its tools are today's
    assert story.answer("chat", "github") == 8
    assert story.account.used_day == 3
    assert story.available == 47


def test_a_hold_released_after_midnight_gives_today_nothing_extra() -> None:
    story = Story(at="2026-11-21T23:59:59Z")
    story.start("chat")
    story.clock("2026-11-22T00:01:00Z")
    story.spend(10, "2026-11-22")
    story.start("other")
    story.fail("chat")
    story.fail("other")
    assert story.available == 40


def test_when_part_of_a_hold_over_midnight_is_charged_yesterday_pays_first() -> None:
    story = Story(at="2026-11-21T23:59:59Z")
    story.start("chat")
    story.clock("2026-11-22T00:00:30Z")
    story.tools("chat", "documentation")
    assert story.answer("chat") == 5
    assert story.available == 50


def test_yesterday_pays_first_even_for_the_larger_part() -> None:
    story = Story(at="2026-11-21T23:59:00Z")
    story.start("chat")
    story.tools("chat", "documentation")
    story.clock("2026-11-22T00:00:30Z")
    story.tools("chat", "github")
    assert story.answer("chat", "documentation") == 15
    assert story.available == 50


def test_a_writer_whose_clock_is_behind_does_not_bring_yesterday_back() -> None:
    story = Story(at="2026-11-22T00:00:01Z")
    story.spend(50, "2026-11-22")
    story.clock("2026-11-21T23:59:59Z")
    assert story.available == 0
    assert not story.start("chat")


def test_pro_has_3000_credits_a_month_and_a_fresh_start_in_the_next() -> None:
    story = Story("pro", at="2026-10-01T00:00:00Z")
    for day in range(1, 21):
        story.spend(150, f"2026-10-{day:02d}")
    story.clock("2026-10-21T12:00:00Z")
    assert story.available == 0
    refused = story.account.hold("chat", 5, story.now)
    assert isinstance(refused, HoldRefusal)
    assert refused.error().extra["resets_at"] == "2026-11-01T00:00:00.000Z"
    story.clock("2026-10-31T23:59:59Z")
    assert not story.start("chat")
    story.clock("2026-11-01T00:00:00Z")
    assert story.available == 150


def test_a_chat_over_the_end_of_the_month_counts_in_the_month_it_started() -> None:
    story = Story("pro", at="2026-10-31T23:59:59Z")
    story.start("chat")
    story.clock("2026-11-01T00:00:10Z")
    assert story.answer("chat") == 5
    assert (story.account.used_day, story.account.used_month) == (0, 0)


# ── plans and packs ───────────────────────────────────────────────────────────────────────────


def test_an_upgrade_applies_at_once_less_what_was_used_today() -> None:
    story = Story()
    story.spend(30, "2026-11-21")
    story.move(story.account.set_plan("pro", story.now))
    assert story.available == 120


def test_a_downgrade_with_more_used_than_free_allows_leaves_nothing_until_tomorrow() -> None:
    story = Story("pro")
    story.spend(60, "2026-11-21")
    story.start("running")
    story.move(story.account.set_plan("free", story.now))
    assert story.available == 0
    assert not story.start("chat")
    assert story.answer("running") == 5  # what was held is paid, whatever the plan says now
    story.clock("2026-11-22T00:00:00Z")
    assert story.available == 50


def test_the_allowance_is_spent_before_the_pack() -> None:
    story = Story(pack=500)
    story.spend(48, "2026-11-21")
    story.start("chat")
    assert story.answer("chat") == 5
    assert story.account.pack == 497
    story.clock("2026-11-22T00:00:00Z")
    assert story.available == 547


def test_a_part_charge_takes_the_allowance_before_the_pack() -> None:
    story = Story(pack=500)
    story.spend(40, "2026-11-21")
    story.start("chat")
    story.tools("chat", "documentation")  # ten of the allowance are held, and five of the pack
    assert story.answer("chat") == 5
    assert (story.account.used_day, story.account.pack) == (45, 500)


def test_what_is_freed_goes_back_where_it_came_from() -> None:
    story = Story(pack=500)
    story.spend(48, "2026-11-21")
    story.start("chat")
    story.fail("chat")
    assert (story.account.pack, story.available) == (500, 502)


def test_packs_never_expire_and_are_outside_the_monthly_limit() -> None:
    story = Story("pro", pack=500, at="2026-10-01T00:00:00Z")
    for day in range(1, 21):
        story.spend(150, f"2026-10-{day:02d}")
    story.clock("2026-10-25T12:00:00Z")
    assert story.available == 500
    assert story.start("chat")
    assert story.answer("chat") == 5
    story.clock("2029-01-01T00:00:00Z")
    assert story.available == 150 + 495


def test_the_balance_shows_charged_held_and_left() -> None:
    story = Story("pro", pack=500)
    story.spend(20, "2026-11-21")
    story.start("chat")
    assert story.account.balance(story.now) == {
        "plan": "pro",
        "available": 625,
        "held": 5,
        "daily": {"limit": 150, "used": 20, "remaining": 130, "resets_at": "2026-11-22T00:00:00.000Z"},
        "monthly": {"limit": 3000, "used": 20, "resets_at": "2026-12-01T00:00:00.000Z"},
        "pack": {"remaining": 500},
    }


def test_a_new_user_has_the_free_allowance() -> None:
    story = Story()
    assert story.account.balance(story.now) == {
        "plan": "free",
        "available": 50,
        "held": 0,
        "daily": {"limit": 50, "used": 0, "remaining": 50, "resets_at": "2026-11-22T00:00:00.000Z"},
        "monthly": None,
        "pack": {"remaining": 0},
    }
