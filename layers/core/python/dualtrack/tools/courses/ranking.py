"""Chunks for a query, best first: filters, then BM25 ∥ vectors, then fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.knowledge.best_rows import best_rows
from dualtrack.knowledge.scripts import knows, least_cosine
from dualtrack.knowledge.vectors import comparable, cosines
from dualtrack.tools.courses.settings import DEFAULT
from dualtrack.tools.courses.values import Hit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.settings import CourseSettings

    Array = NDArray[Any]


def search(
    index: CourseIndex,
    query: str,
    query_vector: bytes | None = None,
    course_title: str | None = None,
    lesson_number: int | None = None,
    settings: CourseSettings = DEFAULT,
    near: Mapping[int, float] | None = None,
) -> tuple[Hit, ...]:
    """At most ``settings.limit`` chunks, optionally only those of a course or of a lesson's number.

    ``query_vector``: float32 from the index's model; None for keywords alone, as in a script that the model does not
    know. Keywords leave out chunks that have none of the query's words, meaning what is far from it. ``near``: rows
    with their cosines, if an S3 Vectors index has the vectors.
    """
    rows = _filtered(index, course_title, lesson_number)
    is_known = settings.ranking != "keywords" and knows(index.model, query)
    meaning = _by_meaning(index, rows, query_vector, near) if is_known else None
    rankings = _rankings(index, rows, query, meaning, settings)
    ordered = (
        best_rows(rankings, settings.depth, settings.meaning_weight, settings.rrf_k) if len(rows) else []
    )
    best = ordered[: settings.limit]
    if meaning is not None:
        best = _near(index, rows, query, meaning, best, settings.least_words)
    chunks = [index.chunk(int(rows[at])) for at in best]
    return tuple(Hit(chunk, index.link(chunk)) for chunk in chunks)


def _filtered(index: CourseIndex, course_title: str | None, lesson_number: int | None) -> Array:
    """The rows of the course and the lesson, in ascending order."""
    mask = np.ones(len(index), bool)
    if course_title is not None:
        titles = [course.title for course in index.catalogue]
        mask &= index.courses == (titles.index(course_title) if course_title in titles else len(titles))
    if lesson_number is not None:
        mask &= index.lessons == lesson_number
    return np.flatnonzero(mask)


def _rankings(
    index: CourseIndex, rows: Array, query: str, meaning: Array | None, settings: CourseSettings
) -> list[Array]:
    """The rows' scores by each ranking in use, meaning last."""
    if meaning is not None and settings.ranking == "meaning":
        return [meaning]
    words = index.postings.scores(query, settings.k1, settings.b)[rows]
    return [words] if meaning is None else [words, meaning]


def _by_meaning(
    index: CourseIndex, rows: Array, query_vector: bytes | None, near: Mapping[int, float] | None
) -> Array | None:
    """1 + cosine of each row: above 0, so that meaning leaves out no row. 0 for rows that are not in ``near``. None
    without vectors."""
    if near is not None:
        scores = np.zeros(len(index), np.float32)
        scores[list(near)] = np.fromiter(near.values(), np.float32, len(near)) + 1
        return scores[rows]
    if index.vectors is None or query_vector is None or not comparable(index.vectors, query_vector):
        return None
    whole = len(rows) == len(index)
    return cosines(index.vectors if whole else index.vectors[rows], query_vector) + 1


def _near(
    index: CourseIndex, rows: Array, query: str, meaning: Array, best: list[int], least_words: float
) -> list[int]:
    """Those that have to do with the query: by their meaning, or by the words that they share with it."""
    close = meaning[best] >= 1 + least_cosine(index.model)
    shares = index.postings.shares(query, rows[best]) >= least_words
    return [at for at, is_near in zip(best, (close | shares).tolist(), strict=True) if is_near]
