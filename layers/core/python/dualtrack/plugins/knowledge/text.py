"""A document's text for the API: of its collection's index only the parts that it needs are read, without numpy."""

from __future__ import annotations

import json
import struct
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import Gone
from dualtrack.knowledge.array_layout import HEADER, arrays_begin
from dualtrack.plugins.knowledge.documents import Chunk
from dualtrack.plugins.knowledge.passages import PIECE, piece_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.plugins.knowledge.passages import Piece
    from dualtrack.storage.corpora import CorpusStore

_READ_AT_ONCE: Final = 1 << 20
_MOST_CHUNKS: Final = PIECE // 10
"""Chunks of a piece; shorter ones than ten characters make it shorter than it could be."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows of an index, from ``first`` on."""

    first: int
    texts: Sequence[str]
    paths: Sequence[int]
    pages: Sequence[int]
    headings: Sequence[Sequence[str]]

    def chunk(self, row: int) -> Chunk:
        at = row - self.first
        return Chunk(self.texts[at], tuple(self.headings[self.paths[at]]), self.pages[at] or None)


def piece_in(corpora: CorpusStore, collection: str, title: str, begin: int) -> Piece:
    """The piece from a passage on. Raises `Gone` if the document has just gone."""
    published = corpora.published(collection)
    if published is None:
        raise Gone(collection)

    def read(start: int, end: int) -> bytes:
        return corpora.index_part(collection, published.version, start, end) if end > start else b""

    start = read(0, _READ_AT_ONCE)
    (size,) = struct.unpack_from("<I", start, HEADER - 4)
    head = start[HEADER : HEADER + size] + read(len(start), HEADER + size)
    header = json.loads(head)
    if title not in header["titles"]:
        raise Gone(collection)
    numbers = _numbers(header["arrays"], arrays_begin(size), read)
    at = header["titles"].index(title)
    first, end = numbers("firsts", at, at + 2)
    rows = range(first, end)
    if begin >= len(rows):
        return piece_of(_Part(first, (), (), (), ()), (), begin)
    low = first + begin
    high = min(end, low + _MOST_CHUNKS)
    before = max(0, low - 1)
    ends = numbers("text_ends", before, high)
    ends = ends if low else [0, *ends]
    text = bytes(numbers("texts", ends[0], ends[-1]))
    texts = [text[a - ends[0] : b - ends[0]].decode() for a, b in pairwise(ends)]
    part = _Part(low, texts, numbers("paths", low, high), numbers("pages", low, high), header["headings"])
    return piece_of(part, rows, begin)


def _numbers(
    arrays: Mapping[str, Any], first: int, read: Callable[[int, int], bytes]
) -> Callable[[str, int, int], list[int]]:
    """Reads a slice of an array of the index."""

    def numbers(name: str, begin: int, end: int) -> list[int]:
        kind, _, at = arrays[name]
        width = 4 if kind == "<u4" else 1
        data = read(first + at + begin * width, first + at + end * width)
        found = array("I" if width == 4 else "B")
        found.frombytes(data)
        return found.tolist()

    return numbers
