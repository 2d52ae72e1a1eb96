"""Passages for a query over several collections together: filters, then words ∥ meaning, then fusion.

As in courses, with their parameters; a word's rarity is counted in each collection by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.knowledge.best_rows import best_rows
from dualtrack.knowledge.scripts import knows, least_cosine
from dualtrack.knowledge.vectors import comparable, cosines
from dualtrack.tools.courses.settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dualtrack.plugins.knowledge.library import Opened

    Array = NDArray[Any]

LIMIT: Final = 5


@dataclass(frozen=True, slots=True)
class Place:
    """A passage: the row of an opened collection."""

    opened: Opened
    row: int


@dataclass(frozen=True, slots=True)
class Part:
    """What is searched of a collection: all of it, or the rows of one document."""

    opened: Opened
    document: int | None = None

    @property
    def rows(self) -> Array:
        """In ascending order."""
        index = self.opened.index
        return np.arange(len(index)) if self.document is None else np.array(index.rows(self.document), int)


def search(
    parts: Sequence[Part], query: str, vector: Callable[[str], bytes | None]
) -> tuple[list[Place], bool]:
    """At most `LIMIT` passages, best first, and whether meaning was missing. ``vector``: of the query, by model."""
    rows = [part.rows for part in parts]
    if not sum(map(len, rows)):
        return [], False
    vectors = {
        model: vector(model) for part in parts if (model := part.opened.index.model) and knows(model, query)
    }
    words = np.concatenate(
        [
            part.opened.index.postings.scores(query, DEFAULT.k1, DEFAULT.b)[own]
            for part, own in zip(parts, rows, strict=True)
        ]
    )
    near = [_meaning(part, own, vectors) for part, own in zip(parts, rows, strict=True)]
    meaning = np.concatenate([scores for scores, _ in near])
    is_close = np.concatenate([close for _, close in near])
    has_meaning = bool(meaning.any())
    rankings = [words, meaning] if has_meaning else [words]
    best = best_rows(rankings, DEFAULT.depth, DEFAULT.meaning_weight, DEFAULT.rrf_k)
    ends = np.cumsum([len(own) for own in rows])
    places = []
    for at in best:
        number = int(np.searchsorted(ends, at, side="right"))
        row = int(rows[number][at - (ends[number] - len(rows[number]))])
        place = Place(parts[number].opened, row)
        # as in courses: without meaning every passage with a word of the query counts
        if not has_meaning or is_close[at] or _share(place, query) >= DEFAULT.least_words:
            places.append(place)
    return places[:LIMIT], any(found is None for found in vectors.values())


def _meaning(part: Part, rows: Array, vectors: dict[str, bytes | None]) -> tuple[Array, Array]:
    """1 + cosine of each row, 0 without vectors; and whether it is near enough to count by itself."""
    index = part.opened.index
    vector = vectors.get(index.model)
    if vector is None or index.vectors is None or not comparable(index.vectors, vector):
        return np.zeros(len(rows), np.float32), np.zeros(len(rows), bool)
    whole = len(rows) == len(index)
    found = cosines(index.vectors if whole else index.vectors[rows], vector)
    return found + 1, found >= least_cosine(index.model)


def _share(place: Place, query: str) -> float:
    return float(place.opened.index.postings.shares(query, np.array([place.row]))[0])
