"""Tables of figures per question: means and paired differences, each with its bootstrap interval."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rich.table import Table

from bench.retrieval.metrics import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

Scores = dict[tuple[str, str], list[float]]
"""By ranker and metric: one figure a question, in the same order everywhere."""


def means(scores: Scores, rankers: Sequence[str], metrics: Sequence[str], title: str) -> Table:
    """Each ranker's means over the questions."""
    table = Table("ranker", *metrics, title=f"{title}: mean (95 % bootstrap interval over questions)")
    for ranker in rankers:
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*interval(scores[ranker, metric])) for metric in metrics]
        table.add_row(ranker, *cells)
    return table


def differences(
    scores: Scores, pairs: Sequence[tuple[str, str]], metrics: Sequence[str], title: str
) -> Table:
    """How far the first of each pair is ahead of the second on the same questions."""
    table = Table("difference", *metrics, title=f"{title}: paired differences")
    for left, right in pairs:
        cells = []
        for metric in metrics:
            ahead = [a - b for a, b in zip(scores[left, metric], scores[right, metric], strict=True)]
            cells.append("{:+.3f} ({:+.3f} to {:+.3f})".format(*interval(ahead)))
        table.add_row(f"{left} - {right}", *cells)
    return table


def pooled(libraries: Sequence[Scores]) -> Scores:
    """All questions of several libraries."""
    return {key: list(chain.from_iterable(figures[key] for figures in libraries)) for key in libraries[0]}
