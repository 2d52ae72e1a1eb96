"""What conversation memory costs in tokens and dollars: dualtrack on the local stack, compared with other strategies.

    uv run --group test python -m bench.memory_price [--queries 20] [--draw 0] [--langchain]
    … --picture PICTURE.svg

Fixed data: every query has two tool results of 5 to 40 KB and an answer of 2 to 4 KB, and takes two model calls.
Weighted: a token written to the cache counts 1.25, one read from it 0.1, any other 1, one of an answer 5, as in the
price list. dualtrack is measured at its model, including its summaries and digests; the other strategies are charged by
the same cache, for the same system prompt, tools, queries, results and answers (`bench.other_memories` names
the original of each). ``--langchain`` runs LangChain itself, in its own environment, against the same model. About a
second a query; 20 for the table, 300 for the picture.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import random
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from bench.chart import Panel, line_charts
from bench.other_memories import OTHERS, Charge, Exchange, Remembered, Service
from tests.drivers.long_memory import prose, query_starts, record_text, resent, running_lab
from tests.drivers.memory_scenarios import Progress
from tests.servers.metered_model import serve_metered_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.drivers.long_memory import Lab, Resent, Talk
    from tests.servers.metered_model import Call

FIRST: Final = 5
"""The first query that is counted: before it there is little history."""

WINDOWS: Final = (200_000, 1_000_000)
"""The context windows of earlier models and of the default model."""

DUAL_TRACK: Final = "dual track"
LANGCHAIN: Final = "LangChain summarisation"
LANGCHAIN_PACKAGES: Final = ("langchain==1.4.7", "langchain-anthropic==1.7.7")
TITLE: Final = 240
"""Characters of a result's title: it makes the offline model's summaries as long as a real model's would be."""

DIGEST: Final = 3_400
"""Characters of a digest."""

FETCHED: Final = 40
"""Old results that the model fetches at the end, newest first."""

SMOOTHED: Final = 10


LENGTHS: Final = (
    (349, 26_639, 19_478, 3_361), (310, 26_208, 24_199, 3_621), (208, 27_565, 30_137, 2_524), (276, 12_373, 30_511, 2_108),
    (248, 36_227, 21_722, 3_552), (185, 18_912, 39_579, 3_075), (382, 37_753, 37_639, 3_468), (285, 26_168, 26_790, 2_721),
    (332, 6_170, 39_880, 3_092), (275, 18_285, 29_448, 2_321), (286, 5_001, 9_945, 2_659), (175, 6_434, 17_354, 3_457),
    (134, 15_830, 35_031, 3_318), (179, 22_455, 24_192, 3_533), (353, 25_361, 12_993, 2_567), (88, 19_067, 19_919, 2_202),
    (240, 12_952, 23_400, 2_482), (233, 10_413, 31_552, 2_293), (176, 32_662, 7_631, 2_585), (320, 24_938, 10_004, 3_999),
)  # fmt: skip
"""Characters of query, results and answer in the first twenty queries: drawn once, so that figures compare.
What follows, and every other draw, has lengths of the same spread."""


def conversation(queries: int, draw: int = 0) -> tuple[Exchange, ...]:
    """The fixed data: a longer draw begins with the same queries."""
    return tuple(_exchange(number, draw) for number in range(1, queries + 1))


def _exchange(number: int, draw: int) -> Exchange:
    seed = f"{draw} {number}" if draw else str(number)
    query, first, second, answer = (
        prose(f"price {seed} {part}", characters)
        for part, characters in enumerate(_lengths(number, draw, seed))
    )
    return Exchange(number, query, (_titled(first), _titled(second)), answer)


def _lengths(number: int, draw: int, seed: str) -> tuple[int, int, int, int]:
    if not draw and number <= len(LENGTHS):
        return LENGTHS[number - 1]
    drawn = random.Random(f"memory price {seed}")
    query, answer = drawn.randint(80, 400), drawn.randint(2_000, 4_000)
    return query, drawn.randint(5_000, 40_000), drawn.randint(5_000, 40_000), answer


def _titled(text: str) -> str:
    return f"# {text[:TITLE]}\n\n{text[TITLE:]}"


# ── dualtrack ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Track:
    """Further figures of dualtrack's run: the prefix, and the lengths of its texts, in characters.

    ``fold_weighted``: weighted cost of the calls that wrote digests, answers included.
    """

    resent: Resent
    fold_weighted: float
    summaries: tuple[int, ...]
    digests: tuple[int, ...]
    first_turn: Mapping[str, Any]


def dual_track(lab: Lab, exchanges: Sequence[Exchange]) -> tuple[Remembered, Track]:
    """The conversation through the running stack."""
    tell = Progress(DUAL_TRACK)
    talk = lab.talk("price")
    done = Remembered()
    # the offline rules would write a few sentences; a real model uses its whole limit
    lab.model.script.add(
        {"match": "Then:\nq", "kind": "summary", "text": prose("digest", DIGEST), "always": True}
    )
    for exchange in exchanges:
        before = len(lab.model.calls)
        talk.ask(exchange.query, [exchange.results], exchange.answer)
        done.charges.append([_charge(call) for call in lab.model.calls[before:] if not call.refused])
        tell(f"{exchange.number} of {len(exchanges)} queries")
    calls = list(lab.model.calls)
    done.largest = max(call.counted for call in calls)
    starts = query_starts(calls, talk.marker)
    shown = list(_summarised(talk))
    summaries, digests = (
        tuple(len(record["content"]) for record in shown if record["type"] == kind)
        for kind in ("summary", "digest")
    )
    track = Track(resent(starts), _fold_weighted(calls), summaries, digests, lab.model.first_turn)
    done.old = 2 * len(exchanges)
    tell("every old result by its id")
    done.recalled = sum(
        record_text(talk.person, talk.conversation_id, name) == text
        for name, text in talk.expected.items()
        if "-t" in name
    )
    fetched, asked = _fetched(talk)
    done.note = f"{fetched} of {asked} also by the model's own tool"
    done.ended = "; ".join(talk.wrong()[:3])
    return done, track


def _charge(call: Call) -> Charge:
    used = call.usage
    return Charge(
        used["input_tokens"],
        used["cache_creation_input_tokens"],
        used["cache_read_input_tokens"],
        call.output_tokens,
        call.kind == "turn",
    )


def _fold_weighted(calls: Sequence[Call]) -> float:
    """Weighted cost of the calls that wrote digests."""
    return sum(_charge(call).with_output for call in calls if call.kind == "digest")


def _summarised(talk: Talk) -> Iterator[dict[str, Any]]:
    path, cursor = f"/v1/conversations/{talk.conversation_id}?track=summarised", ""
    while True:
        page = talk.person.get(path + (f"&cursor={cursor}" if cursor else ""))
        yield from page["records"]
        if not (cursor := page.get("cursor") or ""):
            return


def _fetched(talk: Talk) -> tuple[int, int]:
    """One more query whose model fetches old results by id: how many are returned in full, of how many."""
    wanted = [name for name in talk.expected if "-t" in name][-FETCHED:]
    turns = [wanted[start : start + 4] for start in range(0, len(wanted), 4)]
    number = len(talk.chats) + 1
    key = f"{talk.marker}-{number}:"
    for names in turns:
        calls = [
            {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": record_id}}
            for record_id in names
        ]
        talk.script.add({"match": key, "content": calls})
    talk.ask("Bring the old results back.")
    brought = {
        name: record_text(talk.person, talk.conversation_id, f"q{number}-t{index}")
        for index, name in enumerate(wanted, 1)
    }
    return sum(brought[name] == talk.expected[name] for name in wanted), len(wanted)


# ── LangChain ─────────────────────────────────────────────────────────────────────────────────────


def langchain(first_turn: Mapping[str, Any], exchanges: Sequence[Exchange]) -> Remembered:
    """LangChain's agent with its summarisation (30,000 tokens, keep 4 messages), with the real packages and the same
    model.

    Its system prompt is dualtrack's, followed by dualtrack's tools as text, so that both send the same amount.
    """
    with serve_metered_model() as model, tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "told.json"
        data = Path(folder) / "data.json"
        system = json.dumps([first_turn["system"], first_turn["tools"]])
        asked = [[exchange.number, exchange.query, exchange.results] for exchange in exchanges]
        data.write_text(json.dumps({"system": system, "exchanges": asked}))
        # its request for a summary is a user's message with these words
        model.script.add(
            {"match": "Context Extraction Assistant", "text": prose("summary", 1_500), "always": True}
        )
        for exchange in exchanges:
            calls = [
                {"type": "tool_use", "name": "kit_page", "input": {"name": f"{exchange.number}-{index}"}}
                for index in (0, 1)
            ]
            # in their order: the offline model finds a question by its id, which LangChain's have not
            model.script.add({"match": "turn", "content": calls}, {"match": "turn", "text": exchange.answer})
        program = Path(__file__).with_name("langchain_memory.py")
        packages = [f"--with={package}" for package in LANGCHAIN_PACKAGES]
        command = ["uv", "run", "--quiet", "--no-project", "--isolated", *packages, "python", str(program)]
        subprocess.run([*command, model.url, str(data), str(output)], check=True)
        return _told(json.loads(output.read_text()), model.calls, exchanges)


def _told(reported: Mapping[str, Any], calls: Sequence[Call], exchanges: Sequence[Exchange]) -> Remembered:
    done = Remembered(ended=str(reported["ended"]))
    for begin, end in itertools.pairwise([0, *reported["calls"]]):
        done.charges.append([_charge(call) for call in calls[begin:end]])
    done.largest = max(call.counted for call in calls)
    old = [text for exchange in exchanges[: len(done.charges) - 1] for text in exchange.results]
    done.recalled, done.old = sum(text in reported["last"] for text in old), len(old)
    return done


# ── tables and picture ────────────────────────────────────────────────────────────────────────────


def total(charges: Sequence[Sequence[Charge]], figure: Callable[[Charge], float]) -> float:
    """The sum over the queries that are counted."""
    return sum(figure(charge) for query in charges[FIRST - 1 :] for charge in query)


def print_prices(console: Console, ways: Mapping[str, Remembered], queries: int) -> None:
    """A row for each strategy; savings are against a cached full history."""
    table = Table(title=f"Queries {FIRST} to {queries}, two model calls each, summaries counted in")
    for heading in (
        "",
        "loop tokens",
        "all tokens",
        "weighted",
        "with output",
        "$",
        "old results",
        "largest call",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    full = ways["full history"].charges
    figures: tuple[Callable[[Charge], float], ...] = (
        lambda charge: charge.tokens if charge.loop else 0,
        lambda charge: charge.tokens,
        lambda charge: charge.weighted,
        lambda charge: charge.with_output,
    )
    for name, way in ways.items():
        same = len(way.charges) == len(full) and way is not ways["full history"]
        cells = [_saved(total(way.charges, figure), total(full, figure) if same else 0) for figure in figures]
        dollars = f"{total(way.charges, lambda charge: charge.dollars):.4f}"
        table.add_row(name, *cells, dollars, f"{way.recalled} of {way.old}", f"{way.largest:,}")
    console.print(table)
    for name, way in ways.items():
        if way.ended or way.note:
            console.print(f"{name}: {way.ended or way.note}")


def _saved(figure: float, full: float) -> str:
    return f"{figure:,.0f}" + (f" (−{1 - figure / full:.1%})" if full else "")


def print_survivors(console: Console, ways: Mapping[str, Remembered], queries: int) -> None:
    """How many queries each strategy reaches, and what its last ten cost."""
    table = Table(
        title=f"How many of {queries} queries each strategy reaches; mean cost of its last {SMOOTHED} queries"
    )
    for heading in (
        "",
        "queries",
        "tokens",
        "weighted",
        "with output",
        "$",
        "largest call",
        *map(str, WINDOWS),
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for name, way in ways.items():
        late = way.charges[-SMOOTHED:]
        means = [
            statistics.mean(sum(figure(charge) for charge in query) for query in late)
            for figure in (_tokens, _weighted, _with_output, _dollars)
        ]
        fits = ["ends" if way.largest > window or _ended(way) else "runs" for window in WINDOWS]
        table.add_row(
            name,
            str(len(way.charges)),
            *[f"{mean:,.0f}" for mean in means[:3]],
            f"{means[3]:.5f}",
            f"{way.largest:,}",
            *fits,
        )
    console.print(table)


def _ended(way: Remembered) -> bool:
    return way.ended.startswith("query ")


def _tokens(charge: Charge) -> float:
    return charge.tokens


def _weighted(charge: Charge) -> float:
    return charge.weighted


def _with_output(charge: Charge) -> float:
    return charge.with_output


def _dollars(charge: Charge) -> float:
    return charge.dollars


def print_track(console: Console, track: Track, queries: int) -> None:
    """The prefix, the folds, the summaries."""
    again = track.resent
    folds = max(again.folds, 1)
    lengths, digest = track.summaries or (0,), track.digests or (0,)
    console.print(
        f"Sent again outside the unchanged prefix: {again.between:,} tokens between folds "
        f"({again.broken} of {again.starts} prefixes broken). {again.folds} folds in {queries} queries: each sends "
        f"{again.at_folds / folds:,.0f} tokens again and its digest costs {track.fold_weighted / folds:,.0f} weighted; "
        f"spread over all queries {again.at_folds / queries:,.0f} and {track.fold_weighted / queries:,.0f} a query.\n"
        f"{len(track.summaries)} summaries on the summarised track, of {statistics.mean(lengths):.0f} characters (at most "
        f"{max(lengths)}); its digest has {max(digest)}."
    )


def draw(ways: Mapping[str, Remembered], queries: int) -> str:
    """Tokens and dollars by query, as means of ten."""
    tokens = {name: smooth(way, _tokens) for name, way in ways.items()}
    dollars = {name: smooth(way, _dollars) for name, way in ways.items()}
    return line_charts(
        (
            Panel("Input tokens per query", tokens, "{:,.0f}"),
            Panel("Dollars per query", dollars, "${:g}"),
        ),
        f"query 1 to {queries}, means of {SMOOTHED}; default model; a line that ends has reached the window",
    )


def smooth(way: Remembered, figure: Callable[[Charge], float]) -> list[float]:
    """The mean of the queries up to each one, ten at most."""
    by_query = [sum(figure(charge) for charge in query) for query in way.charges]
    return [statistics.mean(by_query[max(end - SMOOTHED, 0) : end]) for end in range(1, len(by_query) + 1)]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--langchain", action="store_true", help="LangChain too: needs a package index")
    parser.add_argument(
        "--window", type=int, default=WINDOWS[-1], help="of the model, for the strategies that grow"
    )
    parser.add_argument("--draw", type=int, default=0, help="other lengths of the same spread")
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    exchanges = conversation(chosen.queries, chosen.draw)
    with tempfile.TemporaryDirectory() as folder, running_lab(Path(folder), {}, port=chosen.port) as lab:
        own, track = dual_track(lab, exchanges)
    ways = {}
    for name, way in OTHERS.items():
        Progress(name)("simulated")
        ways[name] = way(Service(track.first_turn, chosen.window), exchanges)
    if chosen.langchain:
        Progress(LANGCHAIN)("run in its own environment")
        ways[LANGCHAIN] = langchain(track.first_turn, exchanges)
    ways[DUAL_TRACK] = own
    console = Console(width=150)
    print_prices(console, ways, chosen.queries)
    print_survivors(console, ways, chosen.queries)
    print_track(console, track, chosen.queries)
    if chosen.picture:
        chosen.picture.write_text(draw(ways, chosen.queries), encoding="utf-8")


if __name__ == "__main__":
    main()
