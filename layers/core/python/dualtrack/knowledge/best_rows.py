"""The best rows of a corpus by several rankings of the same rows, each an array of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.knowledge.fusion import ranked, reciprocal_rank_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]


def best_rows(rankings: Sequence[Array], depth: int, weight: int, rrf_k: int) -> list[int]:
    """The positions among the first ``depth`` of any ranking, best first; ties in the order of the rows. Of two
    rankings, by words and by meaning, the second counts ``weight`` times."""
    positions = sorted({int(at) for scores in rankings for at in _first(scores, depth)})
    if not positions:
        return []
    if len(rankings) == 1:
        return [positions[at] for at in ranked(rankings[0][positions].tolist())]
    words, meaning = (scores[positions].tolist() for scores in rankings)
    fused = reciprocal_rank_scores([words, *[meaning] * weight], rrf_k)
    return [positions[at] for at in ranked(fused)]


def _first(scores: Array, depth: int) -> Array:
    """The positions of the best scores above 0; of equal ones the first."""
    best = np.argsort(-scores, kind="stable")[:depth] if len(scores) <= depth else _partitioned(scores, depth)
    return best[scores[best] > 0]


def _partitioned(scores: Array, depth: int) -> Array:
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.concatenate((above, equal[: depth - len(above)]))
