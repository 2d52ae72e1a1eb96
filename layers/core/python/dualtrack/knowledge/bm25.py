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
    return weight(rarity(texts, len(counts)), counts, relative, k1, b)


def rarity(texts: int, holders: int) -> float:
    """Of a word that so many of the ``texts`` have."""
    return math.log((texts + 1) / holders)


def weight(rare: float, count: Any, relative: Any, k1: float, b: float) -> Any:
    """That of one text, or of an array of them; ``rare``: the word's `rarity`."""
    return rare * count * (k1 + 1) / (count + k1 * (1 - b + b * relative))
