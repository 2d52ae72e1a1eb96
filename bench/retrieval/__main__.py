"""The retrieval evaluation: ``uv run --group test python -m bench.retrieval`` (see docs/retrieval.md).

Ranks every section of a library's documentation for each of 194 questions labelled before any run, with the product's
own keyword ranking, embedding client, vector ranking and fusion. Embeddings come from the local model behind a
Voyage-shaped loopback endpoint. Four of the twelve libraries were held out from the first choice of settings, and four
more from the second one, which is today's.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dualtrack.knowledge import minilm
from dualtrack.knowledge.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.vectors import vector_scores
from dualtrack.knowledge.voyage import VoyageEmbedder
from dualtrack.tools.documentation.settings import RetrievalSettings
from rich.console import Console
from rich.table import Table

from bench.retrieval.corpus import (
    FRESH,
    FRESH_QUESTIONS,
    HELD_OUT,
    HELD_OUT_QUESTIONS,
    PACKAGES,
    QUESTIONS,
    WORK,
    Corpus,
    load,
)
from bench.retrieval.metrics import ndcg, recall, reciprocal_rank
from bench.retrieval.report import Scores, differences, means
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.retrieval.corpus import Package

SETTINGS = RetrievalSettings()
TOKENIZER = Path(__file__).resolve().parents[2] / "functions" / "embed" / "tokenizer.json"
EQUAL, WEIGHTED = "RRF k=60, 1:1", "RRF k=10, 1:2"
RANKERS = ("page order", "BM25", "vectors", EQUAL, WEIGHTED, "min-max sum")
METRICS = ("recall@30", "nDCG@6", "MRR")
PAIRS = (
    (WEIGHTED, EQUAL),
    (WEIGHTED, "vectors"),
    (WEIGHTED, "BM25"),
    (EQUAL, "vectors"),
    (EQUAL, "BM25"),
    ("min-max sum", EQUAL),
)


class RememberingModel:
    """The local model, with its vectors kept on disk between runs."""

    def __init__(self) -> None:
        WORK.mkdir(parents=True, exist_ok=True)
        self._known = sqlite3.connect(WORK / f"{minilm.NAME}.sqlite", timeout=60, check_same_thread=False)
        self._known.execute("CREATE TABLE IF NOT EXISTS vectors (text_hash TEXT PRIMARY KEY, vector BLOB)")
        self._model: minilm.MiniLm | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], _: str | None = None) -> list[list[float]]:
        """One vector a text, in order."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        with self._lock:
            fresh = {
                key: self._made(text) for key, text in zip(keys, texts, strict=True) if not self._kept(key)
            }
            with self._known:
                self._known.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", fresh.items())
            return [np.frombuffer(fresh.get(key) or self._kept(key), dtype="<f4").tolist() for key in keys]

    def _made(self, text: str) -> bytes:
        self._model = self._model or minilm.load(TOKENIZER)
        return self._model.embed(text)

    def _kept(self, key: str) -> bytes:
        row = self._known.execute("SELECT vector FROM vectors WHERE text_hash = ?", (key,)).fetchone()
        return bytes(row[0]) if row else b""


async def embedded(
    texts: Sequence[str], questions: Sequence[str], voyage: FakeVoyage
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Vectors of the texts and of the questions, through the product's client."""
    embedder = VoyageEmbedder(voyage.api_key, voyage.url, "all-MiniLM-L6-v2")
    try:
        return (
            await embedder.embed(texts, "document", 7_200),
            await embedder.embed(questions, "query", 7_200),
        )
    finally:
        await embedder.close()


def orders(
    corpus: Corpus, question: str, query: bytes, vectors: Sequence[bytes]
) -> dict[str, tuple[int, ...]]:
    """Every ranker's order of the sections."""
    texts = [chunk.searchable for chunk in corpus.chunks]
    keywords = keyword_scores(question, texts, k1=SETTINGS.k1, b=SETTINGS.b)
    meaning = vector_scores(query, vectors, SETTINGS.distance)
    return {
        "page order": tuple(range(len(texts))),
        "BM25": ranked(keywords),
        "vectors": ranked(meaning),
        EQUAL: ranked(reciprocal_rank_scores([keywords, meaning], 60)),
        WEIGHTED: ranked(reciprocal_rank_scores([keywords, meaning, meaning], 10)),
        "min-max sum": ranked(min_max_scores([keywords, meaning])),
    }


def measured(names: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """The three figures of one order."""
    return {
        "recall@30": recall(names, relevant, 30),
        "nDCG@6": ndcg(names, relevant, 6),
        "MRR": reciprocal_rank(names, relevant),
    }


def of_library(package: Package, questions: Path, voyage: FakeVoyage) -> tuple[Scores, str]:
    """Every ranker's figures on one library's questions, and print a line about its corpus."""
    corpus = load(package)
    asked = [
        question for question in json.loads(questions.read_text()) if question["library"] == package.name
    ]
    texts = [chunk.searchable[: SETTINGS.bounds.embedded] for chunk in corpus.chunks]
    vectors, queries = asyncio.run(embedded(texts, [question["question"] for question in asked], voyage))
    own: Scores = {(ranker, metric): [] for ranker in RANKERS for metric in METRICS}
    for question, query in zip(asked, queries, strict=True):
        for ranker, order in orders(corpus, question["question"], query, vectors).items():
            figures = measured([corpus.names[index] for index in order], question["relevant"])
            for metric, value in figures.items():
                own[ranker, metric].append(value)
    tokens = sum(len(chunk.searchable) for chunk in corpus.chunks) // 4
    line = f"{package.name} {package.version}: {len(texts)} sections, about {tokens:,} tokens, {len(asked)} questions"
    return own, line


def pooled(libraries: Sequence[Scores]) -> Scores:
    """All questions of several libraries."""
    return {key: list(chain.from_iterable(figures[key] for figures in libraries)) for key in libraries[0]}


def main() -> None:
    """Print the tables."""
    console = Console(width=120)
    with serve_voyage(FakeVoyage(embed=RememberingModel().embed)) as voyage:
        first = {package.name: of_library(package, QUESTIONS, voyage) for package in PACKAGES}
        held_out = {package.name: of_library(package, HELD_OUT_QUESTIONS, voyage) for package in HELD_OUT}
        fresh = {package.name: of_library(package, FRESH_QUESTIONS, voyage) for package in FRESH}
    both = first | held_out
    every = both | fresh
    console.print("\n".join(line for _, line in every.values()))
    for title, libraries in (
        ("First questions", first),
        ("Held-out questions", held_out),
        ("First and held-out questions", both),
        ("Fresh questions", fresh),
    ):
        scores = pooled([own for own, _ in libraries.values()])
        console.print(means(scores, RANKERS, METRICS, title))
        console.print(differences(scores, PAIRS, METRICS, title))
    table = Table("library", *RANKERS, title="nDCG@6 by library")
    for name, (own, _) in every.items():
        figures = [own[ranker, "nDCG@6"] for ranker in RANKERS]
        table.add_row(name, *(f"{sum(values) / len(values):.3f}" for values in figures))
    console.print(table)


if __name__ == "__main__":
    main()
