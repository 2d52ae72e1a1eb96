"""Quality of retrieval in course materials: ``uv run --group test python -m bench.course_retrieval`` (see
docs/retrieval.md).

Reads, cuts, indexes and ranks courses as the product does, by keywords, by meaning and by both, with and without the
prefix that a chunk's text gets before it is embedded. The five hits that the tool returns count; of those, apart, the
ones that recorded answers have used. Vectors come from the local model through the product's Voyage client and a
Voyage-shaped loopback endpoint.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.minilm import NAME
from dualtrack.memory.used_sources import used_sources
from dualtrack.tools.courses.index import build
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.settings import CourseSettings
from dualtrack.tools.courses.values import LessonChunk, embedded_text, location_of
from rich.console import Console
from rich.table import Table

from bench.courses.corpora import Corpus, documentation, samples
from bench.retrieval.metrics import discounted_gain
from bench.retrieval.remembering import RememberingModel, embedded
from bench.retrieval.report import Scores, differences, means, pooled
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dualtrack.tools.courses.values import Hit

    from bench.courses.corpora import Question

HITS: Final = 5
ANSWERS: Final = Path(__file__).with_name("courses") / "answers.json"
"""What a model has answered (Claude, 2026-11-28) that read the five passages and the profile's prompt, without knowing
any labels: by question."""
Text = Callable[[LessonChunk], str]


def shown(chunk: LessonChunk) -> str:
    """The text alone."""
    return chunk.text


PREFIXES: Final[Mapping[str, tuple[Text, Text]]] = {
    "no prefix": (shown, shown),
    "prefix for meaning": (shown, embedded_text),
    "prefix for both": (embedded_text, embedded_text),
}
"""The text of a chunk for keywords, and the text for embedding. The second pair is the product's."""

RANKINGS: Final[Mapping[str, CourseSettings]] = {
    "keywords": CourseSettings(ranking="keywords", limit=HITS),
    "meaning": CourseSettings(ranking="meaning", limit=HITS),
    "RRF k=60, 1:1": CourseSettings(ranking="hybrid", limit=HITS, rrf_k=60, meaning_weight=1),
    "RRF k=10, 1:2": CourseSettings(ranking="hybrid", limit=HITS, rrf_k=10, meaning_weight=2),
}
RANKERS: Final = tuple(f"{ranking}, {prefix}" for prefix in PREFIXES for ranking in RANKINGS)
METRICS: Final = ("nDCG@5", "recall@5", "MRR")
PAIRS: Final = (
    *(
        ("RRF k=10, 1:2, prefix for meaning", f"{ranking}, prefix for meaning")
        for ranking in list(RANKINGS)[:3]
    ),
    ("meaning, prefix for meaning", "meaning, no prefix"),
    ("RRF k=10, 1:2, prefix for meaning", "RRF k=10, 1:2, no prefix"),
    ("RRF k=10, 1:2, prefix for both", "RRF k=10, 1:2, prefix for meaning"),
)


def figures(order: Sequence[int], labels: Sequence[frozenset[str]], question: Question) -> dict[str, float]:
    """The metrics of the first hits. A passage counts once: a second chunk with it uses up a rank and gains nothing."""
    met: set[str] = set()
    grades: list[int] = []
    for index in order[:HITS]:
        fresh = labels[index] - met
        grades.append(max((question.relevant[label] for label in fresh), default=0))
        met |= fresh
    return {
        "nDCG@5": discounted_gain(grades) / discounted_gain(_best(labels, question)),
        "recall@5": len(met) / len(question.relevant),
        "MRR": next((1 / rank for rank, grade in enumerate(grades, 1) if grade), 0.0),
    }


def sources_of(
    question: str, answer: str | None, hits: Sequence[Hit], held: Mapping[str, frozenset[str]]
) -> tuple[int, int]:
    """How many of an answer's sources are lessons that answer the question, and how many are not; without an answer,
    of all that was found. ``held``: each lesson's relevant labels by its location."""
    passages: dict[str, list[str]] = {}
    for hit in hits:
        passages.setdefault(hit.location, []).append(hit.chunk.text)
    lessons = list(passages)
    used: Collection[int] = range(len(lessons))
    if answer is not None:
        used = used_sources(question, answer, lessons, list(passages.values()))
    right = sum(bool(held[lessons[at]]) for at in used)
    return right, len(used) - right


def _best(labels: Sequence[frozenset[str]], question: Question) -> list[int]:
    """The grades of the best possible five hits; two labels in one chunk are one hit."""
    grades: list[int] = []
    uncovered = dict(question.relevant)
    while uncovered and len(grades) < HITS:
        label = max(uncovered, key=lambda candidate: uncovered[candidate])
        grades.append(uncovered[label])
        holders = [group & uncovered.keys() for group in labels if label in group]
        for covered in min(holders, key=len):
            del uncovered[covered]
    return grades


def evaluate(corpus: Corpus, voyage: FakeVoyage) -> Scores:
    """Every ranker's figures on one corpus."""
    scores: Scores = {(ranker, metric): [] for ranker in RANKERS for metric in METRICS}
    chunks = corpus.chunks
    rows = {(chunk.course_title, chunk.chunk_index): row for row, chunk in enumerate(chunks)}
    labels = [[corpus.labels(chunk, entry) for chunk in chunks] for entry in corpus.questions]
    titles = [course.title for course in corpus.courses]
    for prefix, (read, embed) in PREFIXES.items():
        asked = [*titles, *(entry.text for entry in corpus.questions)]
        vectors, others = asyncio.run(embedded([embed(chunk) for chunk in chunks], asked, voyage))
        read_chunks = [replace(chunk, text=read(chunk)) for chunk in chunks]
        index = build(corpus.courses, read_chunks, "bench", vectors, others[: len(titles)])
        for question, held, query in zip(corpus.questions, labels, others[len(titles) :], strict=True):
            for ranking, settings in RANKINGS.items():
                hits = [hit.chunk for hit in search(index, question.text, query, settings=settings)]
                order = [rows[chunk.course_title, chunk.chunk_index] for chunk in hits]
                for metric, value in figures(order, held, question).items():
                    scores[f"{ranking}, {prefix}", metric].append(value)
    return scores


def cited(corpus: Corpus, voyage: FakeVoyage) -> dict[str, list[tuple[int, int]]]:
    """The right and the wrong sources of each question with the product's settings: of all that is found, and of the
    recorded answers."""
    asked = [entry.text for entry in corpus.questions]
    vectors, queries = asyncio.run(embedded([embedded_text(chunk) for chunk in corpus.chunks], asked, voyage))
    index = build(corpus.courses, corpus.chunks, NAME, vectors, queries[:1] * len(corpus.courses))
    answers = json.loads(ANSWERS.read_bytes())
    found: dict[str, list[tuple[int, int]]] = {"all that is found": [], "what the answer used": []}
    for entry, query in zip(corpus.questions, queries, strict=True):
        held: dict[str, frozenset[str]] = {}
        for chunk in corpus.chunks:
            place = location_of(chunk.course_title, chunk.lesson_number)
            held[place] = held.get(place, frozenset()) | corpus.labels(chunk, entry)
        hits = search(index, entry.text, query)
        for counted, answer in zip(found.values(), (None, answers[entry.text]), strict=True):
            counted.append(sources_of(entry.text, answer, hits, held))
    return found


def table_of_sources(corpora: Sequence[Corpus], voyage: FakeVoyage, title: str) -> Table:
    """The means over the questions of all corpora."""
    measured = [cited(corpus, voyage) for corpus in corpora]
    table = Table(
        "sources", "right", "wrong", "wrong for a right one", "questions with a right one", title=title
    )
    for name in measured[0]:
        pairs = [pair for found in measured for pair in found[name]]
        right, wrong = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
        met = sum(bool(right_one) for right_one, _ in pairs) / len(pairs)
        table.add_row(name, f"{right:.2f}", f"{wrong:.2f}", f"{wrong / right:.2f}", f"{met:.3f}")
    return table


def main() -> None:
    """Print the tables."""
    console = Console(width=120)
    corpora = (samples(), *documentation())
    with serve_voyage(FakeVoyage(embed=RememberingModel().embed)) as voyage:
        measured = {corpus.name: evaluate(corpus, voyage) for corpus in corpora}
        console.print(table_of_sources(corpora[:1], voyage, "Sources, sample courses"))
        console.print(table_of_sources(corpora[1:], voyage, "Sources, documentation"))
    for corpus in corpora:
        console.print(f"{corpus.name}: {len(corpus.chunks)} chunks, {len(corpus.questions)} questions")
    own, others = measured[corpora[0].name], pooled([measured[corpus.name] for corpus in corpora[1:]])
    every = pooled([own, others])
    for title, scores in (("Sample courses", own), ("Documentation", others), ("All questions", every)):
        console.print(means(scores, RANKERS, METRICS, title))
        console.print(differences(scores, PAIRS, METRICS, title))
    table = Table("nDCG@5", *measured)
    for ranker in RANKERS:
        mean = [scores[ranker, "nDCG@5"] for scores in measured.values()]
        table.add_row(ranker, *(f"{sum(values) / len(values):.3f}" for values in mean))
    console.print(table)


if __name__ == "__main__":
    main()
