"""What a model call costs in US dollars, by dated data and the model's exact name.

``model_prices.json`` has the list prices of a day, which `tests.drivers.model_prices` takes from the package
`genai-prices`. A name is one that stands there, whole: never the beginning of one. Behind a name that ends in
``-YYYYMMDD`` there, any day may stand. What no list has costs as much as its maker's dearest model, and is marked as a
guess: a cap is rather reached too early.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.clock import day_of
from dualtrack.codec import stored
from dualtrack.models.contract_prices import prices_of
from dualtrack.models.provider import provider_of
from dualtrack.settings import what_prices_depend_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.models.turn import Usage

DATA_FILE: Final = Path(__file__).with_name("model_prices.json")

ANTHROPIC: Final = "anthropic"
VOYAGE: Final = "voyageai"
"""Makers of models."""

CONTRACT: Final = "contract"
"""The service of a price by contract."""

CACHE_SECONDS: Final = 300.0
"""How long a cached prefix is kept after its last use."""

OFFLINE: Final = "dualtrack-offline"
"""The name under which the offline model of the local stack answers. It is no language model and costs nothing."""

_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"-20\d{6}$")
_ANY_DAY: Final = "-YYYYMMDD"


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for a million tokens. ``cache_write`` for five minutes, ``cache_write_hour`` for an hour. Not
    ``is_known``: a guess, for a model that the list does not have."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_hour: float
    is_known: bool = True

    def dollars(self, usage: Usage) -> float:
        """What these tokens cost."""
        return self._millionths(usage) / _MILLION**2

    def nanodollars(self, usage: Usage) -> int:
        """The same in 10⁻⁹ dollars: integers, so that sums are exact."""
        return round(self._millionths(usage) / 1_000)

    def _millionths(self, usage: Usage) -> int:
        """Of 10⁻⁶ dollars: a whole number, since no list has a price of a million tokens with more than six places."""
        return (
            round(self.input * _MILLION) * usage.input_tokens
            + round(self.output * _MILLION) * usage.output_tokens
            + round(self.cache_read * _MILLION) * usage.cache_read_tokens
            + round(self.cache_write * _MILLION) * usage.cache_write_tokens
        )


_KINDS: Final = tuple(item.name for item in fields(Rates) if item.name != "is_known")


@dataclass(frozen=True, slots=True)
class Price:
    """A model's prices from the day ``since`` (ISO 8601; empty: always). ``long``: for all tokens of a call whose
    prompt has more than so many tokens, the least first. ``web_searches``: dollars for a thousand."""

    rates: Rates
    since: str = ""
    long: tuple[tuple[int, Rates], ...] = ()
    web_searches: float | None = None

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates of a call, by the size of its prompt including cached tokens."""
        return next((rates for above, rates in reversed(self.long) if prompt_tokens > above), self.rates)


@dataclass(frozen=True, slots=True)
class Listed:
    """A model of the list: who makes it, whose ``service`` has it at these ``prices``, by which ``names``. The oldest
    price comes first; ``batch``: of calls in a batch."""

    id: str
    maker: str
    service: str
    names: tuple[str, ...]
    prices: tuple[Price, ...]
    batch: tuple[Price, ...] = ()

    def price_on(self, day: str) -> Price:
        """The price of a day (ISO 8601)."""
        return _on(self.prices, day)

    def price_today(self) -> Price:
        """The price of this day."""
        return self.price_on(day_of(time.time()))


@dataclass(frozen=True, slots=True)
class PriceList:
    """The data: where and when it was taken, and the models by their names."""

    source: str
    taken_on: str
    models: tuple[Listed, ...]
    by_name: Mapping[str, Listed]

    def find(self, model: str) -> Listed | None:
        """The model of exactly this name; None if the list does not have it."""
        return self.by_name.get(model) or self.by_name.get(_DATED.sub(_ANY_DAY, model))


@cache
def price_list() -> PriceList:
    """The list of this release."""
    data = json.loads(DATA_FILE.read_bytes())
    models = tuple(
        Listed(
            entry["id"],
            entry["maker"],
            entry["service"],
            tuple(entry["names"]),
            _prices(entry["prices"]),
            _prices(entry.get("batch", ())),
        )
        for entry in data["models"]
    )
    by_name = {name: model for model in models for name in model.names}
    return PriceList(data["source"], data["taken_on"], models, MappingProxyType(by_name))


def find(model: str, maker: str = ANTHROPIC) -> Listed | None:
    """The model of this name at the prices of this deployment; None if none is known."""
    contracts, provider = what_prices_depend_on()
    return at_contract(model, contracts, provider if maker == ANTHROPIC else "")


@lru_cache(maxsize=256)
def at_contract(model: str, contracts: str, provider: str) -> Listed | None:
    """The model at the prices by contract (the setting's text), else at those that the list has of the provider. A
    contract that holds from a day on leaves the list's price before it."""
    served = provider_of(provider).served
    listed, agreed = price_list().find(served(model)), prices_of(contracts)
    named = (entry for name, entry in agreed.items() if listed and price_list().find(served(name)) is listed)
    entry = agreed.get(model) or agreed.get(served(model)) or next(named, None)
    if entry is None:
        return listed
    (price,) = _prices([entry])
    before = tuple(old for old in listed.prices if old.since < price.since) if listed else ()
    maker = listed.maker if listed else ANTHROPIC
    return Listed(listed.id if listed else model, maker, CONTRACT, (model,), (*before, price))


def rates_of(model: str, prompt_tokens: int = 0, at: str = "", maker: str = ANTHROPIC) -> Rates:
    """The rates of a call with a prompt of so many tokens, cached or not, ``at`` a moment (ISO 8601; now if empty).

    For a model that is not known the dearest of the ``maker``.
    """
    day, listed = at[:10] or day_of(time.time()), find(model, maker)
    return listed.price_on(day).rates_for(prompt_tokens) if listed else _dearest(maker, day)


def is_known(model: str) -> bool:
    """Whether a list has the model; if not, its rates are a guess."""
    return find(model) is not None


def is_fictional(served: str) -> bool:
    """Whether a service that answers under this name is the offline model: then tokens and dollars are what the model
    that was asked for would have cost."""
    return served == OFFLINE


def call_rates(
    kept: Rates | None, model: str, usage: Usage, calls: int = 1, at: str = "", maker: str = ANTHROPIC
) -> Rates:
    """The rates that were ``kept`` with calls, else those of their day; several that were counted together are assumed
    to be of equal size."""
    return kept or rates_of(model, usage.prompt_tokens // max(calls, 1), at, maker)


def dollars(model: str, usage: Usage, calls: int = 1) -> float:
    """What such calls cost today."""
    return call_rates(None, model, usage, calls).dollars(usage)


def _prices(entries: Sequence[Mapping[str, Any]]) -> tuple[Price, ...]:
    return tuple(
        Price(
            _rates(entry),
            entry.get("since", ""),
            tuple((step["above"], _rates(step)) for step in entry.get("long", ())),
            entry.get("web_searches"),
        )
        for entry in entries
    )


def _rates(entry: Mapping[str, Any]) -> Rates:
    return Rates(**{kind: entry[kind] for kind in _KINDS})


def _on(prices: Sequence[Price], day: str) -> Price:
    """The newest price that holds on a day; before the first one, that."""
    return next((price for price in reversed(prices) if price.since <= day), prices[0])


@cache
def _dearest(maker: str, day: str) -> Rates:
    """The highest rate of each kind that any model of a maker has on a day, also of long prompts. What reads a cache at
    the full price has none, and says nothing of what a cache costs."""
    prices = [listed.price_on(day) for listed in price_list().models if listed.maker == maker]
    all_rates = [rates for price in prices for rates in (price.rates, *(rates for _, rates in price.long))]
    all_rates = [rates for rates in all_rates if rates.cache_read < rates.input] or all_rates
    return Rates(*(max(getattr(rates, kind) for rates in all_rates) for kind in _KINDS), is_known=False)
