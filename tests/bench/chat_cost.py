"""What a chat costs, model aside: requests, units, states and dollars, counted from real requests.

    uv run python -m tests.bench.chat_cost

The chats run through the real steps over moto; every DynamoDB request is weighed by AWS's rules (a write
takes a unit per KB, twice that in a transaction, one more for an entry of the sparse index that comes or
goes; a consistent read a unit per 4 KB, an eventually consistent one half). Deltas are written at most
every 130 ms, so their number follows from how long text flows: the model's pace below. One client reads the events,
over one stream: its lease is counted, its reads are in `tests.bench.stream_cost`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.leases import STREAMS
from dualtrack.streaming.delta_writer import WRITE_SECONDS
from dualtrack.tool import ToolResult
from rich.console import Console
from rich.table import Table

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WRITE: Final = 0.625e-6
READ: Final = 0.125e-6
STATE: Final = 0.025e-3
API_CALL: Final = 3.50e-6
INVOCATION: Final = 0.20e-6
GB_SECOND: Final = 0.0000133334
"""Dollars in us-east-1 on demand: DynamoDB, Step Functions Standard, REST API, Lambda on arm64."""

MODEL_SECONDS: Final = 4.0
"""A model call of a small model with a few hundred tokens of answer; text flows for half of it."""

TOOL_SECONDS: Final = 1.5
STEP_SECONDS: Final = 0.15
GB: Final = 1.5

RESULT: Final = "A result with names, numbers and ids, such as 4711. " * 150
ANSWER: Final = "An answer that explains what was found, step by step, with code. " * 30

CHATS: Final[Mapping[str, Sequence[Sequence[str]]]] = MappingProxyType(
    {
        "no tools": (),
        "two tools in parallel": (("retrieve_full_context", "retrieve_full_context"),),
        "documentation + two GitHub": (
            ("retrieve_documentation",),
            ("retrieve_documentation", "retrieve_documentation"),
        ),
    }
)


@dataclass
class Meter:
    """Units of the requests between two marks."""

    client: Any
    writes: float = 0.0
    reads: float = 0.0
    requests: int = 0
    deltas: int = 0
    quiet: bool = field(default=False)

    def sent(self, model: Any, params: Mapping[str, Any], **_: Any) -> None:
        """A request goes out."""
        if self.quiet:
            return
        self.requests += 1
        weigh = {"PutItem": 1, "UpdateItem": 1, "DeleteItem": 1}.get(model.name)
        if weigh:
            self._write(model.name.removesuffix("Item"), params, weigh)
        for action in params.get("TransactItems", ()):
            ((kind, request),) = action.items()
            self._write(kind, request, 2)

    def answered(self, model: Any, parsed: Mapping[str, Any], **_: Any) -> None:
        """An answer came."""
        if self.quiet or model.name not in ("GetItem", "Query", "BatchGetItem"):
            return
        items = parsed.get("Items") or ([parsed["Item"]] if "Item" in parsed else [])
        for listed in parsed.get("Responses", {}).values():
            items = [*items, *listed]
        self.reads += max(1, math.ceil(sum(map(size, items)) / 4096))

    def _write(self, kind: str, request: Mapping[str, Any], factor: int) -> None:
        item = request.get("Item") or self._current(request)
        if str(item.get("sk", {}).get("S", "")).startswith("EV#") and '"event":"delta"' in item.get(
            "data", {}
        ).get("S", ""):
            self.deltas += 1
        self.writes += factor * max(1, math.ceil(size(item) / 1024))
        if "open" in item or "REMOVE #open" in request.get("UpdateExpression", ""):
            self.writes += kind != "Update" or "REMOVE #open" in request["UpdateExpression"]

    def _current(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.quiet = True
        found = self.client.get_item(TableName=request["TableName"], Key=request["Key"]).get("Item", {})
        self.quiet = False
        return dict(found)


def size(item: Mapping[str, Any]) -> int:
    """Bytes of an item: its names and values."""
    return sum(
        len(name) + len(json.dumps(next(iter(value.values())), default=str)) for name, value in item.items()
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """One chat."""

    requests: int
    writes: float
    reads: float
    states: int
    model_calls: int
    tools: int

    @property
    def parts(self) -> dict[str, float]:
        """Dollars by service."""
        seconds = self.model_calls * (MODEL_SECONDS + STEP_SECONDS) + self.tools * (
            TOOL_SECONDS + STEP_SECONDS
        )
        seconds += MODEL_SECONDS / 2 + 2 * STEP_SECONDS
        return {
            "DynamoDB": self.writes * WRITE + self.reads * READ,
            "Step Functions": self.states * STATE,
            "Lambda": (self.model_calls + self.tools + 3) * INVOCATION + seconds * GB * GB_SECOND,
            "API Gateway": 2 * API_CALL,
        }


def measure(world: World, meter: Meter, rounds: Sequence[Sequence[str]]) -> Cost:
    """Run one chat and weigh it."""
    world.model.reset()
    for tools in rounds:
        given = [
            {"type": "tool_use", "name": tool, "input": {"query": "x"} if "doc" in tool else {"id": "q1"}}
            for tool in tools
        ]
        world.model.script.add({"match": "turn", "content": given})
    world.model.script.add({"match": "turn", "text": ANSWER})
    meter.writes = meter.reads = 0.0
    meter.requests = meter.deltas = 0
    user = f"user-{len(rounds)}"
    chat = world.ask("A question of some length about setting something up?", user=user)
    leases = world.stores.leases
    leases.free(leases.take(user, STREAMS))
    calls = sum(map(len, rounds))
    flowing = math.ceil((chat.turn * MODEL_SECONDS / 2) / WRITE_SECONDS)
    states = 2 * chat.turn + sum(1 + len(one) for one in rounds) + 1
    writes = meter.writes - meter.deltas + flowing
    return Cost(meter.requests - meter.deltas + flowing, writes, meter.reads, states, chat.turn, calls)


def main() -> None:
    """Print the table."""
    with make_world(retrieve_documentation=lambda _: ToolResult(RESULT)) as world:
        dynamodb: Any = world.stores.dynamodb
        meter = Meter(dynamodb)
        dynamodb.meta.events.register("provide-client-params.dynamodb", meter.sent)
        dynamodb.meta.events.register("after-call.dynamodb", meter.answered)
        costs = {name: measure(world, meter, rounds) for name, rounds in CHATS.items()}
    table = Table(title="A chat, model aside")
    for heading in (
        "",
        "states",
        "requests",
        "write units",
        "read units",
        "Lambda",
        "DynamoDB",
        "Step Functions",
        "API",
        "total",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for name, cost in costs.items():
        dollars = cost.parts
        table.add_row(
            name,
            str(cost.states),
            str(cost.requests),
            f"{cost.writes:.0f}",
            f"{cost.reads:.0f}",
            *[
                f"${dollars[part] * 1000:.3f}"
                for part in ("Lambda", "DynamoDB", "Step Functions", "API Gateway")
            ],
            f"${sum(dollars.values()) * 1000:.3f}",
        )
    console = Console(width=130)
    console.print(table)
    console.print(
        "Dollars per 1,000 chats, us-east-1 on demand. Lambda waits for the model: "
        f"{MODEL_SECONDS:.0f} s a call at {GB} GB are assumed, and deltas for half of them."
    )


if __name__ == "__main__":
    main()
