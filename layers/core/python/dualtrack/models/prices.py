"""What a model call costs in US dollars: the price table, as data. Pure.

Per million tokens, list prices. Sources: the overview pages "Claude Haiku 5.5", "Claude Sonnet 5.5", "Claude Opus 5.5"
and "Claude Fable 5.1" (2026-11), and the page "Pricing" of the Messages API's documentation for generation 4. The
factors of the prompt cache are those of the page "Prompt caching", for entries that live five minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.turn import Usage

CACHE_WRITE: Final = 1.25
CACHE_READ: Final = 0.1
"""Multiples of the price of input."""

CACHE_SECONDS: Final = 300.0
"""How long a cached prefix is kept after its last use."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Price:
    """A model's prices; ``long``: for all tokens of a call whose prompt has more than ``long_above`` tokens."""

    rates: Rates
    long: Rates | None = None
    long_above: int = 0

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates of a call, by the size of its prompt including cached tokens."""
        return self.long if self.long and prompt_tokens > self.long_above else self.rates


PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "claude-haiku-5-5": Price(Rates(0.10, 0.50), Rates(0.50, 2.50), 100_000),
        "claude-sonnet-5-5": Price(Rates(2, 10)),
        "claude-opus-5-5": Price(Rates(4, 20)),
        "claude-fable-5-1": Price(Rates(10, 50)),
        "claude-haiku-4-5": Price(Rates(1, 5)),
        "claude-sonnet-4": Price(Rates(3, 15)),
        "claude-opus-4-5": Price(Rates(5, 25)),
        "claude-opus-4-6": Price(Rates(5, 25)),
        "claude-opus-4": Price(Rates(15, 75)),
    }
)
"""Prices by the beginning of the model's name; the longest match counts."""

EMBEDDING_PRICES: Final[Mapping[str, float]] = MappingProxyType(
    {
        "voyage-3-large": 0.18,
        "voyage-3.5-lite": 0.02,
        "voyage-3.5": 0.06,
        "voyage-3-lite": 0.02,
        "voyage-3": 0.06,
        "voyage-4-large": 0.12,
        "voyage-4-lite": 0.02,
        "voyage-4": 0.06,
        "voyage-code-3": 0.18,
        "voyage-context-3": 0.18,
        "voyage-finance-2": 0.12,
        "voyage-law-2": 0.12,
    }
)
"""Dollars per million tokens of Voyage's models by name (docs.voyageai.com/docs/pricing, 2026-11). An account's free
tokens are not considered."""

DEFAULT: Final = Price(Rates(3, 15))
"""For an unknown model: the middle line. Comparisons within a call are still right, because on every line output costs
five times as much as input, and the cache the same share of it."""

OFFLINE: Final = "dualtrack-offline"
"""The name under which the offline model of the local stack answers. It is no language model and costs nothing."""

_NAME: Final = re.compile(r"claude-.*", re.DOTALL)


def price_of(model: str) -> Price:
    """The price by the model's name, also ``anthropic.claude-…`` of Bedrock; `DEFAULT` for an unknown model."""
    match = _NAME.search(model)
    fitting = [name for name in PRICES if match and match[0].startswith(name)]
    return PRICES[max(fitting, key=len)] if fitting else DEFAULT


def is_known(model: str) -> bool:
    """Whether the table has the model; if not, `price_of` is a guess."""
    return price_of(model) is not DEFAULT


def is_fictional(served: str) -> bool:
    """Whether a service that answers under this name is the offline model: then tokens and dollars are what the model
    that was asked for would have cost."""
    return served == OFFLINE


def embedding_dollars(model: str, tokens: int) -> float:
    """The cost of embeddings; for an unknown model, at the highest price in the table."""
    return EMBEDDING_PRICES.get(model, max(EMBEDDING_PRICES.values())) * tokens / 1_000_000


def dollars(model: str, usage: Usage, calls: int = 1) -> float:
    """The cost of a call by its reported tokens; several calls counted together are assumed to be of equal size."""
    rates = price_of(model).rates_for(usage.prompt_tokens // max(calls, 1))
    read = usage.input_tokens + CACHE_WRITE * usage.cache_write_tokens + CACHE_READ * usage.cache_read_tokens
    return (read * rates.input + usage.output_tokens * rates.output) / 1_000_000


def nanodollars(model: str, usage: Usage, calls: int = 1) -> int:
    """The same in 10⁻⁹ dollars: integers, so that sums are exact."""
    return round(dollars(model, usage, calls) * 1e9)
