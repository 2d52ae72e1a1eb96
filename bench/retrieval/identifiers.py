"""An identifier that was typed: ``uv run --group test python -m bench.retrieval.identifiers`` (see docs/retrieval.md).

Of each library of `bench.retrieval`, up to fifteen headings that hold an identifier (drawn with a fixed seed) are asked
for: "What does X do?" has the sections with that heading as its answers. The weight of keywords was chosen on the first
four libraries; the other eight were held out.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.fusion import ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.vectors import vector_scores
from dualtrack.knowledge.words import has_identifier
from rich.console import Console

from bench.retrieval.__main__ import SETTINGS, measured
from bench.retrieval.corpus import FRESH, HELD_OUT, PACKAGES, Package, load
from bench.retrieval.remembering import RememberingModel, embedded
from bench.retrieval.report import Scores, differences, means, pooled
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Sequence

ASKED: Final = 15
METRICS: Final = ("recall@30", "nDCG@6", "MRR")
WEIGHTS: Final = {
    "keywords": (1, 0),
    "meaning": (0, 1),
    "1:2": (1, 2),
    "2:2": (2, 2),
    "3:2": (3, 2),
    "4:2": (4, 2),
}
PAIRS: Final = (("3:2", "1:2"), ("3:2", "keywords"), ("3:2", "2:2"), ("4:2", "3:2"))


def of_library(package: Package, voyage: FakeVoyage) -> Scores:
    """Each pair of weights' figures on one library's headings."""
    corpus = load(package)
    headings = [name.split("#", 1)[1] for name in corpus.names]
    named = sorted({heading for heading in headings if has_identifier(heading)})
    drawn = random.Random(7).sample(named, min(ASKED, len(named)))
    questions = [f"What does {heading} do?" for heading in drawn]
    texts = [chunk.searchable for chunk in corpus.chunks]
    cut = [text[: SETTINGS.bounds.embedded] for text in texts]
    vectors, queries = asyncio.run(embedded(cut, questions, voyage)) if drawn else ((), ())
    own: Scores = {(name, metric): [] for name in WEIGHTS for metric in METRICS}
    for heading, question, query in zip(drawn, questions, queries, strict=True):
        relevant = {name: 1 for name, its in zip(corpus.names, headings, strict=True) if its == heading}
        keywords = keyword_scores(question, texts, k1=SETTINGS.k1, b=SETTINGS.b)
        meaning = vector_scores(query, vectors, SETTINGS.distance)
        for name, (words, meant) in WEIGHTS.items():
            lists = [*[keywords] * words, *[meaning] * meant]
            order = ranked(reciprocal_rank_scores(lists, SETTINGS.rrf_k))
            for metric, value in measured([corpus.names[at] for at in order], relevant).items():
                own[name, metric].append(value)
    return own


def show(console: Console, title: str, packages: Sequence[Package], voyage: FakeVoyage) -> None:
    """The tables of some libraries."""
    scores = pooled([of_library(package, voyage) for package in packages])
    title = f"{title}, {len(scores['1:2', 'MRR'])} questions"
    console.print(means(scores, tuple(WEIGHTS), METRICS, title), differences(scores, PAIRS, METRICS, title))


def main() -> None:
    """Print the tables."""
    console = Console(width=120)
    with serve_voyage(FakeVoyage(embed=RememberingModel().embed)) as voyage:
        show(console, "First libraries", PACKAGES, voyage)
        show(console, "Held-out libraries", (*HELD_OUT, *FRESH), voyage)


if __name__ == "__main__":
    main()
