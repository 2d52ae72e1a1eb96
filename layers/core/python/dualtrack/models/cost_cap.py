"""The cost of a chat's model calls, and when the next one has to be its last (CONTRACT 8, ``max_cost``). Pure.

Before each turn except the first, this adds up the cost of the turns and their tools so far, the cost of another turn
as expensive as the most expensive one, and the most that a last call can cost. If the sum is more than the cap, this
turn is the last one. So even a runaway chat ends with a written answer, and as a rule below its cap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.codec import stored
from dualtrack.models.prices import ANTHROPIC, VOYAGE, call_rates, dollars
from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.models.prices import Rates
    from dualtrack.models.receipt_data import LostCall, SideCalls, ToolSideCalls, TurnCall


@stored(row=True)
@dataclass(frozen=True, slots=True)
class CostHold:
    """What a chat by an API key holds, in 10⁻⁹ dollars."""

    turns: int
    summaries: int = 0
    digest: int = 0
    title: int = 0

    @property
    def in_all(self) -> int:
        """As the chat starts."""
        return self.turns + self.aside

    @property
    def aside(self) -> int:
        """What an answered chat goes on holding."""
        return self.summaries + self.digest + self.title


def lowest_cap(*caps: float) -> float:
    """The lowest cap; 0 means no cap."""
    return min((cap for cap in caps if cap), default=0.0)


def most_of_a_call(model: str, prompt_tokens: int, output_tokens: int) -> float:
    """The maximum dollars of a call: the whole prompt is written to the cache, and the output has full length."""
    return dollars(model, Usage(output_tokens=output_tokens, cache_write_tokens=prompt_tokens))


def most_of_a_single_call(model: str, prompt_tokens: int, output_tokens: int) -> float:
    """The same of a call whose prompt is not cached."""
    return dollars(model, Usage(prompt_tokens, output_tokens))


def cut_dollars(model: str, lost: Sequence[LostCall]) -> float:
    """Dollars of calls that were cut after their first byte: the prompt as the service reported it, and the text."""
    return sum(lost_rates(call, model, call.usage).dollars(call.usage) for call in lost if call.usage)


def turn_rates(made: TurnCall, model: str, usage: Usage) -> Rates:
    """The rates of a turn's call; ``model``: the chat's, if the call does not say its own."""
    return call_rates(made.rates, made.model or model, usage, made.calls, made.at)


def lost_rates(call: LostCall, model: str, usage: Usage) -> Rates:
    """The rates of a lost call that cost this usage."""
    return call_rates(call.rates, model, usage, 1, call.at)


def side_rates(side: SideCalls, maker: str = ANTHROPIC) -> Rates:
    """The rates of calls outside the turns."""
    return call_rates(side.rates, side.model, side.usage, side.calls, side.at, maker)


def side_nanodollars(side: SideCalls) -> int:
    """10⁻⁹ dollars of the calls for summaries, a digest or a title."""
    return side_rates(side).nanodollars(side.usage)


def asked_rates(asked: ToolSideCalls) -> Rates:
    """The rates of a tool's own calls to a model, or for embeddings."""
    return side_rates(asked.side, VOYAGE if asked.kind == "embedding" else ANTHROPIC)


def asked_dollars(asked: ToolSideCalls) -> float:
    """Dollars of a tool's own calls."""
    return asked_rates(asked).dollars(asked.side.usage)


def is_spent(cap: float, spent: Sequence[float], last_call: float) -> bool:
    """Whether the next call has to be the chat's last.

    ``spent``: dollars of each turn so far, including its tools' model calls; ``last_call``: the most that a last
    call can cost.
    """
    return bool(cap and spent) and sum(spent) + max(spent) + last_call > cap
