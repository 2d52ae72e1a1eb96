"""BM25 over the words of a conversation's records, part by part (`dualtrack.memory.query_index` has the format)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.knowledge.bm25 import weights
from dualtrack.knowledge.words import asked
from dualtrack.memory.query_index import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from dualtrack.memory.query_index import QueryIndex

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Match:
    """A record's best part for a query; ``offset`` in the record's text, or `PASSAGE`; ``end`` of a part that was found
    by meaning."""

    score: float
    offset: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a query's parts, and of its postings of the wanted words."""

    records: Array
    offsets: Array
    lengths: Array
    words: Array
    parts: Array
    counts: Array


def matches(query: str, queries: Iterable[QueryIndex], k1: float, b: float) -> dict[str, Match]:
    """BM25 over all parts of all queries, and of each record with one of the query's words its best part, by id.

    The score is that of documentation search (`dualtrack.knowledge.keywords`).
    """
    wanted = np.unique(np.array([zlib.crc32(word.encode()) for word in asked(query)], "<u4"))
    read, first = list[_Columns](), 0
    ids: list[str] = []
    for index in queries:
        read.append(_read(index.words, wanted, len(ids), first))
        first += len(read[-1].offsets)
        ids += [passage.record_id for passage in index.passages]
    if not ids:
        return {}
    every = _Columns(*(np.concatenate(column) for column in zip(*map(_columns, read), strict=True)))
    return _best(every, _scores(every, k1, b), ids)


def _columns(read: _Columns) -> tuple[Array, ...]:
    return read.records, read.offsets, read.lengths, read.words, read.parts, read.counts


def _read(data: bytes, wanted: Array, records_before: int, parts_before: int) -> _Columns:
    size, distinct, postings = COUNTS.unpack_from(data)
    at = COUNTS.size

    def column(kind: str, length: int) -> Array:
        nonlocal at
        values = np.frombuffer(data, kind, length, at)
        at += values.nbytes
        return values

    records, offsets, lengths = column("<u2", size), column("<i4", size), column("<u2", size)
    hashes, ends = (np.cumsum(column("<u4", distinct), dtype="<u4") for _ in range(2))
    parts, counts = column("<u4", postings), column("u1", postings)
    place = np.searchsorted(hashes, wanted)
    is_there = np.searchsorted(hashes, wanted, "right") > place
    bounds = np.concatenate([np.zeros(1, "<u4"), ends])
    starts, stops = bounds[place[is_there]], bounds[place[is_there] + 1]
    rows = np.concatenate([np.arange(0), *map(np.arange, starts, stops)])
    return _Columns(
        records + np.uint32(records_before),
        offsets,
        lengths,
        np.repeat(wanted[is_there], stops - starts),
        parts[rows] + np.uint32(parts_before),
        counts[rows],
    )


def _scores(read: _Columns, k1: float, b: float) -> Array:
    scores = np.zeros(len(read.lengths))
    relative = read.lengths / (read.lengths.mean() or 1)
    for word in np.unique(read.words):
        own = read.words == word
        rows, counts = read.parts[own], read.counts[own].astype(float)
        scores[rows] += weights(counts, relative[rows], len(scores), k1, b)
    return scores


def _best(read: _Columns, scores: Array, ids: Sequence[str]) -> dict[str, Match]:
    """Each record's best part, of equal ones the first; records without any of the words are left out."""
    found = np.flatnonzero(scores > 0)
    order = found[np.lexsort((found, -scores[found]))]
    best: dict[str, Match] = {}
    for at in order:
        record_id = ids[read.records[at]]
        best.setdefault(record_id, Match(float(scores[at]), int(read.offsets[at])))
    return best
