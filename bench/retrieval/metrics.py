"""recall@k, nDCG@k, reciprocal rank, and bootstrap confidence intervals over questions."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RESAMPLES = 10_000


def recall(order: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Share of the relevant sections (any grade) among the first ``k``."""
    return len(relevant.keys() & set(order[:k])) / len(relevant)


def ndcg(order: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Discounted gain 2^grade - 1 of the first ``k`` over that of the best possible order."""
    best = sorted(relevant.values(), reverse=True)[:k]
    return discounted_gain([relevant.get(name, 0) for name in order[:k]]) / discounted_gain(best)


def reciprocal_rank(order: Sequence[str], relevant: Mapping[str, int]) -> float:
    """1 / rank of the first relevant section (any grade); 0 if there is none."""
    return next((1 / rank for rank, name in enumerate(order, start=1) if name in relevant), 0.0)


def interval(values: Sequence[float], seed: int = 20261121) -> tuple[float, float, float]:
    """Mean and the 95 % percentile bootstrap interval of it."""
    generator = random.Random(seed)
    size = len(values)
    means = sorted(sum(generator.choices(values, k=size)) / size for _ in range(_RESAMPLES))
    return sum(values) / size, means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES)]


def discounted_gain(grades: Sequence[int]) -> float:
    """The gains of results in this order, each divided by the logarithm of its position."""
    return sum((2.0**grade - 1) / math.log2(position + 2) for position, grade in enumerate(grades))
