"""What a chat costs, model aside: requests, units, states and dollars, counted from real requests.

    uv run --group test python -m bench.chat_cost            # count, and print the tables
    uv run --group test python -m bench.chat_cost --write    # and write the counts to chat_counts.json

The chats run through the real steps in process; every DynamoDB request is weighed by AWS's rules: a write takes a unit
per KB of the larger of the item before and after, twice that in a transaction, and one for each entry of an index that
comes or goes; a consistent read a unit per 4 KB of what it returns, in a batch per 4 KB of each item, an eventually
consistent one half. Deltas are written at most every 130 ms, so their number follows from how long text flows: the
model's pace below, and not this machine's, which is why those that it writes are left out. One client reads the events,
over one stream: its lease is counted, its reads are in `bench.stream_cost`. Results have 8 KB, answers 3 KB, of the
sample courses' words, so that they compress like text; a user's id is as long as Cognito's. The grown conversation has
50 such chats before the one that is counted. `dualtrack_stack.costs` turns the counts into dollars; the second table is
for the choice of `turn`'s size: what a two-tool chat costs, and how long a cold start takes with the processor share
that Lambda gives that size.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
import uuid
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.dynamo import from_wire
from dualtrack.storage.event_log import unpack
from dualtrack.storage.leases import STREAMS
from dualtrack.streaming.delta_writer import WRITE_SECONDS
from dualtrack.tool_values import ToolResult
from dualtrack_stack.costs import (
    COUNTS_FILE,
    GROWN,
    MODEL_SECONDS,
    TWO_TOOLS,
    CountedChat,
    chat_lines,
    cold_seconds,
    total,
)
from dualtrack_stack.stacks.function_specs import SPECS
from rich.console import Console
from rich.table import Table

from bench.function_memory import FILE as MEASURED
from tests.drivers.documents import ROOT
from tests.drivers.world import SETTINGS, World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.storage.chats import Chat

    Item = Mapping[str, Any]

_IS_CONSISTENT: Final = "dualtrack_is_consistent"
"""In the context of a request, which several threads send at once."""
_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem")
INDEXES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        SETTINGS.history_table: ("listed", "latest"),
        SETTINGS.chats_table: ("open", "deadline"),
        SETTINGS.credits_table: ("active", "day"),
    }
)
"""The keys of each table's index, whose entries hold keys alone."""

MEGABYTES: Final = {spec.name: spec.memory for spec in SPECS.values()}

RESULT_CHARACTERS: Final = 8_000
ANSWER_CHARACTERS: Final = 3_000
QUERIES_BEFORE: Final = 50
"""Of the grown conversation: its past is just under what is folded (CONTRACT 6)."""

DOCUMENTATION: Final = "retrieve_documentation"
CHATS: Final[Mapping[str, Sequence[Sequence[str]]]] = MappingProxyType(
    {
        "no tools": (),
        TWO_TOOLS: ((DOCUMENTATION, DOCUMENTATION),),
        GROWN: ((DOCUMENTATION, DOCUMENTATION),),
        "documentation + two GitHub": ((DOCUMENTATION,), (DOCUMENTATION, DOCUMENTATION)),
    }
)
FUNCTIONS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "no tools": (),
        TWO_TOOLS: (("tool", "tool"),),
        GROWN: (("tool", "tool"),),
        "documentation + two GitHub": (("search",), ("mcp", "mcp")),
    }
)
"""Which functions run the tools of each round. A fake replaces all of them here: a result is stored the same way."""

SIZES: Final = (256, 384, 512, 576, 640, 768, 1024, 1536)


@dataclass
class Meter:
    """Units of the requests between two marks."""

    client: Any
    writes: float = 0.0
    reads: float = 0.0
    requests: int = 0
    quiet: bool = False
    _writing: list[tuple[str, Item, Item, int]] = field(default_factory=list)

    def sent(self, model: Any, params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Note what a request is about to write, and whether it reads consistently."""
        if self.quiet:
            return
        self.requests += 1
        asked = [*params.get("RequestItems", {}).values()] if model.name == "BatchGetItem" else [params]
        context[_IS_CONSISTENT] = any(one.get("ConsistentRead") for one in asked)
        actions = [(model.name, params, 1)] if model.name in _WRITES else []
        for action in params.get("TransactItems", ()):
            ((kind, request),) = action.items()
            actions.append((kind, request, 2))
        self._writing = [
            (request["TableName"], key, self._item(request["TableName"], key), factor)
            for kind, request, factor in actions
            if (key := _key_of(request)) is not None
        ]

    def answered(self, model: Any, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any) -> None:
        """Count an answer."""
        if self.quiet:
            return
        for table, key, before, factor in self._writing:
            self._write(before, self._item(table, key), factor, INDEXES.get(table, ()))
        self._writing = []
        if model.name not in ("GetItem", "Query", "BatchGetItem"):
            return
        at_once = parsed.get("Items") or ([parsed["Item"]] if "Item" in parsed else [])
        one_by_one = [[item] for listed in parsed.get("Responses", {}).values() for item in listed]
        units = sum(max(1, math.ceil(sum(map(size, items)) / 4096)) for items in one_by_one or [at_once])
        self.reads += units if context[_IS_CONSISTENT] else units / 2

    def _write(self, before: Item, after: Item, factor: int, index: Sequence[str]) -> None:
        if _is_of_deltas(after):
            return
        self.writes += factor * max(1, math.ceil(max(size(before), size(after)) / 1024))
        entries = [tuple(str(item[name]) for name in index if name in item) for item in (before, after)]
        if index and entries[0] != entries[1]:
            self.writes += sum(len(entry) == len(index) for entry in entries)

    def _item(self, table: str, key: Item) -> Item:
        self.quiet = True
        item = self.client.get_item(TableName=table, Key=key).get("Item", {})
        self.quiet = False
        return dict(item)


def _key_of(request: Mapping[str, Any]) -> Item | None:
    if "Item" in request:
        return {name: request["Item"][name] for name in ("pk", "sk")}
    key: Item | None = request.get("Key")
    return key


def _is_of_deltas(wire: Item) -> bool:
    item = from_wire(wire)
    return str(item.get("sk", "")).startswith("EV#") and {event.event for event in unpack(item)} == {"delta"}


def size(item: Item) -> int:
    """Bytes of an item (Amazon DynamoDB Developer Guide, "DynamoDB item sizes and formats")."""
    return sum(len(name.encode()) + _size_of(value) for name, value in item.items())


def _size_of(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind in ("S", "B"):
        return len(content.encode() if kind == "S" else content)
    if kind == "N":
        return len(content.lstrip("-").replace(".", "")) // 2 + 2
    if kind == "M":
        return 3 + sum(len(name.encode()) + _size_of(part) + 1 for name, part in content.items())
    if kind == "L":
        return 3 + sum(_size_of(part) + 1 for part in content)
    return 1  # BOOL, NULL


class Prose:
    """Text that compresses like text: runs of the sample courses' words. The same seed gives the same texts."""

    def __init__(self, seed: str) -> None:
        folder = ROOT / "infra" / "dualtrack_stack" / "local" / "sample_courses"
        self._words = [word for path in sorted(folder.glob("*.txt")) for word in path.read_text().split()]
        self._random = random.Random(seed)

    def of(self, characters: int) -> str:
        """So many characters."""
        text: list[str] = []
        while sum(map(len, text)) + len(text) < characters:
            start = self._random.randrange(len(self._words) - 60)
            text += self._words[start : start + self._random.randrange(20, 60)]
        return " ".join(text)[:characters]


def measure(world: World, meter: Meter, prose: Prose, name: str) -> CountedChat:
    """Run one chat and count its requests."""
    rounds, user = CHATS[name], str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    world.stores.ledger.grant(user, "bench", 10_000, "a bench", world.clock())
    conversation = ""
    for _ in range(QUERIES_BEFORE if name == GROWN else 0):
        conversation = _ask(world, prose, rounds, user, conversation).conversation_id
    meter.writes = meter.reads = 0.0
    meter.requests = 0
    meter.quiet = False
    chat = _ask(world, prose, rounds, user, conversation)
    leases = world.stores.leases
    leases.free(leases.take(user, STREAMS))
    meter.quiet = True
    flowing = math.ceil((chat.turn * MODEL_SECONDS / 2) / WRITE_SECONDS)
    states = 2 * chat.turn + sum(1 + len(tools_of_round) for tools_of_round in rounds) + 1
    made = chat.spent.summaries.calls if chat.spent.summaries else 0
    return CountedChat(chat.turn, made, FUNCTIONS[name], states, meter.writes + flowing, meter.reads)


def _ask(world: World, prose: Prose, rounds: Sequence[Sequence[str]], user: str, conversation: str) -> Chat:
    world.model.reset()
    for tools in rounds:
        calls = [{"type": "tool_use", "name": tool, "input": {"query": prose.of(40)}} for tool in tools]
        world.model.script.add({"match": "turn", "content": calls})
    world.model.script.add({"match": "turn", "text": prose.of(ANSWER_CHARACTERS), "notes": True})
    world.clock.sleep(60)
    return world.ask(prose.of(200), user=user, conversation_id=conversation)


def count(names: Iterable[str] = tuple(CHATS)) -> dict[str, CountedChat]:
    """These chats, counted; each by itself, so that its texts are the same whichever others are counted."""
    return {name: _counted(name) for name in names}


def _counted(name: str) -> CountedChat:
    prose = Prose(name)
    with make_world(retrieve_documentation=lambda _: ToolResult(prose.of(RESULT_CHARACTERS))) as world:
        dynamodb: Any = world.stores.chats.client
        meter = Meter(dynamodb, quiet=True)
        dynamodb.meta.events.register("provide-client-params.dynamodb", meter.sent)
        dynamodb.meta.events.register("after-call.dynamodb", meter.answered)
        return measure(world, meter, prose, name)


def of_chats(chats: Mapping[str, CountedChat]) -> Table:
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


def of_sizes(chat: CountedChat) -> Table:
    """What a two-tool chat costs, and how long a cold start of `turn` takes, by `turn`'s size."""
    cpu = json.loads(MEASURED.read_text())["cold_cpu_seconds"]["turn"]
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
