"""What a stage costs with its users, and how far it goes: the month, its model's share, what runs at a time in the
busiest hour, and AWS's first limit. Pure; all chats are of two tools in grown conversations, of no payer in common.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.credits.aws_cost import REQUESTS, STEP_SECONDS, Line

from dualtrack_stack.costs import (
    GROWN,
    MODEL_SECONDS,
    TOOL_SECONDS,
    TWO_TOOLS,
    chat_lines,
    counted,
    idle_lines,
    metric_lines,
    sizes,
    total,
    user_lines,
)
from dualtrack_stack.model_use import model_use
from dualtrack_stack.prices import HOME
from dualtrack_stack.roots import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.models.prices import Rates

    from dualtrack_stack.costs import CountedChat, StackTemplate

LIMITS_FILE: Final = PACKAGE / "limits.toml"
KIND: Final = TWO_TOOLS
"""Of chat, whose tokens count; its requests are those of one in a grown conversation."""

DAYS: Final = 730 / 24
"""Of a month, each with the same number of chats."""

BUSIEST_HOUR: Final = 0.2
"""Of a day's chats: an office of eight hours has an eighth in each, and a busy one."""

DEVIATIONS: Final = 3
"""What runs at a time is spread as chance spreads arrivals (Poisson): so many deviations above the mean is passed in
one moment of some 700."""


@dataclass(frozen=True, slots=True)
class Limit:
    """``chats_a_second``: how many reach it; ``lift``: what moves it."""

    what: str
    amount: float
    chats_a_second: float
    lift: str


@dataclass(frozen=True, slots=True)
class Load:
    """What so many chats a second take. ``executions``, ``streams``: of Lambda at a time, at most;
    ``model_*``: tokens a minute."""

    chats_a_second: float
    executions: int
    streams: int
    states: float
    writes: float
    model_calls: float
    model_input: float
    model_output: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A month of a stage. ``lines`` without those of the model."""

    users: int
    chats_a_day: float
    model: str
    lines: tuple[Line, ...]
    model_dollars: float
    busiest: Load
    limits: tuple[Limit, ...]

    @property
    def dollars(self) -> float:
        """Of the whole month."""
        return total(self.lines) + self.model_dollars

    @property
    def first(self) -> Limit:
        """The limit that the fewest chats reach."""
        return self.limits[0]


def busy_seconds(chat: CountedChat) -> float:
    """Of all functions of a chat together, its stream included."""
    turns = chat.model_calls * (MODEL_SECONDS + STEP_SECONDS)
    tools = sum(map(len, chat.rounds)) * (TOOL_SECONDS + STEP_SECONDS)
    return STEP_SECONDS + turns + tools + chat.summary_seconds + chat.seconds


def at_once(a_second: float, seconds: float) -> int:
    """How many run at a time, at most, if so many begin ``a_second`` and each takes ``seconds``."""
    mean = a_second * seconds
    return math.ceil(mean + DEVIATIONS * math.sqrt(mean))


def load(a_second: float) -> Load:
    """Of so many chats a second."""
    chat, model = counted()[GROWN], model_use()[KIND]
    return Load(
        a_second,
        at_once(a_second, busy_seconds(chat)),
        at_once(a_second, chat.seconds),
        a_second * chat.states,
        a_second * chat.writes,
        a_second * 60 * model.calls,
        a_second * 60 * model.limited_input,
        a_second * 60 * model.output_tokens,
    )


def limits(request_rate: float, region: str = HOME) -> tuple[Limit, ...]:
    """The limits of a stage in an account that has asked for none, that of the fewest chats first. ``request_rate``:
    the stage's own, requests a second."""
    chat = counted()[GROWN]
    table = tomllib.loads(LIMITS_FILE.read_text(encoding="utf-8"))
    executions = _amount(table["lambda_executions"], region)
    takes = {
        "gateway_requests": float(REQUESTS),
        "executions_started": 1.0,
        "state_transitions": float(chat.states),
        "new_table_writes": chat.writes,  # as if one table had all of them
        "table_writes": chat.writes,
    }
    found = [
        _of_executions(
            table["lambda_executions"]["what"], executions, chat, table["lambda_executions"]["lift"]
        ),
        Limit(
            "The stage's request_rate, requests a second",
            request_rate,
            request_rate / REQUESTS,
            "`request_rate` and `request_burst` in dualtrack.toml",
        ),
        *(
            Limit(
                table[name]["what"],
                amount := _amount(table[name], region),
                amount / each,
                table[name]["lift"],
            )
            for name, each in takes.items()
        ),
    ]
    return tuple(sorted(found, key=lambda limit: limit.chats_a_second))


def _of_executions(what: str, executions: float, chat: CountedChat, lift: str) -> Limit:
    """Half of them may be streams (`dualtrack_stack.cli.aws.decide.of_concurrency`), so whichever is full first."""
    return Limit(
        what,
        executions,
        min(_most(executions, busy_seconds(chat)), _most(executions / 2, chat.seconds)),
        lift,
    )


def _most(places: float, seconds: float) -> float:
    """The inverse of `at_once`: how many may begin a second if so many may run."""
    root = (-DEVIATIONS + math.sqrt(DEVIATIONS**2 + 4 * places)) / 2
    return root**2 / seconds


def _amount(entry: Mapping[str, Any], region: str) -> float:
    is_large = region in entry.get("large_regions", (region,))
    return float(entry["here"] if is_large else entry["elsewhere"])


def plan(
    templates: Sequence[StackTemplate],
    users: int,
    chats_a_day: float,
    model: str,
    rates: Rates,
    request_rate: float,
    region: str = HOME,
) -> Plan:
    """A month of ``users`` who each ask ``chats_a_day``, answered by ``model`` at these rates."""
    chats_of_a_day = users * chats_a_day
    chats = chats_of_a_day * DAYS
    each = total(chat_lines(counted()[GROWN], sizes(templates), region))
    (signed_in,) = user_lines(region)
    lines = (
        Line("Chats, without the model", chats, each),
        Line("The stage without chats", 1, total(idle_lines(templates, region))),
        Line("Metrics of the functions, at most", 1, total(metric_lines(region))),
        Line(signed_in.item, users, signed_in.price),
    )
    return Plan(
        users,
        chats_a_day,
        model,
        lines,
        chats * rates.dollars(model_use()[KIND].usage),
        load(chats_of_a_day * BUSIEST_HOUR / 3_600),
        limits(request_rate, region),
    )
