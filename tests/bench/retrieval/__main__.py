"""The retrieval evaluation: ``uv run python -m tests.bench.retrieval`` (see docs/retrieval.md).

Ranks every section of four libraries' documentation for 68 questions labelled before any run, with
the product's own keyword ranking, embedding client, vector ranking and fusion. Embeddings come from
all-MiniLM-L6-v2 behind a Voyage-shaped loopback endpoint.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from typing import TYPE_CHECKING

from dualtrack.tools.documentation.embeddings import VoyageEmbedder
from dualtrack.tools.documentation.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.tools.documentation.keywords import keyword_scores
from dualtrack.tools.documentation.settings import RetrievalSettings
from dualtrack.tools.documentation.vectors import vector_scores
from rich.console import Console
from rich.table import Table

from tests.bench.retrieval.corpus import PACKAGES, QUESTIONS, WORK, Corpus, load
from tests.bench.retrieval.metrics import interval, ndcg, recall, reciprocal_rank
from tests.bench.retrieval.minilm import MiniLm
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SETTINGS = RetrievalSettings(embedding_batch=32)
RANKERS = ("page order", "BM25", "vectors", "rank fusion", "min-max sum")
METRICS = ("recall@30", "nDCG@6", "MRR")
PAIRS = (
    ("rank fusion", "BM25"),
    ("rank fusion", "vectors"),
    ("min-max sum", "BM25"),
    ("min-max sum", "vectors"),
    ("min-max sum", "rank fusion"),
)
Scores = dict[tuple[str, str], list[float]]


class RememberingModel:
    """MiniLM, with its vectors kept on disk between runs."""

    def __init__(self) -> None:
        self._file = WORK / "vectors.json"
        self._known: dict[str, list[float]] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )
        self._model: MiniLm | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], _: str | None) -> list[list[float]]:
        with self._lock:
            return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        missing = [text for key, text in zip(keys, texts, strict=True) if key not in self._known]
        if missing:
            self._model = self._model or MiniLm()
            for text, vector in zip(missing, self._model.embed(missing), strict=True):
                self._known[hashlib.sha256(text.encode()).hexdigest()] = [round(value, 7) for value in vector]
            self._file.write_text(json.dumps(self._known))
        return [self._known[key] for key in keys]


async def embedded(
    corpus: Corpus, questions: Sequence[str], voyage: FakeVoyage
) -> tuple[tuple[bytes, ...], ...]:
    """Vectors of the sections and of the questions, through the product's client."""
    embedder = VoyageEmbedder(voyage.api_key, voyage.url, "all-MiniLM-L6-v2", SETTINGS)
    texts = [chunk.searchable[: SETTINGS.bounds.embedded] for chunk in corpus.chunks]
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
        "rank fusion": ranked(reciprocal_rank_scores([keywords, meaning], SETTINGS.rrf_k)),
        "min-max sum": ranked(min_max_scores([keywords, meaning])),
    }


def measured(names: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """The three figures of one order."""
    return {
        "recall@30": recall(names, relevant, 30),
        "nDCG@6": ndcg(names, relevant, 6),
        "MRR": reciprocal_rank(names, relevant),
    }


def evaluate() -> tuple[Scores, dict[str, Scores], list[str]]:
    """Scores of all questions, per library too, and a line about each corpus."""
    every: Scores = {(ranker, metric): [] for ranker in RANKERS for metric in METRICS}
    by_library: dict[str, Scores] = {}
    lines: list[str] = []
    labelled = json.loads(QUESTIONS.read_text())
    model = RememberingModel()
    with serve_voyage(FakeVoyage(embed=model.embed)) as voyage:
        for package in PACKAGES:
            corpus = load(package)
            asked = [one for one in labelled if one["library"] == package.name]
            vectors, queries = asyncio.run(embedded(corpus, [one["question"] for one in asked], voyage))
            own: Scores = {key: [] for key in every}
            for one, query in zip(asked, queries, strict=True):
                for ranker, order in orders(corpus, one["question"], query, vectors).items():
                    figures = measured([corpus.names[index] for index in order], one["relevant"])
                    for metric, value in figures.items():
                        own[ranker, metric].append(value)
                        every[ranker, metric].append(value)
            by_library[package.name] = own
            tokens = sum(len(chunk.searchable) for chunk in corpus.chunks) // 4
            lines.append(
                f"{package.name} {package.version}: {len(corpus.chunks)} sections, about {tokens:,} tokens, {len(asked)} questions"
            )
    return every, by_library, lines


def main() -> None:
    """Print the tables."""
    every, by_library, lines = evaluate()
    console = Console(width=110)
    console.print("\n".join(lines))
    table = Table("ranker", *METRICS, title="All questions: mean (95 % bootstrap interval over questions)")
    for ranker in RANKERS:
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*interval(every[ranker, metric])) for metric in METRICS]
        table.add_row(ranker, *cells)
    console.print(table)
    pairs = Table("difference", *METRICS, title="Paired differences: mean (95 % bootstrap interval)")
    for left, right in PAIRS:
        cells = []
        for metric in METRICS:
            differences = [a - b for a, b in zip(every[left, metric], every[right, metric], strict=True)]
            cells.append("{:+.3f} ({:+.3f} to {:+.3f})".format(*interval(differences)))
        pairs.add_row(f"{left} - {right}", *cells)
    console.print(pairs)
    libraries = Table("library", *RANKERS, title="nDCG@6 by library")
    for name, own in by_library.items():
        libraries.add_row(
            name, *(f"{sum(own[ranker, 'nDCG@6']) / len(own[ranker, 'nDCG@6']):.3f}" for ranker in RANKERS)
        )
    console.print(libraries)


if __name__ == "__main__":
    main()
