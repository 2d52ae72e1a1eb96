"""Prices and plans: data only (CONTRACT 8).

All figures are defined here; the 402 body, the balance and the tests of the rules read them. A plan that accounts
still have must stay listed. All credit amounts are integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.profiles import UTILITY
from dualtrack.project_file import PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dualtrack.answers import PackOffer, PlanOffer, Upgrade
    from dualtrack.tool_values import PriceClass


@dataclass(frozen=True, slots=True)
class Plan:
    """An allowance: credits a UTC day, at most ``monthly`` a calendar month (None: no such limit)."""

    name: str
    daily: int
    monthly: int | None
    dollars_a_month: int


@dataclass(frozen=True, slots=True)
class Pack:
    """Credits bought once; they never expire and do not count toward the monthly limit."""

    credits: int
    dollars: int


CHAT_PRICE: Final = 5
"""Credits of a chat that uses no tool."""

UTILITY_PRICE: Final = 1
"""Credits of a small task (`dualtrack.profiles.UTILITY`)."""

ONCE_PRICES: Final[Mapping[PriceClass, int]] = MappingProxyType({"documentation": 10})
"""Credits by price class of what is charged once a chat, however often its tools are called."""

CALL_PRICES: Final[Mapping[PriceClass, int]] = MappingProxyType({"github": 3, "other": 2})
"""Credits of one tool call, by price class."""

PRICE_CLASSES: Final = (*ONCE_PRICES, *CALL_PRICES)
"""The library's own classes; a project may add others, in every plan at the same price."""

_call_prices: Final[dict[PriceClass, int]] = {**PROJECT["prices"], **CALL_PRICES}

PLANS: Final[Mapping[str, Plan]] = MappingProxyType(
    {
        plan.name: plan
        for plan in (
            Plan("free", daily=50, monthly=None, dollars_a_month=0),
            Plan("pro", daily=150, monthly=3_000, dollars_a_month=19),
        )
    }
)

DEFAULT_PLAN: Final = "free"
"""The plan of a user without one."""

PACKS: Final = (Pack(credits=500, dollars=20),)


def add_prices(prices: Mapping[PriceClass, int]) -> None:
    """Price classes of a project that this library is not packaged with, for the rest of the process."""
    _call_prices.update({**prices, **CALL_PRICES})


def price_calls(calls: Sequence[PriceClass], paid: Collection[PriceClass] = ()) -> tuple[int, ...]:
    """The price of each tool call, in call order. ``paid``: the classes that the chat has been charged for before,
    which counts for those that are charged once. A class that the project has withdrawn while a chat ran is
    ``other``."""
    charged = {*paid}
    prices: list[int] = []
    for call in calls:
        once = ONCE_PRICES.get(call)
        if once is None:
            prices.append(_call_prices.get(call, CALL_PRICES["other"]))
        else:
            prices.append(0 if call in charged else once)
            charged.add(call)
    return tuple(prices)


def chat_price(profile: str) -> int:
    """Credits of a chat of this profile that uses no tool."""
    return UTILITY_PRICE if profile == UTILITY.name else CHAT_PRICE


def price_chat(calls: Sequence[PriceClass]) -> int:
    """The price of a whole chat from the tool calls that ran (or, if cancelled, had begun)."""
    return CHAT_PRICE + sum(price_calls(calls))


def upgrade(message: str = "") -> Upgrade:
    """The ``upgrade`` field of a 402: ``{"message", "plans", "packs"}``. ``message``: the deployment's own, which says
    how its users get more; by default the prices of plan and pack.
    """
    plans: list[PlanOffer] = [
        {
            "name": plan.name,
            "credits_per_day": plan.daily,
            "credits_per_month": plan.monthly,
            "dollars_per_month": plan.dollars_a_month,
        }
        for plan in PLANS.values()
    ]
    packs: list[PackOffer] = [{"credits": pack.credits, "dollars": pack.dollars} for pack in PACKS]
    best = max(PLANS.values(), key=lambda plan: plan.daily)
    prices = (
        f"The {best.name} plan has {best.daily} credits a day for ${best.dollars_a_month} a month; "
        f"packs start at ${PACKS[0].dollars} for {PACKS[0].credits} credits and never expire."
    )
    return {"message": message or prices, "plans": plans, "packs": packs}
