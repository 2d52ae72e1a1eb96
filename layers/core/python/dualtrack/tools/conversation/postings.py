"""The words of records, part by part, in arrays: what a search by words reads instead of the records' texts.

A record's first part is its passage (its summary and beginning); a text that the passage does not hold whole has a part
for each window besides. A segment's words are one block of bytes, little-endian:

    8 bytes         numbers of parts and of postings
    parts           each part's record in the segment, its offset in the record's text (-1: the passage), its words
    postings        by word: the hash (CRC 32), the part, how often
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.tools.documentation.keywords import Terms, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from dualtrack.storage.search_index import Segment

    Array = NDArray[Any]
    Rows = tuple[Array, Array]
    """A record's parts and postings."""

PASSAGE: Final = -1
"""The offset of a part that is the record's passage."""

_COUNTS: Final = struct.Struct("<II")
_PARTS: Final = (("record", "<u2"), ("offset", "<i4"), ("length", "<u2"))
_MOST_WORDS: Final = 65_535
_MOST_OFTEN: Final = 255
_POSTINGS: Final = (("word", "<u4"), ("part", "<u4"), ("count", "u1"))


@dataclass(frozen=True, slots=True)
class Match:
    """A record's best part for a query; ``offset`` in the record's text, or `PASSAGE`."""

    score: float
    offset: int


class _Hashes(dict[str, int]):
    def __missing__(self, term: str) -> int:
        self[term] = number = zlib.crc32(term.encode())
        return number


@dataclass
class Counted:
    """Counts the words of a segment's records, one after another."""

    _known: Terms = field(default_factory=Terms)
    _hashes: _Hashes = field(default_factory=_Hashes)

    def rows(self, parts: Iterable[tuple[int, str]]) -> Rows:
        """The parts and postings of one record, from offsets and texts."""
        listed: list[tuple[int, int, int]] = []
        hashes: list[int] = []
        counts: list[int] = []
        sizes: list[int] = []
        for offset, text in parts:
            terms = words(text, self._known)
            counted = Counter(terms)
            listed.append((0, offset, min(len(terms), _MOST_WORDS)))
            hashes += map(self._hashes.__getitem__, counted)
            counts += counted.values()
            sizes.append(len(counted))
        postings = np.empty(len(hashes), list(_POSTINGS))
        postings["word"] = hashes
        postings["part"] = np.repeat(np.arange(len(sizes)), sizes)
        postings["count"] = np.minimum(counts, _MOST_OFTEN)
        return np.array(listed, list(_PARTS)), postings


def pack(records: Sequence[Rows]) -> bytes:
    """The words of a segment's records, in order."""
    first, parts, postings = 0, [], []
    for number, (own_parts, own_postings) in enumerate(records):
        shifted, moved = own_parts.copy(), own_postings.copy()
        shifted["record"] = number
        moved["part"] += first
        first += len(own_parts)
        parts.append(shifted)
        postings.append(moved)
    every = np.concatenate(postings)
    every = every[np.argsort(every["word"], kind="stable")]
    columns = [np.concatenate(parts)[name].tobytes() for name, _ in _PARTS]
    columns += [every[name].tobytes() for name, _ in _POSTINGS]
    return b"".join([_COUNTS.pack(first, len(every)), *columns])


def matches(query: str, segments: Iterable[Segment], k1: float, b: float) -> dict[str, Match]:
    """BM25 over all parts of all segments, and of each record with one of the query's words its best part, by id.

    The score is that of documentation search (`keywords.keyword_scores`).
    """
    wanted = np.unique(np.array([zlib.crc32(word.encode()) for word in words(query)], "<u4"))
    first, parts, postings = 0, [], []
    ids: list[str] = []
    for segment in segments:
        own, found = _read(segment.words, wanted)
        found["part"] += first
        own["record"] += len(ids)
        first += len(own)
        parts.append(own)
        postings.append(found)
        ids += [passage.record_id for passage in segment.passages]
    if not parts:
        return {}
    whole = np.concatenate(parts)
    return _best(whole, _scores(whole["length"], np.concatenate(postings), k1, b), ids)


def _read(data: bytes, wanted: Array) -> Rows:
    """A segment's parts, and its postings of the wanted words."""
    size, count = _COUNTS.unpack_from(data)
    at = _COUNTS.size
    parts = np.empty(size, [("record", "<u4"), *_PARTS[1:]])
    for name, kind in _PARTS:
        column = np.frombuffer(data, kind, size, at)
        parts[name] = column
        at += column.nbytes
    hashes = np.frombuffer(data, "<u4", count, at)
    starts, ends = (np.searchsorted(hashes, wanted, side) for side in ("left", "right"))
    rows = np.concatenate([np.arange(0), *map(np.arange, starts, ends)])
    postings = np.empty(len(rows), list(_POSTINGS))
    for name, kind in _POSTINGS:
        column = np.frombuffer(data, kind, count, at)
        postings[name] = column[rows]
        at += column.nbytes
    return parts, postings


def _scores(lengths: Array, postings: Array, k1: float, b: float) -> Array:
    scores = np.zeros(len(lengths))
    relative = lengths / (lengths.mean() or 1)
    for word in np.unique(postings["word"]):
        own = postings[postings["word"] == word]
        rows, counts = own["part"], own["count"].astype(float)
        weight = np.log((len(lengths) + 1) / len(rows))
        scores[rows] += weight * counts * (k1 + 1) / (counts + k1 * (1 - b + b * relative[rows]))
    return scores


def _best(parts: Array, scores: Array, ids: Sequence[str]) -> dict[str, Match]:
    """Each record's best part, of equal ones the first; records without any of the words are left out."""
    found = np.flatnonzero(scores > 0)
    order = found[np.lexsort((found, -scores[found]))]
    best: dict[str, Match] = {}
    for at in order:
        record_id = ids[parts["record"][at]]
        best.setdefault(record_id, Match(float(scores[at]), int(parts["offset"][at])))
    return best
