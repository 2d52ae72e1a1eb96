"""Merging two rankings of the same chunks. Pure.

A ranking is a list of scores, one per chunk in chunk order; greater is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def ranked(scores: Sequence[float]) -> tuple[int, ...]:
    """Indexes in descending order of score; equal scores keep page order."""
    return tuple(sorted(range(len(scores)), key=lambda index: -scores[index]))


def reciprocal_rank_scores(score_lists: Sequence[Sequence[float]], k: int) -> tuple[float, ...]:
    """Sum of 1 / (k + rank), rank from 1 (Cormack, Clarke and Buettcher 2009).

    A chunk with score zero is not in that ranking: so a ranking in which nothing matched has no effect, instead of
    favouring page order.
    """
    fused = [0.0] * _size(score_lists)
    for scores in score_lists:
        for rank, index in enumerate(ranked(scores), start=1):
            if scores[index] > 0:
                fused[index] += 1 / (k + rank)
    return tuple(fused)


def min_max_scores(score_lists: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Sum of the scores, each ranking's scaled to 0..1. If all its scores are equal, they count 0."""
    fused = [0.0] * _size(score_lists)
    for scores in score_lists:
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        if high > low:
            for index, score in enumerate(scores):
                fused[index] += (score - low) / (high - low)
    return tuple(fused)


def _size(score_lists: Sequence[Sequence[float]]) -> int:
    return len(score_lists[0]) if score_lists else 0
