"""Input tokens of a 20-query conversation under four ways of remembering.

    uv run python -m tests.bench.history_tokens [PICTURE.svg]

Fixed data: 20 queries, each with two tool results of 5 to 40 KB and a response of 2 to 4 KB. Every
query takes two model calls: one that asks for the tools, one that answers from their results, which it
sees in full whatever the way of remembering. The summaries have the greatest length that dualtrack
stores, and the calls that make them are counted in. Tokens are estimated at four characters each.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.memory.records import Block, QueryTrack, Record, ToolCallDetail, block_of, full_tokens
from dualtrack.memory.summaries import SUMMARY_LIMIT, summary_requests
from dualtrack.memory.view import PastTurn, Result, View, build
from dualtrack.models.turn import ToolCall
from dualtrack.text import estimate_tokens
from rich.console import Console
from rich.table import Table

from tests.bench.chart import line_chart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

QUERIES: Final = 20
KEPT_ROUNDS: Final = 3
WINDOW: Final = 2

Sequenced = tuple[tuple[str, str], ...]
"""What is sent at the start of a query: (role, block), in order."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the fixed conversation: its records and their summaries."""

    number: int
    records: tuple[Record, ...]
    track: QueryTrack


def words(generator: random.Random, characters: int) -> str:
    """Prose of about this length."""
    text = " ".join(
        "".join(generator.choices("etaoinshrdlu", k=generator.randint(2, 9))) for _ in range(characters // 6)
    )
    return text[:characters]


def conversation() -> tuple[Query, ...]:
    """The fixed data."""
    generator = random.Random(20_261_121)
    return tuple(_query(number, generator) for number in range(1, QUERIES + 1))


def _query(number: int, generator: random.Random) -> Query:
    at = "2026-11-21T00:00:00.000Z"
    query = Record(f"q{number}", "message", "user", words(generator, generator.randint(80, 400)), at)
    tools = tuple(
        Record(
            f"q{number}-t{place}",
            "tool_call",
            "user",
            words(generator, generator.randint(5_000, 40_000)),
            at,
            1,
            call=ToolCallDetail(
                f"toolu_{number}_{place}", "search", MappingProxyType({"query": "x"}), False, 1.0, 1
            ),
        )
        for place in (1, 2)
    )
    response = Record(
        f"q{number}-r",
        "message",
        "assistant",
        words(generator, generator.randint(2_000, 4_000)),
        at,
        2,
        stop="complete",
    )
    records = (query, *tools, response)
    blocks = (
        block_of(query),
        *(
            Block(f"{one.record_id}-sum", one.role, words(generator, SUMMARY_LIMIT), at, one.record_id)
            for one in (*tools, response)
        ),
    )
    return Query(number, records, QueryTrack(number, blocks, full_tokens(records)))


# ── four ways of remembering: what of the past is sent at the start of a query ────────────────────


def full_history(past: Sequence[Query]) -> Sequenced:
    """Every record whole."""
    return tuple((record.role, block_of(record).text) for one in past for record in one.records)


def last_exchanges(past: Sequence[Query]) -> Sequenced:
    """The last two queries and responses, without tools (the window of the course assistant)."""
    kept = [record for one in past[-WINDOW:] for record in (one.records[0], one.records[-1])]
    return tuple((record.role, block_of(record).text) for record in kept)


def newest_rounds(past: Sequence[Query]) -> Sequenced:
    """All queries and responses; the newest tool rounds in full, older ones by name only."""
    sent = []
    for place, one in enumerate(past):
        whole = place >= len(past) - KEPT_ROUNDS
        for record in one.records:
            named = f"[ID:{record.record_id}] {record.call.tool}" if record.call else ""
            sent.append((record.role, block_of(record).text if whole or not named else named))
    return tuple(sent)


def dual_track(past: Sequence[Query]) -> Sequenced:
    """The summarised track."""
    return tuple((block.role, block.text) for one in past for block in one.track.blocks)


WAYS: Final[dict[str, Callable[[Sequence[Query]], Sequenced]]] = {
    "full history": full_history,
    f"last {WINDOW} exchanges": last_exchanges,
    f"newest {KEPT_ROUNDS} tool rounds": newest_rounds,
    "dual track": dual_track,
}


def running_tokens(one: Query) -> tuple[int, int]:
    """The running query's own tokens in its two calls."""
    calls = tuple(
        ToolCall(record.record_id, record.call.tool_use_id, record.call.tool, record.call.input)
        for record in one.records
        if record.call
    )
    results = MappingProxyType(
        {record.record_id: Result(record.content) for record in one.records if record.call}
    )
    asked = tuple(
        MappingProxyType({"type": "tool_use", "id": call.tool_use_id, "name": call.tool, "input": call.input})
        for call in calls
    )
    view = View(tracks=(), query=block_of(one.records[0]))
    turned = View(tracks=(), query=view.query, turns=(PastTurn(asked, calls, results),))
    return build(view).sent_tokens, build(turned).sent_tokens


def summary_tokens(one: Query) -> int:
    """What the calls that make the query's summaries read."""
    return sum(estimate_tokens(request.system + request.text) for request in summary_requests(one.records))


def tokens_of(sent: Sequenced) -> int:
    """The estimate of a sequence."""
    return sum(estimate_tokens(text) for _, text in sent)


def sent_again(before: Sequenced, now: Sequenced) -> int:
    """Tokens of blocks that were sent at the start of the query before, but not in the common prefix."""
    common = 0
    while common < min(len(before), len(now)) and before[common] == now[common]:
        common += 1
    old = set(before)
    return sum(estimate_tokens(text) for role, text in now[common:] if (role, text) in old)


@dataclass(frozen=True, slots=True)
class Figures:
    """Input tokens by query, and those sent again outside the unchanged prefix."""

    by_query: tuple[int, ...]
    again: int


def measure(way: str) -> Figures:
    """One way of remembering over the whole conversation."""
    queries = conversation()
    remember = WAYS[way]
    by_query: list[int] = []
    again = 0
    before: Sequenced = ()
    for place, one in enumerate(queries):
        past = remember(queries[:place])
        again += sent_again(before, past)
        first, second = running_tokens(one)
        made = summary_tokens(one) if way == "dual track" else 0
        by_query.append(2 * tokens_of(past) + first + second + made)
        before = past
    return Figures(tuple(by_query), again)


def main() -> None:
    """Print the table."""
    figures = {way: measure(way) for way in WAYS}
    table = Table(title="Input tokens per query (two model calls; summary calls counted in)")
    table.add_column("query", justify="right")
    for way in WAYS:
        table.add_column(way, justify="right")
    for place in range(QUERIES):
        table.add_row(str(place + 1), *[f"{one.by_query[place]:,}" for one in figures.values()])
    table.add_section()
    late = {way: sum(one.by_query[4:]) for way, one in figures.items()}
    whole = late["full history"]
    table.add_row("5–20", *[f"{total:,}" for total in late.values()])
    table.add_row("saved", *[f"{1 - total / whole:.0%}" for total in late.values()])
    table.add_row("again", *[f"{one.again:,}" for one in figures.values()])
    console = Console(width=110)
    console.print(table)
    console.print(
        "saved: of the full history's tokens over queries 5 to 20 · again: tokens sent again outside the unchanged prefix"
    )
    if len(sys.argv) > 1:
        lines = {way: one.by_query for way, one in figures.items()}
        picture = line_chart(
            "Input tokens per query", lines, "query 1 to 20; estimated at four characters a token"
        )
        Path(sys.argv[1]).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
