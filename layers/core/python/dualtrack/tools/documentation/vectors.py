"""Ranking by meaning: numpy over float32 embeddings, cosine or Euclidean.

Computed in float64, where no finite float32 vector overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dualtrack.tools.documentation.values import Degraded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dualtrack.tools.documentation.settings import Distance

    Floats = NDArray[np.float64]

_ROWS_AT_ONCE: Final = 2_048


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


def int8_scores(query: bytes, joined: bytes) -> tuple[float, ...]:
    """`vector_scores` by cosine, of joined int8 vectors of the query's (float32) dimension.

    Raises `Degraded` if the query is not finite or all zero.
    """
    point = np.frombuffer(query, dtype="<f4").astype(np.float64)
    if not (np.isfinite(point).all() and point.any()):
        raise Degraded("embeddings are not finite numbers")
    rows = np.frombuffer(joined, dtype=np.int8).reshape(-1, len(point))
    chunks = (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))
    return tuple(float(score) for chunk in chunks for score in _cosine(point, chunk.astype(np.float64)))


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
