"""The retrieval evaluation: ``uv run --group test python -m bench.retrieval`` (see docs/retrieval.md).

Ranks every section of a library's documentation for each of 194 questions labelled before any run, with the product's
own keyword ranking, embedding client, vector ranking and fusion. Embeddings come from the local model behind a
Voyage-shaped loopback endpoint. Four of the twelve libraries were held out from the first choice of settings, and four
more from the second one, which is today's.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from dualtrack.knowledge.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.vectors import vector_scores
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
    Corpus,
    load,
)
from bench.retrieval.metrics import ndcg, recall, reciprocal_rank
from bench.retrieval.remembering import RememberingModel, embedded
from bench.retrieval.report import Scores, differences, means, pooled
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.retrieval.corpus import Package

SETTINGS = RetrievalSettings()
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
