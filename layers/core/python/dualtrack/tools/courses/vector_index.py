"""The vectors of a course index in an S3 Vectors index, each under its row number.

Catalogue, texts and words stay in the object, and keywords are ranked here: S3 Vectors would need an index of its own
kind for that, with other words, and the figures in docs/retrieval.md would no longer hold. The numbers are the index's
int8; only a vector's direction counts, so both rank alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.storage.vector_indexes import VectorEntry, index_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.storage.vector_indexes import MetadataValue, VectorIndexes
    from dualtrack.tools.courses.index import CourseIndex

_SHOWN: Final = ("chunk_index",)


def write(indexes: VectorIndexes, corpus: str, version: str, index: CourseIndex) -> None:
    """Write all vectors of an index that has some, for a version that is not published yet."""
    assert index.vectors is not None
    indexes.write(index_name(corpus, version), _entries(index), index.vectors.shape[1], _SHOWN)


def nearest(
    indexes: VectorIndexes,
    index: CourseIndex,
    query_vector: bytes,
    course_title: str | None,
    lesson_number: int | None,
    limit: int,
) -> dict[int, float]:
    """The rows nearest to a float32 query, with their cosines. Raises botocore's errors."""
    numbers = np.frombuffer(query_vector, "<f4")
    if not np.isfinite(numbers).all() or not numbers.any():
        return {}
    wanted: Mapping[str, MetadataValue] = _where(course_title, lesson_number)
    scores = indexes.nearest(index.vector_index, numbers.tolist(), wanted, limit)
    return {int(key): cosine for key, cosine in scores.items() if int(key) < len(index)}


def _entries(index: CourseIndex) -> Iterator[VectorEntry]:
    assert index.vectors is not None
    for row, (vector, course, lesson, chunk_index) in enumerate(
        zip(index.vectors, index.courses, index.lessons, index.places, strict=True)
    ):
        if vector.any():
            title, number = index.catalogue[int(course)].title, int(lesson)
            where = _where(title, number if number >= 0 else None)
            yield VectorEntry(str(row), vector.tolist(), where, {"chunk_index": int(chunk_index)})


def _where(course_title: str | None, lesson_number: int | None) -> dict[str, Any]:
    conditions = {"course_title": course_title, "lesson_number": lesson_number}
    return {key: value for key, value in conditions.items() if value is not None}
