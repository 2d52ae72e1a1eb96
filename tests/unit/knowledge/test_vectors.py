"""Ranking by meaning: cosine, Euclidean, and vectors that cannot be compared."""

from __future__ import annotations

import math
import struct

import pytest
from dualtrack.errors import Degraded
from dualtrack.knowledge.vectors import pack, vector_scores


def test_cosine_ignores_length_and_euclidean_does_not() -> None:
    query, same_direction, near = pack([1, 0]), pack([10, 0]), pack([1, 0.5])

    cosine = vector_scores(query, [same_direction, near], "cosine")
    euclidean = vector_scores(query, [same_direction, near], "euclidean")
    assert cosine == pytest.approx((1.0, (1 + 1 / math.sqrt(1.25)) / 2))
    assert euclidean == pytest.approx((1 / 10, 1 / 1.5))
    assert vector_scores(query, [pack([0, 0])], "cosine") == (0.5,)
    assert vector_scores(query, [], "cosine") == ()


@pytest.mark.parametrize(
    ("query", "vectors"),
    [
        (pack([1, 2]), [pack([1, 2, 3])]),
        (pack([1, 2]), [pack([1, 2]), pack([1])]),
        (b"", [b""]),
        (b"abc", [b"abc"]),
        (pack([0, 0]), [pack([1, 2])]),
        (pack([1, math.nan]), [pack([1, 2])]),
        (pack([1, 2]), [pack([math.inf, 2])]),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(query: bytes, vectors: list[bytes]) -> None:
    with pytest.raises(Degraded):
        vector_scores(query, vectors, "cosine")


def test_vectors_are_stored_as_little_endian_float32() -> None:
    assert pack([1.5, -2.0]) == struct.pack("<2f", 1.5, -2.0)
