"""Vectors of int8, without numpy: `summarise` makes those of a block."""

from __future__ import annotations

from array import array
from math import isfinite
from typing import TYPE_CHECKING

from dualtrack.errors import Degraded

if TYPE_CHECKING:
    from collections.abc import Sequence


def to_int8(vectors: Sequence[bytes]) -> bytes:
    """Vectors of float32, joined, each in a quarter of its size: its largest number becomes 127, which hardly changes a
    cosine. Raises `Degraded` if one is not finite or all zero."""
    return b"".join(map(_int8, vectors))


def _int8(vector: bytes) -> bytes:
    floats = array("f", vector)
    largest = max(map(abs, floats), default=0.0)
    if not largest or not all(map(isfinite, floats)):
        raise Degraded("embeddings are not finite numbers")
    return array("b", (round(number * 127 / largest) for number in floats)).tobytes()
