"""Receipts of many chats of all kinds, compared with the ledger and with `bench.chat_cost`.

    uv run --group test python -m bench.receipts             # 200 chats, five minutes
    uv run --group test python -m bench.receipts --chats 20

The chats run through the real steps in process. For each chat, its lines must add up to the chat's and to its user's
ledger (`differences`, and line by line here), and its dollars to their sum; for each user, every line of the ledger
must be in exactly one receipt. For the two kinds that the cost bench counts too, states and invocations must be the
same, and the formula's units are printed relative to the counted ones. Exit code 1 if anything does not add up.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.credits.aws_cost import PRICES
from dualtrack.errors import ModelUnavailable
from dualtrack.events import turn_begins
from dualtrack.models.metering import asking
from dualtrack.models.turn import Usage
from dualtrack.tool_values import ToolResult
from dualtrack_stack.costs import TWO_TOOLS, chat_lines, counted
from dualtrack_stack.prices import prices
from dualtrack_stack.stacks.function_specs import SPECS
from rich.console import Console
from rich.table import Table

from bench.chat_cost import ANSWER_CHARACTERS, Prose
from tests.drivers.invariants import account_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

READ: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
QUESTION: Final = "A question of some length about setting something up?"
DEPLOYMENT: Final = Deployment(
    {name: prices()[name] for name in PRICES}, {name: spec.memory for name, spec in SPECS.items()}
)
EXACT: Final = ("Step Functions, states", "Lambda, invocations", "API Gateway, requests", "X-Ray, traces")
UNITS: Final = ("DynamoDB, write units", "DynamoDB, read units")
USERS_KINDS: Final = 4
"""Kinds of chats of one user."""

FLOWING: Final = 2.0 / 0.13
"""Writes of a call's streamed text in the cost bench, whose model takes time; the one here answers at once."""


def _asked(world: World, user: str, rounds: Sequence[int]) -> list[Chat]:
    for calls in rounds:
        world.model.script.add({"match": "turn", "content": [READ] * calls})
    world.model.script.add({"match": "turn", "text": Prose("receipts").of(ANSWER_CHARACTERS)})
    return [world.ask(QUESTION, user=user)]


def _no_tools(world: World, user: str) -> list[Chat]:
    return _asked(world, user, ())


def _two_tools(world: World, user: str) -> list[Chat]:
    return _asked(world, user, (2,))


def _two_rounds(world: World, user: str) -> list[Chat]:
    return _asked(world, user, (1, 3))


def _searched(world: World, user: str) -> list[Chat]:
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "How?"}}
    world.model.script.add({"match": "turn", "content": [ask, READ]})
    return [world.ask(QUESTION, user=user)]


def _search(_: Running) -> ToolResult:
    """A fake documentation search with the costs of a real one: two model calls, and embeddings."""
    for tokens in (400, 3_000):
        with asking("model", "claude-haiku-4-5") as question:
            question.usage = Usage(tokens, 60)
    with asking("embedding", "voyage-3-large") as question:
        question.usage = Usage(9_000)
    return ToolResult("What the documentation says.")


def _follow_up(world: World, user: str) -> list[Chat]:
    first = world.ask(QUESTION, user=user)
    return [first, world.ask("And then?", user=user, conversation_id=first.conversation_id)]


def _lost_call(world: World, user: str) -> list[Chat]:
    chat = world.start(QUESTION, user=user)
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])
    return [world.run(chat)]


def _failed(world: World, user: str) -> list[Chat]:
    world.model.script.add({"match": "turn", "content": [READ]})
    world.model.script.add({"match": "turn", "status": 500})
    chat = world.start(QUESTION, user=user)
    with contextlib.suppress(ModelUnavailable):
        world.answer(chat)
    world.abort(chat)
    return [world.load(chat)]


def _cancelled(world: World, user: str) -> list[Chat]:
    world.model.script.add({"match": "turn", "content": [READ]})
    chat = world.start(QUESTION, user=user)
    world.turn(chat, 0)
    executions: Any = world.executions
    return [cancel_chat(world.stores, executions, world.load(chat))]


def _summaries_died(world: World, user: str) -> list[Chat]:
    chat = world.start(QUESTION, user=user)
    world.answer(chat)
    world.abort(chat)
    return [world.load(chat)]


KINDS: Final[Mapping[str, Callable[[World, str], list[Chat]]]] = MappingProxyType(
    {
        "no tools": _no_tools,
        TWO_TOOLS: _two_tools,
        "tools in two rounds": _two_rounds,
        "a documentation search": _searched,
        "a follow-up": _follow_up,
        "a call that was lost": _lost_call,
        "failed": _failed,
        "cancelled": _cancelled,
        "its summaries died": _summaries_died,
    }
)


@dataclass
class Seen:
    """Figures of the chats of one kind."""

    chats: int = 0
    lines: int = 0
    credits: int = 0
    dollars: float = 0.0
    units: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def look(world: World, kind: str, chat: Chat, seen: Seen) -> Any:
    """Check that the chat's receipt adds up; returns it."""
    receipt = receipt_of(evidence(world.stores, chat, world.stores.ledger), DEPLOYMENT)
    lines, totals = receipt["lines"], receipt["totals"]
    seen.chats += 1
    seen.lines += len(lines)
    seen.credits += totals["credits"]
    seen.dollars += totals["dollars"]
    seen.faults += receipt["differences"]
    if totals["credits"] != chat.credits_used:
        seen.faults.append(f"{chat.chat_id}: {totals['credits']} credits, the chat {chat.credits_used}")
    if not math.isclose(totals["dollars"], math.fsum(line["dollars"] for line in lines)):
        seen.faults.append(f"{chat.chat_id}: dollars")
    if kind in counted():
        mine = {line["item"]: line for line in lines if line["kind"] == "aws"}
        theirs = {line.item: line for line in chat_lines(counted()[kind], dict(DEPLOYMENT.megabytes))}
        unequal = [item for item in EXACT if not math.isclose(mine[item]["dollars"], theirs[item].dollars)]
        seen.faults += [f"{chat.chat_id}: {item} differs from the cost bench" for item in unequal]
        flowing = {"DynamoDB, write units": counted()[kind].model_calls * FLOWING}
        seen.units += [mine[item]["amount"] / (theirs[item].amount - flowing.get(item, 0)) for item in UNITS]
    return receipt


def settled(world: World, user: str, receipts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the user's ledger and the receipts differ, line by line."""
    on_receipts = sorted(
        (line["id"], line["movement"], line["amount"])
        for receipt in receipts
        for line in receipt["lines"]
        if line["kind"] == "ledger"
    )
    kept = world.stores.ledger.movements(user)
    faults = (
        [] if len(on_receipts) == len({line[0] for line in on_receipts}) == len(kept) else [f"{user}: lines"]
    )
    for kind in ("hold", "settle", "release"):
        mine = sum(amount for _, movement, amount in on_receipts if movement == kind)
        theirs = sum(movement.amount for movement in kept if movement.kind == kind)
        faults += [] if mine == theirs else [f"{user}: {kind} {mine}, the ledger {theirs}"]
    return faults


def run(chats: int) -> tuple[dict[str, Seen], list[str]]:
    """Figures by kind, and what does not add up for a user; each user's allowance is enough for a few chats."""
    seen: dict[str, Seen] = defaultdict(Seen)
    faults: list[str] = []
    kinds, numbers = itertools.cycle(KINDS), itertools.count()
    with make_world(retrieve_documentation=_search) as world:
        while sum(of_kind.chats for of_kind in seen.values()) < chats:
            user, own, receipts = f"user-{next(numbers)}", [], []
            for kind in itertools.islice(kinds, USERS_KINDS):
                world.model.reset()
                for chat in KINDS[kind](world, user):
                    own.append(chat)
                    receipts.append(look(world, kind, chat, seen[kind]))
            faults += settled(world, user, receipts)
            faults += account_faults(world.stores, user, own)
    return seen, faults


def table_of(seen: Mapping[str, Seen]) -> Table:
    """A row per kind; the unit columns are the formula's units divided by the counted ones."""
    table = Table(title="Receipts, by kind of chat")
    for heading in (
        "",
        "chats",
        "lines",
        "credits",
        "dollars, AWS and model",
        "write units",
        "read units",
        "faults",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for name, figures in seen.items():
        units = [f"{sum(figures.units[at::2]) / figures.chats:.2f}" if figures.units else "" for at in (0, 1)]
        row = (
            str(figures.chats),
            str(figures.lines),
            str(figures.credits),
            f"${figures.dollars:.4f}",
            *units,
        )
        table.add_row(name, *row, str(len(figures.faults)))
    return table


def main() -> None:
    """Print the table and what does not add up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=200)
    seen, faults = run(parser.parse_args().chats)
    faults += [fault for figures in seen.values() for fault in figures.faults]
    console = Console(width=130)
    console.print(table_of(seen))
    for fault in faults:
        console.print(fault)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
