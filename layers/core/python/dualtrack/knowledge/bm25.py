"""BM25's weight of a word, for the indexes of our own; a small set of texts is ranked by rank-bm25 (`keywords`), with
the same words and scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def weights(counts: NDArray[Any], relative: NDArray[Any], texts: int, k1: float, b: float) -> NDArray[Any]:
    """The weight of a word in each of the texts that have it, out of so many ``texts``.

    ``counts``: how often each has the word; ``relative``: its length, relative to the mean of all.
    """
    rarity = math.log((texts + 1) / len(counts))
    return rarity * counts * (k1 + 1) / (counts + k1 * (1 - b + b * relative))
