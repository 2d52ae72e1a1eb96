"""Facts at any depth of long records: ``uv run --group test python -m tests.bench.conversation_search.depths``.

Each of 96 tool results of 5 to 100 KB of documentation has one made-up sentence at a random place. Each is asked for in
nearly its words, through the product's stores, index and ranking with the local model. Counted: facts whose record is
among the first hits, and facts that the excerpt itself shows, by size and depth; the characters of a result; its reads.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
from dualtrack.tools.conversation.search import DEFAULT_HITS, found
from dualtrack.tools.conversation.settings import ConversationSearch
from dualtrack.tools.documentation.context7 import Context7
from dualtrack.tools.documentation.dependencies import Dependencies
from dualtrack.tools.documentation.settings import RetrievalSettings
from rich.console import Console
from rich.table import Table

from tests.bench.chat_cost import Meter
from tests.bench.conversation_search.__main__ import PATIENT, InProcess, running
from tests.bench.conversation_search.corpus import Talk, put
from tests.bench.retrieval.corpus import PACKAGES, load
from tests.drivers.world import make_world, search_needs

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST: Final = 5_000
LARGEST: Final = 100_000
NAMES: Final = ("Heron", "Kestrel", "Plover", "Dunlin", "Merlin", "Avocet", "Linnet", "Siskin")
FACTS: Final = (
    ("The nightly backup of {name} starts at {value}.", "When does the nightly backup of {name} start?", "02:{n}"),
    ("The licence of {name} was paid by {value}.", "Who paid the licence of {name}?", "Dr. Okonkwo-{n}"),
    ("{name} keeps its access tokens for {value} days.", "How long does {name} keep access tokens?", "{n}"),
    ("Invoices of {name} go to the office in {value}.", "Where do the invoices of {name} go?", "Tartu {n}"),
    ("The gateway of {name} listens on port {value}.", "On which port does {name}'s gateway listen?", "84{n}"),
    ("The review of {name} found {value} open defects.", "How many open defects did the review of {name} find?", "{n}"),
    ("{name} was renamed from {value} in spring.", "What was {name} called before it was renamed?", "Osprey-{n}"),
    ("The budget that the board approved for {name} is {value}.", "What budget did the board approve for {name}?", "{n}00 euros"),
    ("Only {value} may restart the servers of {name}.", "Who may restart the servers of {name}?", "shift {n}"),
    ("The password of {name}'s test account expires every {value} weeks.", "How often does the password of {name}'s test account expire?", "{n}"),
    ("Customers of {name} may return goods within {value} days.", "Within how many days may customers of {name} return goods?", "{n}"),
    ("The freezer of the laboratory {name} is kept at minus {value} degrees.", "How cold is the freezer of the laboratory {name}?", "{n}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact, its record, and where in it: ``depth`` from 0 to 1."""

    question: str
    sentence: str
    record_id: str
    size: int
    depth: float


def facts() -> Iterator[tuple[str, str]]:
    """Sentence and question of each fact."""
    for number, (name, (sentence, question, value)) in enumerate(
        ((name, fact) for fact in FACTS for name in NAMES), start=11
    ):
        yield sentence.format(name=name, value=value.format(n=number)), question.format(name=name)


def planted() -> tuple[Talk, list[Planted]]:
    """A conversation with the facts, two results a query."""
    draw = random.Random(23)
    filler = [chunk.searchable for package in PACKAGES for chunk in load(package).chunks]
    draw.shuffle(filler)
    text, at = "\n\n".join(filler), 0
    talk = Talk(f"cv_{1:026d}")
    made: list[Planted] = []
    listed = list(facts())
    draw.shuffle(listed)
    for start in range(0, len(listed), 2):
        results: list[tuple[str, Any, str]] = []
        for place, (sentence, question) in enumerate(listed[start : start + 2], start=1):
            size = int(SMALLEST * (LARGEST / SMALLEST) ** draw.random())
            at = at if at + size < len(text) else 0
            body, at = text[at : at + size], at + size
            cut = body.rfind(" ", 0, max(1, int(draw.random() * size))) + 1
            whole = f"{body[:cut]}{sentence} {body[cut:]}"
            results.append(("retrieve_documentation", {"query": f"part {len(made)}"}, whole))
            record_id = f"q{len(talk.queries) + 1}-t{place}"
            made.append(Planted(question, sentence, record_id, size, cut / size))
        talk.add("Read the next parts.", results, "I have read both parts.")
    return talk, made


def main() -> None:
    """Print the tables."""
    console, hits, shown, lengths, seconds = Console(width=120), [], [], [], []
    with make_world() as world:
        talk, made = planted()
        put(world.stores, talk)
        context7 = Context7(httpx.AsyncClient(), RetrievalSettings())
        deps = Dependencies(context7, logging.getLogger("bench"), embedder=InProcess())
        needs = search_needs(world.stores, deps)
        found("Warm up.", DEFAULT_HITS, running(talk, "Warm up."), needs, ConversationSearch(**PATIENT))
        meter = Meter(world.stores.chats.client)
        events: Any = world.stores.chats.client.meta.events
        events.register("provide-client-params.dynamodb", meter.sent)
        events.register("after-call.dynamodb", meter.answered)
        for fact in made:
            started = time.process_time()
            result = found(
                fact.question, DEFAULT_HITS, running(talk, fact.question), needs, ConversationSearch()
            )
            seconds.append(time.process_time() - started)
            lines = result.content.splitlines()[1:]
            hits.append(any(line.startswith(f"{fact.record_id} ") for line in lines))
            shown.append(any(fact.sentence in line for line in lines))
            lengths.append(len(result.content))
    table = Table("facts", "of", f"record in the first {DEFAULT_HITS}", "shown in the excerpt")
    groups = {
        "all": [True] * len(made),
        "first 1,000 characters": [fact.depth * fact.size < 1_000 for fact in made],
        "first third": [fact.depth < 1 / 3 for fact in made],
        "middle": [1 / 3 <= fact.depth < 2 / 3 for fact in made],
        "last third": [fact.depth >= 2 / 3 for fact in made],
        "5 to 20 KB": [fact.size < 20_000 for fact in made],
        "20 to 100 KB": [fact.size >= 20_000 for fact in made],
    }
    for name, among in groups.items():
        own = [(hit, seen) for hit, seen, inside in zip(hits, shown, among, strict=True) if inside]
        shares = (f"{sum(values) / len(own):.3f}" for values in zip(*own, strict=True)) if own else ()
        table.add_row(name, str(len(own)), *shares)
    console.print(table)
    console.print(
        f"a result: {max(lengths)} characters at most; a search: {meter.requests / len(made):.1f} requests, "
        f"{meter.reads / len(made):.0f} read units, {sum(seconds) / len(made):.2f} s of CPU with the embedding"
    )


if __name__ == "__main__":
    main()
