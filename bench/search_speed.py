"""CPU time and round trips of a documentation search: ``uv run --group test python -m bench.search_speed``.

First the CPU time of every stage on a 50,000-token document (real sections of Fastify's
documentation, 1,024-dimensional vectors), then the sequential round trips, counted by giving every
loopback server the same delay and dividing the time of a whole search by it. See docs/retrieval.md.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.vectors import pack, vector_scores
from dualtrack.tools.documentation.chunking import SEPARATOR, chunks_of_json, chunks_of_text, distinct
from dualtrack.tools.documentation.markdown import documentation_result
from dualtrack.tools.documentation.ranking import fuse
from dualtrack.tools.documentation.settings import RetrievalSettings
from dualtrack.tools.documentation.values import DocSection, LibraryMatch
from rich.console import Console
from rich.table import Table

from bench.retrieval.corpus import PACKAGES, load
from tests.drivers.documentation_world import documentation_world

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = RetrievalSettings()
TOKENS, CHARACTERS_PER_TOKEN, DIMENSIONS, RUNS = 50_000, 4, 1_024, 30
QUESTION = "How do I reject requests whose JSON body does not have the right fields?"
DELAY = 0.4
SOURCE_ROUND_TRIPS = (
    "7 (read the request, search, choose, fetch, embed the sections, embed the question, rerank)"
)


def document() -> tuple[DocSection, ...]:
    """Sections worth 50,000 tokens at four characters each."""
    chosen: list[DocSection] = []
    size = 0
    for chunk in load(next(package for package in PACKAGES if package.name == "fastify")).chunks:
        if size < TOKENS * CHARACTERS_PER_TOKEN:
            chosen.append(DocSection(chunk.title, chunk.text, chunk.url))
            size += len(chunk.searchable)
    return tuple(chosen)


def stages(chunks: tuple[DocSection, ...]) -> dict[str, Callable[[], Any]]:
    """Every stage that is not network, ready to run on its own."""
    generator = random.Random(1)
    vectors = [pack([generator.gauss(0, 1) for _ in range(DIMENSIONS)]) for _ in range(len(chunks) + 1)]
    texts = [chunk.searchable for chunk in chunks]
    body = json.dumps(
        {"infoSnippets": [{"pageId": c.url, "breadcrumb": c.title, "content": c.text} for c in chunks]}
    )
    plain = f"\n\n{SEPARATOR}\n\n".join(f"### {c.title}\n\nSource: {c.url}\n\n{c.text}" for c in chunks)
    keywords = keyword_scores(QUESTION, texts, k1=SETTINGS.k1, b=SETTINGS.b)
    meaning = vector_scores(vectors[0], vectors[1:], SETTINGS.distance)
    best = [chunks[index] for index in fuse(keywords, meaning, SETTINGS)[: SETTINGS.top_final]]
    library = LibraryMatch("/fastify/fastify", "Fastify")
    return {
        "chunking (JSON)": lambda: distinct([chunks_of_json(json.loads(body), SETTINGS.bounds)]),
        "chunking (text, instead)": lambda: distinct([chunks_of_text(plain, SETTINGS.bounds)]),
        "BM25": lambda: keyword_scores(QUESTION, texts, k1=SETTINGS.k1, b=SETTINGS.b),
        "vector ranking": lambda: vector_scores(vectors[0], vectors[1:], SETTINGS.distance),
        "fusion": lambda: fuse(keywords, meaning, SETTINGS),
        "formatting": lambda: documentation_result(library, best, ()),
    }


def cpu_milliseconds(work: Callable[[], Any]) -> float:
    """Median CPU time of one run."""
    times = []
    for _ in range(RUNS):
        begun = time.process_time()
        work()
        times.append(1000 * (time.process_time() - begun))
    return statistics.median(times)


def round_trips() -> tuple[int, int]:
    """Sequential round trips of a cold and of a repeated search."""
    with documentation_world() as world:
        world.ask("How do I warm up a connection with Twitter ads?")
        for server in (world.context7, world.voyage, world.claude):
            server.delay = DELAY
        counts = []
        for _ in range(2):
            begun = time.perf_counter()
            world.ask()
            counts.append(int((time.perf_counter() - begun) / DELAY))
    return counts[0], counts[1]


def main() -> None:
    """Print both tables."""
    console = Console(width=110)
    chunks = document()
    measured = {name: cpu_milliseconds(work) for name, work in stages(chunks).items()}
    counted = {name: value for name, value in measured.items() if "instead" not in name}
    total = sum(counted.values())
    size = sum(len(chunk.searchable) for chunk in chunks) // CHARACTERS_PER_TOKEN
    table = Table("stage", "CPU ms (median)", "share", title=f"{len(chunks)} sections, about {size:,} tokens")
    for name, value in measured.items():
        table.add_row(name, f"{value:.1f}", f"{value / total:.0%}" if name in counted else "")
    table.add_row("total", f"{total:.1f}", "100%")
    console.print(table)
    cold, warm = round_trips()
    console.print(
        f"sequential round trips: cold {cold}, repeated question {warm}, the pipeline it replaced {SOURCE_ROUND_TRIPS}"
    )


if __name__ == "__main__":
    main()
