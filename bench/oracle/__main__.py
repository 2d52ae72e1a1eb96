"""Whether what was said can be found again: ``uv run --group test python -m bench.oracle [--queries 60] [--told]``.

108 facts are planted in a conversation in which each query has two results of 5 to 40 KB: in a query, an answer, the
head, the middle or the end of a result, or as a standing instruction. A day later each is asked for in a fork of its
own. What is counted is read from the bytes that the product's own steps send, over the strict wire of
`dualtrack.testing`, with the product's own tools and the local model: *in sight*, in the first request; *named*, by an
id line in it that shares a word with the question; *hit*, among the records of a search with the default limit;
*reachable*, with at most two calls by a reader who obeys only what is in sight (`bench.oracle.reader`). Summaries
and digests are written by nobody (the product's extracts stand), by one who keeps every fact, and by one who keeps none
(`bench.oracle.writers`).
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.turn_attempt import TurnSettings
from dualtrack.clock import iso
from dualtrack.ids import new_conversation_id
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.profiles import DEFAULT_PROFILE, profile_named
from dualtrack.settings import DEFAULTS
from dualtrack.storage.conversations import Conversation, list_position
from dualtrack.tool_values import ToolResult
from dualtrack.tools.registry import in_house_tools
from dualtrack.tools.running import ToolNeeds
from dualtrack_stack.local.testing.aws import stores_in_memory
from dualtrack_stack.local.testing.local_chat import LocalChat
from dualtrack_stack.local.testing.script import connect
from dualtrack_stack.local.testing.workflow import JumpingClock, LocalWorkflow
from rich.console import Console
from rich.table import Table

from bench.conversation_search.__main__ import InProcess
from bench.oracle.facts import KINDS, Documentation, conversation
from bench.oracle.reader import CALLS, READ, Probe, Reader
from bench.oracle.writers import WRITERS
from tests.drivers.world import search_needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.storage.stores import Stores
    from dualtrack.tools.running import Execute, Running

    from bench.oracle.facts import Exchange

USER: Final = "ann"
NEWEST: Final = 5
OLDER: Final = "older, on the track"
TRACK_TOKENS: Final = 8_000
"""A third of the profile's own budget: as much is folded after 60 queries as there after 180."""

SECONDS_BETWEEN: Final = 30
A_DAY: Final = 86_400


def asked(
    writer: str, exchanges: Sequence[Exchange], local: Any = None, track_tokens: int = TRACK_TOKENS
) -> list[Probe]:
    """Every fact's probe, after the conversation was led with this writer of summaries. ``local``: the local model;
    ``track_tokens``: the budget of the past."""
    facts: dict[str, list[str]] = defaultdict(list)
    for exchange in exchanges:
        for fact in exchange.facts:
            facts[fact.record_id].append(fact.sentence)
    script, clock = Reader(WRITERS[writer], facts), JumpingClock()
    with stores_in_memory(clock) as stores:
        stores.ledger.grant(USER, "bench", 1_000_000, "a bench", stores.clock())
        profile = replace(profile_named(DEFAULT_PROFILE), track_tokens=track_tokens)
        deployed = AgentDeployment(DEFAULTS.dualtrack_model, profiles={profile.name: profile})
        settings = TurnSettings(deployed)
        tools = _tools(stores, exchanges, local)
        workflow = LocalWorkflow(stores, connect(script, clock), settings, tools, clock)
        conversation_id = _new(stores)
        for number, exchange in enumerate(exchanges, start=1):
            script.tell(number, exchange)
            clock.sleep(SECONDS_BETWEEN)
            told = LocalChat(USER, conversation_id, stores, script, workflow).ask(exchange.query)
            assert told.text.rstrip() == exchange.answer.rstrip(), told
        clock.sleep(A_DAY)
        probes = [Probe(fact) for exchange in exchanges for fact in exchange.facts]
        for probe in probes:
            fork = fork_conversation(stores, USER, conversation_id, len(exchanges) + 1)
            script.probe = probe
            LocalChat(USER, fork.conversation_id, stores, script, workflow).ask(probe.fact.question)
        return probes


def _new(stores: Stores) -> str:
    own_id, now = new_conversation_id(), iso(stores.clock())
    position = list_position(now, own_id)
    stores.conversations.create(Conversation(USER, own_id, "Oracle", DEFAULT_PROFILE, now, now, position))
    return own_id


def _tools(stores: Stores, exchanges: Sequence[Exchange], local: Any) -> Execute:
    """The product's tools; those of the documentation return what was planted."""
    searches = in_house_tools("search", lambda: search_needs(stores, local=local))
    in_house = in_house_tools("tool", lambda: ToolNeeds(stores))

    def read(running: Running) -> ToolResult:
        number, place = map(int, running.call.input["query"].split("."))
        return ToolResult(exchanges[number - 1].results[place])

    named: Mapping[str, Execute] = {READ: read, SEARCH_TOOL: searches}
    return lambda running: named.get(running.call.tool, in_house)(running)


FIGURES: Final[Mapping[str, Callable[[Probe], bool]]] = {
    "in sight": lambda probe: probe.in_sight,
    "named": lambda probe: probe.is_named,
    "hit": lambda probe: probe.is_hit,
    "reachable": lambda probe: probe.calls is not None,
}


def table_of(writer: str, probes: Sequence[Probe], queries: int) -> Table:
    """A row for each kind and each age."""

    def age(probe: Probe) -> str:
        if probe.fact.query <= probe.folded:
            return "behind the digest"
        return OLDER if probe.fact.query <= queries - NEWEST else f"the newest {NEWEST} queries"

    groups: dict[str, list[Probe]] = defaultdict(list)
    for probe in sorted(probes, key=lambda probe: KINDS.index(probe.fact.kind)):
        for name in ("all", probe.fact.kind):
            groups[name].append(probe)
    for probe in reversed(probes):
        groups[age(probe)].append(probe)
    table = Table(title=f"Summaries: {writer} ({queries} queries, {CALLS} calls)")
    for heading in ("", "facts", *FIGURES):
        table.add_column(heading, justify="right" if heading else "left")
    for name, own in groups.items():
        shares = (f"{sum(map(figure, own)) / len(own):.0%}" for figure in FIGURES.values())
        table.add_row(name, str(len(own)), *shares)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--writer", choices=list(WRITERS), nargs="*", default=list(WRITERS))
    parser.add_argument("--missed", action="store_true", help="list the facts that were not reachable")
    parser.add_argument("--told", action="store_true", help="answers name what their results say")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)
    console, local = Console(width=110), InProcess()
    exchanges = conversation(chosen.queries, Documentation(), told=chosen.told)
    for writer in chosen.writer:
        began = time.monotonic()
        probes = asked(writer, exchanges, local)
        console.print(table_of(writer, probes, chosen.queries), f"{time.monotonic() - began:.0f} s")
        for probe in probes if chosen.missed else ():
            if probe.calls is None:
                console.print(
                    f"{probe.fact.kind} {probe.fact.record_id} hit={probe.is_hit}: {probe.fact.question}"
                )


if __name__ == "__main__":
    main()
