"""Searches in six languages: ``uv run --group test python -m bench.retrieval.languages`` (see docs/retrieval.md).

The same twelve topics in each language, two sentences a section, and a question about each, all written for this bench
(`languages.json`). A language's sections are one corpus; the product's own keyword ranking, local model and fusion rank
them. No setting was chosen by these questions. To compare with an earlier version, give its library by
``PYTHONPATH=…/layers/core/python``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dualtrack.knowledge.fusion import ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.minilm import NAME
from dualtrack.knowledge.vectors import pack, vector_scores
from dualtrack.tools.documentation.settings import RetrievalSettings
from rich.console import Console
from rich.table import Table

from bench.retrieval.metrics import interval, ndcg, recall
from bench.retrieval.remembering import RememberingModel

try:
    from dualtrack.knowledge.scripts import knows
except ImportError:  # an earlier version

    def knows(model: str, question: str) -> bool:
        """Before there was such a rule."""
        return bool(model or question)


SETTINGS: Final = RetrievalSettings()
HITS: Final = 5
RANKERS: Final = ("keywords", "meaning", "hybrid, meaning always twice", "hybrid")


def orders(question: str, texts: list[str], model: RememberingModel) -> dict[str, tuple[int, ...]]:
    """Each ranker's order of the texts that it finds."""
    keywords = keyword_scores(question, texts, k1=SETTINGS.k1, b=SETTINGS.b)
    query, *vectors = map(pack, model.embed([question, *texts]))
    meaning = vector_scores(query, vectors, SETTINGS.distance)
    both = reciprocal_rank_scores([keywords, *[meaning] * SETTINGS.meaning_weight], SETTINGS.rrf_k)
    scores = (keywords, meaning, both, both if knows(NAME, question) else keywords)
    return {
        name: tuple(at for at in ranked(own) if own[at] > 0)
        for name, own in zip(RANKERS, scores, strict=True)
    }


def main() -> None:
    """Print the tables."""
    data: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("languages.json").read_text())
    console, model = Console(width=130), RememberingModel()
    for title, hits in (("nDCG@5 (95 % bootstrap interval)", False), ("hit@1", True)):
        table = Table("language", *RANKERS, title=title)
        for language, sections in data.items():
            texts, values = [section["text"] for section in sections], {name: [] for name in RANKERS}
            for at, section in enumerate(sections):
                for name, order in orders(section["question"], texts, model).items():
                    names, relevant = [str(place) for place in order], {str(at): 1}
                    values[name].append(recall(names, relevant, 1) if hits else ndcg(names, relevant, HITS))
            cells = [interval(values[name]) for name in RANKERS]
            table.add_row(language, *("{:.3f} ({:.3f} to {:.3f})".format(*cell) for cell in cells))
        console.print(table)


if __name__ == "__main__":
    main()
