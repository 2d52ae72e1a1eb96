"""Ranking by meaning: numpy over float32 embeddings, cosine or Euclidean.

Computed in float64, where no finite float32 vector overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualtrack.tools.documentation.values import Degraded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dualtrack.tools.documentation.settings import Distance

    Floats = NDArray[np.float64]


def pack(vector: Sequence[float]) -> bytes:
    """Little-endian float32."""
    return np.asarray(vector, dtype="<f4").tobytes()


def vector_scores(query: bytes, vectors: Sequence[bytes], distance: Distance) -> tuple[float, ...]:
    """Closeness of each vector to the query, in (0, 1]; greater is closer.

    Cosine: (1 + cos) / 2. Euclidean: 1 / (1 + distance). Raises `Degraded` if the vectors are not comparable (different
    lengths, not finite, all zero).
    """
    if not vectors:
        return ()
    if not query or len(query) % 4 or {len(vector) for vector in vectors} != {len(query)}:
        raise Degraded("embeddings of different lengths")
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").astype(np.float64).reshape(len(vectors), -1)
    point = np.frombuffer(query, dtype="<f4").astype(np.float64)
    if not (np.isfinite(matrix).all() and np.isfinite(point).all() and point.any()):
        raise Degraded("embeddings are not finite numbers")
    scores = _cosine(point, matrix) if distance == "cosine" else _euclidean(point, matrix)
    return tuple(float(score) for score in scores)


def to_int8(vector: bytes) -> bytes:
    """A float32 vector in a quarter of its size: its largest number becomes 127, which hardly changes a cosine.

    Raises `Degraded` if it is not finite or all zero.
    """
    floats = np.frombuffer(vector, dtype="<f4")
    largest = float(np.abs(floats).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0:
        raise Degraded("embeddings are not finite numbers")
    return np.round(floats.astype(np.float64) * (127 / largest)).astype(np.int8).tobytes()


def from_int8(packed: bytes) -> bytes:
    """The same direction as float32."""
    return np.frombuffer(packed, dtype=np.int8).astype("<f4").tobytes()


def _cosine(point: Floats, matrix: Floats) -> Floats:
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(point)
    cosines = np.divide(
        matrix @ point, lengths, out=np.zeros(len(matrix), dtype=matrix.dtype), where=lengths > 0
    )
    scores: Floats = (1 + cosines) / 2
    return scores


def _euclidean(point: Floats, matrix: Floats) -> Floats:
    scores: Floats = 1 / (1 + np.linalg.norm(matrix - point, axis=1))
    return scores
