"""What a conversation costs by its kind and its length: dualtrack's own steps, compared with other strategies.

    uv run --group test python -m bench.memory_kinds [--queries 100] [--kinds NAME …] [--pause]

A kind is the number and the lengths of an exchange's results and the length of its answer. Each is one conversation,
whose first queries are the shorter ones of the table. dualtrack runs turn, tools and summaries in one process against
the offline model, whose prompt cache follows the service's rules on a simulated clock; every call is charged as that
service reports it, summaries and digests included. The others are simulated on the same cache, system prompt, tools and
texts (`bench.other_memories`). Weighted as in the price list: written to the cache 1.25, read from it 0.1, any
other token of input 1, one of output 5. With ``at_once`` the calls for summaries and digests count a tenth, as the
model for them costs there at most. ``--pause``: six minutes before each query, so that the cache has expired.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import random
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.ids import parse_record_id
from dualtrack.models.protocol import ignore
from dualtrack.models.summary_model import CHEAP
from dualtrack.profiles import DEFAULT_PROFILE, WhenSummarised, all_profiles, profile_named
from dualtrack.tool_values import ToolResult
from dualtrack_stack.local.offline_model.tokens import PromptCache
from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from bench.other_memories import (
    RATES,
    Charge,
    Exchange,
    Remembered,
    Service,
    compaction,
    full_history,
    last_exchanges,
    pause_before,
)
from tests.drivers.long_memory import prose
from tests.drivers.memory_scenarios import Progress
from tests.drivers.world import make_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.models.prices import Rates
    from dualtrack.models.protocol import Form, Model
    from dualtrack.models.turn import FirstByte, ModelReply, Usage
    from dualtrack.tools.running import Running
    from dualtrack_stack.local.offline_model.script import Script

    from tests.drivers.world import World

MODEL: Final = "claude-haiku-5-5"
WINDOW: Final = 1_000_000
PAUSE: Final = 360.0
FETCH_EVERY, FETCH_BACK = 5, 3
LENGTHS: Final = (1, 2, 4, 10, 20, 40, 100)
TITLE: Final = 240
"""Characters of a result's title: it makes the offline model's summaries as long as a real model's would be."""

TOOL: Final = "retrieve_documentation"
FULL: Final = "full history"


@dataclass(frozen=True, slots=True)
class Kind:
    """The lengths of a conversation's texts in characters, each drawn between two bounds. ``tools``: its results in a
    turn."""

    tools: int
    results: tuple[int, int]
    answer: tuple[int, int]


KINDS: Final[Mapping[str, Kind]] = {
    "2 results of 5–40 KB, answers 2–4 KB": Kind(2, (5_000, 40_000), (2_000, 4_000)),
    "2 results of 1–4 KB, answers 0.5–1.5 KB": Kind(2, (1_000, 4_000), (500, 1_500)),
    "4 results of 1,001–2,000, answers 1,500": Kind(4, (1_001, 2_000), (1_500, 1_500)),
    "2 results of 1,001–2,000, answers too": Kind(2, (1_001, 2_000), (1_001, 2_000)),
    "1 result of 1,001–2,000, answers 400": Kind(1, (1_001, 2_000), (400, 400)),
    "1 result of 500, answers 200": Kind(1, (500, 500), (200, 200)),
    "no tools, answers 2–4 KB": Kind(0, (0, 0), (2_000, 4_000)),
    "no tools, answers 1,001–2,000": Kind(0, (0, 0), (1_001, 2_000)),
    "no tools, answers 1,000": Kind(0, (0, 0), (1_000, 1_000)),
    "no tools, answers 400": Kind(0, (0, 0), (400, 400)),
    "no tools, answers 200": Kind(0, (0, 0), (200, 200)),
}


def conversation(name: str, queries: int) -> tuple[Exchange, ...]:
    """The fixed data of a kind: a longer conversation begins with the same queries."""
    return tuple(_exchange(name, number) for number in range(1, queries + 1))


def _exchange(name: str, number: int) -> Exchange:
    kind, seed = KINDS[name], f"{name} {number}"
    drawn = random.Random(seed)
    query, answer = drawn.randint(80, 400), drawn.randint(*kind.answer)
    lengths = [drawn.randint(*kind.results) for _ in range(kind.tools)]
    return Exchange(
        number,
        f"Query {number}: {prose(f'{seed} query', query)}",
        tuple(_titled(prose(f"{seed} {index}", length)) for index, length in enumerate(lengths)),
        prose(f"{seed} answer", answer),
        TOOL,
    )


def _titled(text: str) -> str:
    return f"# {text[:TITLE]}\n\n{text[TITLE:]}"[: len(text)]


# ── dualtrack ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class Charged:
    """A model whose calls are kept with what the service reports of them. ``share``: the price of the model for
    summaries and digests, as a part of the turn's."""

    model: Model
    share: float = 1.0
    calls: list[Charge] = field(default_factory=list)
    first: Mapping[str, Any] = field(default_factory=dict)

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """A turn."""
        self.first = self.first or request
        reply = self.model.stream(request, on_text, seconds, on_first, on_thought)
        self._charge(reply.usage, 1.0)
        return reply

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """A summary of one record, or a digest."""
        text, usage = self.model.complete(request, seconds)
        self._charge(usage, self.share, is_turn=False)
        return text, usage

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer in a form: no step of these conversations asks for one."""
        return self.model.parse(request, form, seconds)

    def _charge(self, used: Usage, share: float, *, is_turn: bool = True) -> None:
        plain, written = used.input_tokens * share, used.cache_write_tokens * share
        read, output = used.cache_read_tokens * share, used.output_tokens * share
        self.calls.append(Charge(round(plain), round(written), round(read), round(output), is_turn))


def dual_track(
    exchanges: Sequence[Exchange],
    summaries: WhenSummarised,
    pause: float,
    tell: Callable[[str], None],
    script: Script | None = None,
    look: Callable[[World, str], None] = lambda *_: None,
    *,
    model: str = MODEL,
    share: float = 1.0,
    fetches: bool = False,
) -> tuple[Remembered, Mapping[str, Any]]:
    """The conversation through the product's steps, and the body of its first call. ``script``: of the model's answers;
    ``look`` is called with the world and the conversation's id at its end; ``share``: of the queries that come after
    the pause; ``fetches``: every fifth one reads back a long record that is not in sight."""
    texts = {
        (exchange.number, str(index)): text
        for exchange in exchanges
        for index, text in enumerate(exchange.results)
    }

    def found(running: Running) -> ToolResult:
        parsed = parse_record_id(running.call.id)
        return ToolResult(texts[parsed.query if parsed else 0, running.call.input["query"]])

    done = Remembered()
    with _becoming_short(summaries), make_world(**{TOOL: found}) as made:
        made.model.state.cache = PromptCache(made.clock)
        made.model.state.script = script or made.model.state.script
        made.stores.ledger.grant("ann", "g", 1_000_000, "bench", made.clock())
        charged = Charged(made.claude, CHEAP if summaries == "at_once" else 1.0)
        world = replace(made, claude=charged, model_name=model)
        conversation_id = ""
        for exchange in exchanges:
            world.clock.sleep(pause_before(exchange.number, pause, share))
            fetched = _fetched(world, exchange, conversation_id) if fetches else ""
            conversation_id = _ask(world, exchange, conversation_id, fetched)
            done.charges.append(list(charged.calls))
            charged.calls.clear()
            world.model.state.recorded.clear()
            tell(f"{exchange.number} of {len(exchanges)} queries")
        look(world, conversation_id)
        return done, charged.first


@contextmanager
def _becoming_short(summaries: WhenSummarised) -> Iterator[None]:
    """The assistant's records become short in this way, in this process, until the block ends."""
    profile = profile_named(DEFAULT_PROFILE)
    all_profiles()[DEFAULT_PROFILE] = replace(profile, history=replace(profile.history, summaries=summaries))
    try:
        yield
    finally:
        all_profiles()[DEFAULT_PROFILE] = profile


def _fetched(world: World, exchange: Exchange, conversation_id: str) -> str:
    """The id of the record that the query reads back: the longest of an earlier one that is sent in short."""
    earlier = exchange.number - FETCH_BACK
    if exchange.number % FETCH_EVERY or earlier < 1:
        return ""
    track = world.stores.history.track("ann", conversation_id, earlier)
    if track is None or track.whole_tokens:
        return ""
    return max(((block.size, block.ref) for block in track.blocks if block.size), default=(0, ""))[1]


def _ask(world: World, exchange: Exchange, conversation_id: str, fetched: str) -> str:
    if fetched:
        fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": fetched}}
        world.model.script.add({"match": "turn", "content": [fetch]})
    calls = [
        {"type": "tool_use", "name": TOOL, "input": {"query": str(index)}}
        for index, _ in enumerate(exchange.results)
    ]
    if calls:
        world.model.script.add({"match": "turn", "content": calls})
    world.model.script.add({"match": "turn", "text": exchange.answer, "notes": True})
    chat = world.ask(exchange.query, conversation_id=conversation_id)
    if chat.status != "done":
        raise RuntimeError(f"{exchange.query}: {chat.status}")
    return chat.conversation_id


# ── the table ─────────────────────────────────────────────────────────────────────────────────────

WAYS: Final[Mapping[str, Callable[[Service, Sequence[Exchange]], Remembered]]] = {
    FULL: full_history,
    "last 2 exchanges": last_exchanges,
    "compaction": compaction,
}


def totals(way: Remembered, rates: Rates = RATES) -> list[float]:
    """The weighted cost of the conversation up to each query, output included."""
    return list(itertools.accumulate(sum(charge.at(rates) for charge in query) for query in way.charges))


def measure(name: str, queries: int, pause: float, tell: Callable[[str], None]) -> dict[str, list[float]]:
    """The totals of each strategy in a conversation of this kind, as multiples of the full history's."""
    exchanges = conversation(name, queries)
    ours = {
        f"dual track, {summaries}": dual_track(exchanges, summaries, pause, tell)
        for summaries in get_args(WhenSummarised)
    }
    first = next(iter(ours.values()))[1]
    others = {label: totals(way(Service(first, WINDOW, pause), exchanges)) for label, way in WAYS.items()}
    full = others.pop(FULL)
    if pause:
        kept = full_history(Service(first, WINDOW, pause, for_an_hour=True), exchanges)
        others["full history, cached for an hour"] = totals(kept)
    return {
        label: [cost / whole for cost, whole in zip(costs, full, strict=False)]
        for label, costs in {**{own: totals(way) for own, (way, _) in ours.items()}, **others}.items()
    }


def rows(shares: Mapping[str, Sequence[float]], lengths: Sequence[int]) -> dict[str, list[str]]:
    """The cells of each strategy: the difference to the full history at each length, then the worst length."""
    return {
        label: [*(_shown(costs, length) for length in lengths), _worst(costs)]
        for label, costs in shares.items()
    }


def _shown(costs: Sequence[float], length: int) -> str:
    return f"{costs[length - 1] - 1:+.1%}" if length <= len(costs) else "ends"


def _worst(costs: Sequence[float]) -> str:
    worst = max(costs)
    return f"{worst - 1:+.1%} at {costs.index(worst) + 1}"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=LENGTHS[-1])
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--pause", action="store_true", help="six minutes before each query")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    lengths = [length for length in LENGTHS if length <= chosen.queries]
    console = Console(width=150)
    for name in chosen.kinds:
        shares = measure(name, chosen.queries, PAUSE if chosen.pause else 0.0, Progress(name))
        table = Table(title=f"{name}{', with pauses' if chosen.pause else ''}")
        for heading in ("", *map(str, lengths), "worst"):
            table.add_column(heading, justify="right" if heading else "left")
        for label, cells in rows(shares, lengths).items():
            table.add_row(label, *cells)
        console.print(table)


if __name__ == "__main__":
    main()
