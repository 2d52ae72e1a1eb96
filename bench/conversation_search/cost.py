"""What a search costs, by the length of the conversation: ``uv run --group test python -m
bench.conversation_search.cost``.

Queries with two results of 5 to 40 KB each, indexed as the product does when they end. Requests to DynamoDB with their
read and write units (`bench.chat_cost` weighs them), to S3, texts embedded, seconds over stores in this process
without the models' computing time, and dollars: for the index (a query's share), the first search and a later one.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from dualtrack.chat.regroup import regroup
from dualtrack.knowledge.vectors import pack
from dualtrack.knowledge.voyage import VoyageEmbedder
from dualtrack.memory.ancestry import Ancestry
from dualtrack.tools.conversation.search import DEFAULT_HITS, found
from dualtrack.tools.conversation.settings import DEFAULT
from dualtrack_stack.prices import prices
from rich.console import Console
from rich.table import Table

from bench.chat_cost import Meter
from bench.conversation_search.__main__ import running
from bench.conversation_search.corpus import Talk, index_query, put
from tests.drivers.world import make_world, search_needs
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.drivers.world import World

LENGTHS: Final = (15, 100, 1_000, 1_250)
"""Queries; four records each."""

TOKEN: Final = 0.18e-6
"""Dollars for a token of voyage-3-large."""

PUT: Final = 5e-6
GET: Final = 0.4e-6
"""Dollars for a request to S3."""

LOCAL_TEXT: Final = 0.045 * 1.769 / 1.024 * 0.0000133334
"""Dollars for a text of the local model: 45 ms of a function of 1,769 MB (`bench.chat_cost`)."""

QUESTION: Final = "Which harbour had the swapped departure times?"
WORDS: Final = tuple(
    f"{a}{b}{c}"
    for a in ("ka", "lo", "mi", "ne", "su", "te")
    for b in "abdeginrstu"
    for c in ("n", "ra", "sk", "lit")
)


def talk_of(queries: int) -> Talk:
    """Queries with two results of 5 to 40 KB each, of random words."""
    draw = random.Random(7)

    def text(size: int) -> str:
        return " ".join(draw.choices(WORDS, k=size // 5))

    talk = Talk(f"cv_{0:026d}")
    for _ in range(queries):
        results = [
            ("retrieve_documentation", {"query": text(60)}, text(draw.randint(5_000, 40_000)))
            for _ in range(2)
        ]
        talk.add(text(120), results, text(1_500))
    return talk


def embed(texts: Sequence[str], _: str | None) -> list[list[float]]:
    """1,024 numbers a text, as voyage-3-large gives."""
    seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts)
    return [np.random.default_rng(seed).standard_normal(1_024).tolist() for seed in seeds]


class LocalVectors:
    """384 numbers a text, as the local model gives, without its computing time, which is the function's."""

    model = "all-MiniLM-L6-v2-int8"

    def __init__(self) -> None:
        self.texts = 0

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        """One vector per text."""
        self.texts += len(texts)
        return tuple(pack(vector[:384]) for vector in embed(texts, None))

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class Objects:
    """S3 requests between two marks."""

    puts: int = 0
    gets: int = 0

    def sent(self, model: Any, **_: Any) -> None:
        """Count a request."""
        self.puts += model.name == "PutObject"
        self.gets += model.name == "GetObject"


class Bill:
    """Counts what is done, and adds rows to the table."""

    def __init__(self, world: World, table: Table, local: LocalVectors, voyage: FakeVoyage) -> None:
        self.meter, self.objects = Meter(world.stores.chats.client), Objects()
        self.table, self.local, self.voyage = table, local, voyage
        events: Any = world.stores.chats.client.meta.events
        events.register("provide-client-params.dynamodb", self.meter.sent)
        events.register("after-call.dynamodb", self.meter.answered)
        s3_events: Any = world.stores.bodies.s3.meta.events
        s3_events.register("provide-client-params.s3", self.objects.sent)

    def row(self, length: int, name: str, work: Callable[[], object], share: int = 1) -> None:
        """Do the work and print a row, or its ``share``-th part."""
        meter, objects = self.meter, self.objects
        meter.reads = meter.writes = meter.requests = objects.puts = objects.gets = self.local.texts = 0
        before, started = len(self.voyage.requests), time.perf_counter()
        work()
        spent = time.perf_counter() - started
        texts = [text for body in self.voyage.requests[before:] for text in body["input"]]
        dollars = (
            meter.reads * prices()["dynamodb_read"]
            + meter.writes * prices()["dynamodb_write"]
            + objects.puts * PUT
            + objects.gets * GET
            + sum(map(len, texts)) / 4 * TOKEN
            + self.local.texts * LOCAL_TEXT
        )
        embedded = len(texts) + self.local.texts
        counts = (meter.requests, meter.reads, meter.writes, objects.puts, objects.gets, embedded)
        cells = [f"{count / share:,.3g}" if share > 1 else f"{count:,.0f}" for count in counts]
        self.table.add_row(f"{length:,}", name, *cells, f"{spent / share:.2g}", f"{dollars / share:.6f}")
        print(length, name, *cells, round(spent / share, 3), dollars / share, flush=True)


def index(world: World, talk: Talk, local: LocalVectors) -> None:
    """What the steps that end the queries do for the search."""

    def embedder() -> Any:
        return local

    for number, records in enumerate(talk.queries, start=1):
        index_query(world.stores, talk, number, records)
        ended: Any = SimpleNamespace(
            user="ann",
            conversation_id=talk.conversation_id,
            query=number,
            profile="assistant",
            ancestry=Ancestry(),
        )
        regroup(world.stores, ended, embedder)


def main() -> None:
    """Print the table."""
    columns = ("queries", "", "requests", "reads", "writes", "puts", "gets", "embedded", "s", "dollars")
    table = Table(*columns)
    for length in LENGTHS:
        with make_world() as world, serve_voyage(FakeVoyage(embed=embed)) as voyage:
            embedder = VoyageEmbedder(voyage.api_key, voyage.url, "voyage-3-large")
            local, talk = LocalVectors(), talk_of(length)
            put(world.stores, talk, indexed=False)
            bill, call = Bill(world, table, local, voyage), running(talk, QUESTION)
            bill.row(length, "the index, a query", lambda: index(world, talk, local), length)  # noqa: B023 - at once
            for name, needs in (
                ("words alone", search_needs(world.stores)),
                ("local model", search_needs(world.stores, local=local)),
                ("voyage-3-large", search_needs(world.stores, embedder)),
            ):
                for which in ("first", "later"):
                    bill.row(
                        length,
                        f"{which}, {name}",
                        lambda: found(QUESTION, DEFAULT_HITS, call, needs, DEFAULT),  # noqa: B023 - at once
                    )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
