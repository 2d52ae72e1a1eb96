"""What a chat costs, model aside: requests, units, states and dollars, counted from real requests.

    uv run python -m tests.bench.chat_cost            # count, and print the tables
    uv run python -m tests.bench.chat_cost --write    # and write the counts to infra/chat_counts.json

The chats run through the real steps over moto; every DynamoDB request is weighed by AWS's rules (a write takes a unit
per KB, twice that in a transaction, one more for an entry of the sparse index that comes or goes; a consistent read a
unit per 4 KB, an eventually consistent one half). Deltas are written at most every 130 ms, so their number follows from
how long text flows: the model's pace below. One client reads the events, over one stream: its lease is counted, its
reads are in `tests.bench.stream_cost`. `infra.costs` turns the counts into dollars; the second table supports the
choice of `turn`'s size: what a two-tool chat costs, and how long a cold start takes with the processor share that
Lambda gives that size.
"""

from __future__ import annotations

import argparse
import dataclasses
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

from infra.costs import COUNTS_FILE, MODEL_SECONDS, TWO_TOOLS, Counted, chat_lines, cold_seconds, total
from infra.stacks.function_specs import SPECS
from tests.bench.function_memory import FILE as MEASURED
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEGABYTES: Final = {spec.name: spec.memory for spec in SPECS.values()}

RESULT: Final = "A result with names, numbers and ids, such as 4711. " * 150
ANSWER: Final = "An answer that explains what was found, step by step, with code. " * 30

DOCUMENTATION: Final = "retrieve_documentation"
CHATS: Final[Mapping[str, Sequence[Sequence[str]]]] = MappingProxyType(
    {
        "no tools": (),
        TWO_TOOLS: (("retrieve_full_context", "retrieve_full_context"),),
        "documentation + two GitHub": ((DOCUMENTATION,), (DOCUMENTATION, DOCUMENTATION)),
    }
)
FUNCTIONS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "no tools": (),
        TWO_TOOLS: (("tool", "tool"),),
        # a fake replaces GitHub's tool here; its result is stored the same way
        "documentation + two GitHub": (("search",), ("github", "github")),
    }
)
"""Which functions run the tools of each round."""

SIZES: Final = (256, 384, 512, 576, 640, 768, 1024, 1536)


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
        """Count a request."""
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
        """Count an answer."""
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
        item = self.client.get_item(TableName=request["TableName"], Key=request["Key"]).get("Item", {})
        self.quiet = False
        return dict(item)


def size(item: Mapping[str, Any]) -> int:
    """Bytes of an item: its names and values."""
    return sum(
        len(name) + len(json.dumps(next(iter(value.values())), default=str)) for name, value in item.items()
    )


def measure(world: World, meter: Meter, name: str) -> Counted:
    """Run one chat and count its requests."""
    rounds = CHATS[name]
    world.model.reset()
    for tools in rounds:
        calls = [
            {"type": "tool_use", "name": tool, "input": {"query": "x"} if "doc" in tool else {"id": "q1"}}
            for tool in tools
        ]
        world.model.script.add({"match": "turn", "content": calls})
    world.model.script.add({"match": "turn", "text": ANSWER})
    meter.writes = meter.reads = 0.0
    meter.requests = meter.deltas = 0
    user = f"user-{len(rounds)}"
    chat = world.ask("A question of some length about setting something up?", user=user)
    leases = world.stores.leases
    leases.free(leases.take(user, STREAMS))
    flowing = math.ceil((chat.turn * MODEL_SECONDS / 2) / WRITE_SECONDS)
    states = 2 * chat.turn + sum(1 + len(tools_of_round) for tools_of_round in rounds) + 1
    writes = meter.writes - meter.deltas + flowing
    return Counted(chat.turn, FUNCTIONS[name], states, writes, meter.reads)


def count() -> dict[str, Counted]:
    """Every chat, counted."""
    with make_world(retrieve_documentation=lambda _: ToolResult(RESULT)) as world:
        dynamodb: Any = world.stores.dynamodb
        meter = Meter(dynamodb)
        dynamodb.meta.events.register("provide-client-params.dynamodb", meter.sent)
        dynamodb.meta.events.register("after-call.dynamodb", meter.answered)
        return {name: measure(world, meter, name) for name in CHATS}


def of_chats(chats: Mapping[str, Counted]) -> Table:
    """The cost of each kind of chat, by service."""
    table = Table(title="1,000 chats, model aside, us-east-1 on demand")
    services = ("Lambda", "Step Functions", "DynamoDB", "API Gateway", "Logs", "X-Ray")
    for heading in ("", "states", "write units", "read units", *services, "total"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, chat in chats.items():
        lines = chat_lines(chat, MEGABYTES)
        dollars = [total(line for line in lines if line.item.startswith(service)) for service in services]
        table.add_row(
            name,
            str(chat.states),
            f"{chat.writes:.0f}",
            f"{chat.reads:.0f}",
            *(f"${part * 1000:.3f}" for part in (*dollars, total(lines))),
        )
    return table


def of_sizes(chat: Counted) -> Table:
    """What a two-tool chat costs, and how long a cold start of `turn` takes, by `turn`'s size."""
    cpu = json.loads(MEASURED.read_text())["cold_turn_cpu_seconds"]
    table = Table(title=f"`turn` by its size; a cold start takes {cpu} s of a processor")
    for heading in ("MB", "1,000 two-tool chats", "cold start, s"):
        table.add_column(heading, justify="right")
    for size in SIZES:
        dollars = total(chat_lines(chat, {**MEGABYTES, "turn": size}))
        mark = " ←" if size == MEGABYTES["turn"] else ""
        table.add_row(f"{size}{mark}", f"${dollars * 1000:.3f}", f"{cold_seconds(cpu, size):.2f}")
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    chats = count()
    Console(width=130).print(of_chats(chats), of_sizes(chats[TWO_TOOLS]))
    if write:
        counts = {name: dataclasses.asdict(chat) for name, chat in chats.items()}
        COUNTS_FILE.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
