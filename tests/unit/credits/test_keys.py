"""API keys' caps: what may be held under them, what is used, and what the refusal says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.credits.account import Account, AccountChange, Cost, HoldRefusal
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import MAX_CREDITS, MAX_DOLLARS, NANO, Caps, UnderKey
from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from dualtrack.credits.account import Movement

NOON = 1_795_262_400.0  # 2026-11-21 12:00 UTC
MIDNIGHT = NOON + 12 * 3_600
KEY = UnderKey("k1", 2 * NANO // 10)


class Owner:
    """An account with its lines; each step is checked against them."""

    def __init__(self, **caps: float) -> None:
        self.account: Account = Account("ann")
        self.lines: list[Movement] = []
        self.take(self.account.add_key("k1", Caps(), NOON))
        self.set_caps(**caps)

    def set_caps(self, **caps: float | None) -> None:
        self.take(self.account.change_caps("k1", caps, NOON))

    def take(self, decision: AccountChange | HoldRefusal) -> AccountChange:
        assert isinstance(decision, AccountChange), decision
        self.account = decision.account
        self.lines += decision.movements
        assert audit(self.account, self.lines) == ()
        return decision

    def start(self, chat: str, now: float = NOON) -> AccountChange | HoldRefusal:
        decision = self.account.hold(chat, 5, now, KEY)
        if isinstance(decision, AccountChange):
            self.take(decision)
        return decision

    def view(self, now: float = NOON) -> Any:
        return self.account.key_view("k1", now)


def _error(refused: object) -> dict[str, Any]:
    assert isinstance(refused, HoldRefusal)
    return dict(refused.error().body()["error"])


def test_a_cap_of_credits_admits_as_many_chats_as_fit_and_says_which_cap_it_was() -> None:
    owner = Owner(credits_day=15)
    assert [isinstance(owner.start(f"c{number}"), AccountChange) for number in range(5)] == [True] * 3 + [
        False
    ] * 2
    error = _error(owner.start("c9"))
    assert error.pop("message").startswith(
        "This API key's cap credits_day is 15 credits: 0 are used, 15 are held"
    )
    assert error == {
        "code": "key_cap_reached",
        "cap": "credits_day",
        "limit": 15,
        "used": 0,
        "held": 15,
        "required": 5,
        "resets_at": "2026-11-22T00:00:00.000Z",
    }
    assert isinstance(owner.account.hold("without a key", 5, NOON), AccountChange), (
        "the owner has credits of his own"
    )


def test_a_cap_of_dollars_holds_the_most_and_settles_to_what_was_recorded_of_a_failed_chat_too() -> None:
    owner = Owner(dollars_total=0.5)
    owner.start("c1")
    owner.start("c2")
    error = _error(owner.start("c3"))
    assert (error["cap"], error["used"], error["held"], error["required"]) == ("dollars_total", 0, 0.4, 0.2)
    assert error["resets_at"] is None
    owner.take(owner.account.release("c1", NOON, Cost(NANO // 20, "k1")))
    assert owner.view()["used"]["dollars_total"] == 0.05
    assert owner.view()["used"]["credits_total"] == 0
    owner.take(owner.account.settle("c2", 5, NOON, Cost(NANO // 10, "k1", kept=NANO // 50)))
    assert owner.view()["held"] == {
        "credits_day": 0,
        "credits_total": 0,
        "dollars_day": 0.02,
        "dollars_total": 0.02,
    }
    owner.take(owner.account.charge("c2", NOON, Cost(NANO // 100, "k1", kept=NANO // 100)))
    owner.take(owner.account.charge("c2", NOON, Cost(0, "k1")))
    assert owner.view()["used"]["dollars_total"] == 0.16
    assert owner.view()["held"]["dollars_total"] == 0
    assert not owner.account.holds


def test_tools_that_do_not_fit_the_keys_cap_are_not_run() -> None:
    owner = Owner(credits_day=10)
    owner.start("c1")
    decision = owner.take(owner.account.hold_tools("c1", ["github", "github", "other"], (), NOON))
    assert decision.fits == (True, False, True)
    assert owner.account.available(NOON, "k1") == 0
    assert owner.account.available(NOON) == 40


def test_an_answered_chat_that_still_holds_dollars_gets_no_more_tools_and_is_charged_once() -> None:
    owner = Owner()
    owner.start("c1")
    owner.take(owner.account.settle("c1", 5, NOON, Cost(7, "k1", kept=9)))
    assert owner.account.hold_tools("c1", ["other"], (), NOON).fits == (False,)
    assert not owner.account.settle("c1", 5, NOON).movements
    assert not owner.account.release("c1", NOON).movements


def test_midnight_turns_the_days_caps_and_a_hold_counts_on_the_day_it_was_taken() -> None:
    owner = Owner(credits_day=10, credits_total=100)
    owner.start("c1", MIDNIGHT - 60)
    owner.start("c2", MIDNIGHT - 60)
    assert isinstance(owner.start("c3", MIDNIGHT - 1), HoldRefusal)
    owner.start("c3", MIDNIGHT)
    assert owner.view(MIDNIGHT)["held"]["credits_day"] == 5
    assert owner.view(MIDNIGHT)["held"]["credits_total"] == 15
    owner.take(owner.account.settle("c1", 5, MIDNIGHT + 1, Cost(NANO, "k1")))
    assert owner.view(MIDNIGHT)["used"] == {
        "credits_day": 0,
        "credits_total": 5,
        "dollars_day": 0,
        "dollars_total": 1,
    }
    owner.take(owner.account.hold_tools("c2", ["other"], (), MIDNIGHT + 2))
    owner.take(owner.account.settle("c2", 7, MIDNIGHT + 3, Cost(0, "k1")))
    assert owner.view(MIDNIGHT)["used"]["credits_day"] == 2, "the tool was held today, the chat yesterday"


def test_a_cap_below_what_is_used_admits_nothing_and_frees_nothing() -> None:
    owner = Owner(credits_total=20)
    owner.start("c1")
    owner.take(owner.account.settle("c1", 5, NOON, Cost(0, "k1")))
    owner.start("c2")
    owner.set_caps(credits_total=3)
    error = _error(owner.start("c3"))
    assert (error["limit"], error["used"], error["held"]) == (3, 5, 5)
    assert owner.account.available(NOON, "k1") == 0
    owner.take(owner.account.settle("c2", 5, NOON, Cost(0, "k1")))
    owner.set_caps(credits_total=None)
    assert isinstance(owner.start("c3"), AccountChange)


def test_a_cap_that_no_day_can_cover_does_not_reset() -> None:
    assert _error(Owner(credits_day=4).start("c1"))["resets_at"] is None


def test_of_two_caps_that_are_reached_the_one_in_total_is_named() -> None:
    assert _error(Owner(credits_day=0, credits_total=0).start("c1"))["cap"] == "credits_total"


def test_a_revoked_key_starts_nothing_and_is_forgotten_with_its_last_hold() -> None:
    owner = Owner(credits_day=50)
    owner.start("c1")
    owner.take(owner.account.revoke("k1", NOON))
    assert _error(owner.start("c2"))["code"] == "unauthorized"
    assert owner.account.hold_tools("c1", ["other"], (), NOON).fits == (True,), "what runs goes on"
    with pytest.raises(ApiError, match="no such key"):
        owner.account.change_caps("k1", {"credits_day": 1}, NOON)
    owner.take(owner.account.settle("c1", 5, NOON, Cost(1, "k1", kept=1)))
    assert "k1" in owner.account.keys
    owner.take(owner.account.charge("c1", NOON, Cost(1, "k1")))
    assert not owner.account.keys
    assert not owner.account.revoke("k1", NOON).movements


def test_a_chat_whose_hold_has_expired_costs_its_dollars_all_the_same() -> None:
    owner = Owner(dollars_total=1)
    owner.start("c1")
    owner.take(owner.account.expire(NOON + 3_600))
    assert owner.view(NOON + 3_600)["held"]["dollars_total"] == 0
    owner.take(owner.account.release("c1", NOON + 3_600, Cost(NANO, "k1")))
    assert owner.view(NOON + 3_600)["used"]["dollars_total"] == 1
    assert isinstance(owner.start("c2", NOON + 3_600), HoldRefusal)


def test_a_chat_that_costs_more_than_it_held_shows_it() -> None:
    owner = Owner(dollars_total=0.25)
    owner.start("c1")
    owner.take(owner.account.settle("c1", 5, NOON, Cost(NANO, "k1")))
    error = _error(owner.start("c2"))
    assert (error["limit"], error["used"]) == (0.25, 1)


@pytest.mark.parametrize(
    "value", [-1, -0.5, math.nan, math.inf, -math.inf, 1e300, MAX_CREDITS + 1, True, "5", [], 10**400]
)
@pytest.mark.parametrize("name", ["credits_day", "credits_total", "dollars_day", "dollars_total"])
def test_a_cap_that_is_no_sensible_number_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ApiError, match=f"caps.{name}: ") as refused:
        Caps().changed({name: value})
    assert refused.value.status == 400


def test_caps_at_their_bounds() -> None:
    said: dict[str, float | None] = {
        "credits_day": MAX_CREDITS,
        "dollars_day": MAX_DOLLARS,
        "credits_total": 0,
    }
    assert Caps().changed(said).view() == said
    assert Caps().changed({"credits_day": 5.0}).text() == "credits_day 5"
    with pytest.raises(ApiError, match="whole number"):
        Caps().changed({"credits_day": 5.5})
    with pytest.raises(ApiError, match="no such cap"):
        Caps().changed({"credits": 5})
