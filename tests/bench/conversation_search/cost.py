"""What a search costs in a conversation of 1,000 queries: ``uv run --group test python -m
tests.bench.conversation_search.cost``.

Requests to DynamoDB with their read and write units (`tests.bench.chat_cost` weighs them), to S3, texts embedded,
seconds over stores in this process, and dollars. The first of two searches writes the index that the second reads.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
import numpy as np
from dualtrack.tools.conversation.search import DEFAULT_HITS, found
from dualtrack.tools.conversation.settings import ConversationSearch
from dualtrack.tools.documentation.context7 import Context7
from dualtrack.tools.documentation.dependencies import Dependencies
from dualtrack.tools.documentation.embeddings import VoyageEmbedder
from dualtrack.tools.documentation.settings import RetrievalSettings
from dualtrack.tools.documentation.vectors import pack
from dualtrack_stack.prices import prices
from rich.console import Console
from rich.table import Table

from tests.bench.chat_cost import Meter
from tests.bench.conversation_search.__main__ import running
from tests.bench.conversation_search.corpus import Talk, put
from tests.drivers.world import make_world, search_needs
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERIES: Final = 1_000
TOKEN: Final = 0.18e-6
"""Dollars for a token of voyage-3-large."""

PUT: Final = 5e-6
GET: Final = 0.4e-6
"""Dollars for a request to S3."""

LOCAL_TEXT: Final = 0.045 * 1.769 / 1.024 * 0.0000133334
"""Dollars for a text of the local model: 45 ms of a function of 1,769 MB (`tests.bench.chat_cost`)."""

SETTINGS: Final = ConversationSearch(read_seconds=600, embed_seconds=600)
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


def main() -> None:
    """Print the table."""
    columns = ("requests", "reads", "writes", "puts", "gets", "embedded", "s in process", "dollars")
    table = Table("search", *columns, title=f"{QUERIES:,} queries")
    with make_world() as world, serve_voyage(FakeVoyage(embed=embed)) as voyage:
        settings = RetrievalSettings()
        embedder = VoyageEmbedder(voyage.api_key, voyage.url, "voyage-3-large", settings)
        context7 = Context7(httpx.AsyncClient(), settings)
        keyed = Dependencies(context7, logging.getLogger("bench"), embedder=embedder)
        keyless = Dependencies(context7, logging.getLogger("bench"))
        talk = talk_of(QUERIES)
        put(world.stores, talk)
        local: Any = LocalVectors()
        meter, objects = Meter(world.stores.chats.client), Objects()
        events: Any = world.stores.chats.client.meta.events
        events.register("provide-client-params.dynamodb", meter.sent)
        events.register("after-call.dynamodb", meter.answered)
        s3_events: Any = world.stores.bodies.s3.meta.events
        s3_events.register("provide-client-params.s3", objects.sent)
        for name, needs, text_price in (
            ("first, keywords alone", search_needs(world.stores, keyless), 0.0),
            ("second, keywords alone", search_needs(world.stores, keyless), 0.0),
            ("first with the local model", search_needs(world.stores, keyless, local), LOCAL_TEXT),
            ("second with the local model", search_needs(world.stores, keyless, local), LOCAL_TEXT),
            ("first with voyage-3-large", search_needs(world.stores, keyed), 0.0),
            ("second with voyage-3-large", search_needs(world.stores, keyed), 0.0),
        ):
            meter.reads = meter.writes = meter.requests = objects.puts = objects.gets = 0
            before = len(voyage.requests)
            started = time.perf_counter()
            call = running(talk, QUESTION)
            found(QUESTION, DEFAULT_HITS, call, needs, SETTINGS)
            spent = time.perf_counter() - started
            texts = [text for body in voyage.requests[before:] for text in body["input"]]
            embedded, local.texts = len(texts) + local.texts, 0
            dollars = (
                meter.reads * prices()["dynamodb_read"]
                + meter.writes * prices()["dynamodb_write"]
                + objects.puts * PUT
                + objects.gets * GET
                + sum(map(len, texts)) / 4 * TOKEN
                + embedded * text_price
            )
            cells = (meter.requests, round(meter.reads), round(meter.writes), objects.puts, objects.gets)
            table.add_row(name, *(f"{n:,}" for n in (*cells, embedded)), f"{spent:.1f}", f"{dollars:.6f}")
            print(name, *cells, embedded, round(spent, 1), dollars, flush=True)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
