"""The vectors of an index in an index of S3 Vectors, under the number of their row.

Catalogue, texts and words stay in the object, and words are ranked here: S3 Vectors ranks texts by words only
in an index that was made for it, with words of its own, and the two halves would no longer be those that the
figures in docs/retrieval.md are of. Numbers are the index's int8, whose direction is all that counts, so both
places rank alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.storage.vector_indexes import Entry, index_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.storage.vector_indexes import Value, VectorIndexes
    from dualtrack.tools.courses.index import Index

_SHOWN: Final = ("chunk_index",)


def write(indexes: VectorIndexes, corpus: str, version: str, index: Index) -> None:
    """All vectors of an index that has some, for a version that nobody knows yet."""
    assert index.vectors is not None
    indexes.write(index_name(corpus, version), _entries(index), index.vectors.shape[1], _SHOWN)


def nearest(
    indexes: VectorIndexes,
    index: Index,
    query_vector: bytes,
    course_title: str | None,
    lesson_number: int | None,
    limit: int,
) -> dict[int, float]:
    """The rows that are nearest to a query of float32, with their cosines. Raises botocore's errors."""
    numbers = np.frombuffer(query_vector, "<f4")
    if not np.isfinite(numbers).all() or not numbers.any():
        return {}
    wanted: Mapping[str, Value] = _where(course_title, lesson_number)
    found = indexes.nearest(index.vector_index, numbers.tolist(), wanted, limit)
    return {int(key): cosine for key, cosine in found.items() if int(key) < len(index)}


def _entries(index: Index) -> Iterator[Entry]:
    assert index.vectors is not None
    for row, (vector, course, lesson, place) in enumerate(
        zip(index.vectors, index.courses, index.lessons, index.places, strict=True)
    ):
        if vector.any():
            title, number = index.catalogue[int(course)].title, int(lesson)
            where = _where(title, number if number >= 0 else None)
            yield Entry(str(row), vector.tolist(), where, {"chunk_index": int(place)})


def _where(course_title: str | None, lesson_number: int | None) -> dict[str, Any]:
    given = {"course_title": course_title, "lesson_number": lesson_number}
    return {key: value for key, value in given.items() if value is not None}
