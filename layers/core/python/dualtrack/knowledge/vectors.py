"""Ranking by meaning: numpy over float32 embeddings, cosine or Euclidean, and over int8 rows of whole corpora.

Closeness is computed in float64, where no finite float32 vector overflows; `cosines` of int8 rows in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dualtrack.errors import Degraded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float64]

Distance = Literal["cosine", "euclidean"]

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


def cosines(vectors: Array, query_vector: bytes) -> Array:
    """The cosine of each row with the query, float32; 0 if either is a zero vector."""
    query = np.frombuffer(query_vector, "<f4")
    scores = np.zeros(len(vectors), np.float32)
    length = float(np.linalg.norm(query))
    if not length or not np.isfinite(length):
        return scores
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        block = vectors[start : start + _ROWS_AT_ONCE].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block)) * length
        np.divide(block @ query, lengths, out=scores[start : start + _ROWS_AT_ONCE], where=lengths > 0)
    return scores


def comparable(vectors: Array | None, query_vector: bytes | None) -> bool:
    """Whether both exist and have the same width."""
    return vectors is not None and query_vector is not None and len(query_vector) == 4 * vectors.shape[1]


def quantised(vectors: Sequence[bytes]) -> Array:
    """The vectors as rows of int8: each is scaled so that its largest number becomes 127, which changes its direction
    by less than a degree."""
    width = len(vectors[0]) if vectors else 0
    rows = np.empty((len(vectors), width // 4), np.int8)
    for row, vector in enumerate(vectors):
        numbers = np.frombuffer(vector, "<f4")
        largest = float(np.abs(numbers).max(initial=0.0))
        rows[row] = np.round(numbers * (127 / largest)) if largest else 0
    return rows
