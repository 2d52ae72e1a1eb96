"""What a search of a conversation reads of a query instead of its records: their passages, and their words, part by
part. Made when the query ends, by functions without numpy (tools/conversation/postings.py reads it). Pure.

A record's first part is its passage (its summary and beginning); a text that the passage does not hold whole has a part
for each window besides. The words are one block of bytes, little-endian, column by column:

    12 bytes        numbers of parts, of words, of postings
    parts           each part's record in the query (u16), its offset in the record's text (i32; -1: the passage), its
                    terms (u16)
    words           by hash (CRC 32): the step from the hash before, the number of postings (u32 both)
    postings        word by word: the part (u32), how often (u8)

Steps and numbers instead of hashes and positions take a tenth less when compressed.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from dualtrack.codec import dump, load
from dualtrack.knowledge.words import Terms, effort, words
from dualtrack.memory.left_out import is_declined
from dualtrack.memory.passages import RECORD_LIMIT, Passage, passages_of, windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dualtrack.memory.records import QueryTrack, Record

PASSAGE: Final = -1
"""The offset of a part that is the record's passage."""

QUERY_LIMIT: Final = 2_000_000
"""Maximum length of a query's texts that are counted when it ends, which is two seconds of the smallest function, as
characters of English (`words.effort`). Those of a longer query are counted by the next search."""

SPOTS: Final = 16
"""Maximum number of parts of a record that are compared in meaning, besides its passage."""

COUNTS: Final = struct.Struct("<III")
_MOST_WORDS: Final = 65_535
_MOST_OFTEN: Final = 255


@dataclass(frozen=True, slots=True)
class Spot:
    """What is compared in meaning: a record's passage (``offset``: `PASSAGE`), or a part of its text up to ``end``,
    condensed."""

    passage: Passage
    offset: int = PASSAGE
    end: int = 0


@dataclass(frozen=True, slots=True)
class QueryIndex:
    """The passages of a query's records, in order, and their words."""

    passages: tuple[Passage, ...]
    words: bytes = b""

    def spots(self) -> tuple[Spot, ...]:
        """Each record's passage, and the parts of a text that has windows."""
        size, _, _ = COUNTS.unpack_from(self.words)
        records, offsets = array("H"), array("i")
        records.frombytes(self.words[COUNTS.size : COUNTS.size + 2 * size])
        offsets.frombytes(self.words[COUNTS.size + 2 * size : COUNTS.size + 6 * size])
        windows_of: list[list[int]] = [[] for _ in self.passages]
        for record, offset in zip(records, offsets, strict=True):
            if offset != PASSAGE:
                windows_of[record].append(offset)
        return tuple(
            spot
            for passage, own in zip(self.passages, windows_of, strict=True)
            for spot in (Spot(passage), *(Spot(passage, *part) for part in _parts(own)))
        )


def index_of(records: Sequence[Record], track: QueryTrack | None) -> QueryIndex:
    """The index of a query's records; ``track``: its summaries, None while they are not written. A query that the
    model's service declined has none: what a search finds is sent."""
    passages = () if is_declined(records) else passages_of(records, track)
    texts = {record.record_id: record.content for record in records}
    parts = ([(PASSAGE, own.text), *windows(own, texts[own.record_id])] for own in passages)
    return QueryIndex(passages, counted(parts))


def is_counted_at_once(records: Iterable[Record]) -> bool:
    """Whether the index of an ending query is made by the step that ends it."""
    return sum(effort(record.content[:RECORD_LIMIT]) for record in records) <= QUERY_LIMIT


def counted(records: Iterable[Iterable[tuple[int, str]]]) -> bytes:
    """The words of records, each from the offsets and texts of its parts."""
    numbers, offsets, lengths = array("H"), array("i"), array("H")
    terms, found = Terms(), dict[str, list[int]]()
    for number, parts in enumerate(records):
        for offset, text in parts:
            listed, part = words(text, terms), len(offsets) << 8
            numbers.append(number)
            offsets.append(offset)
            lengths.append(min(len(listed), _MOST_WORDS))
            for word, count in Counter(listed).items():
                found.setdefault(word, []).append(part | min(count, _MOST_OFTEN))
    hashed = sorted((zlib.crc32(word.encode()), postings) for word, postings in found.items())
    hashes = [number for number, _ in hashed]
    every = [posting for _, postings in hashed for posting in postings]
    columns = (
        *(column.tobytes() for column in (numbers, offsets, lengths)),
        array("I", (own - before for before, own in pairwise([0, *hashes]))).tobytes(),
        array("I", (len(postings) for _, postings in hashed)).tobytes(),
        array("I", (posting >> 8 for posting in every)).tobytes(),
        bytes(posting & _MOST_OFTEN for posting in every),
    )
    return b"".join([COUNTS.pack(len(offsets), len(hashed), len(every)), *columns])


def packed(index: QueryIndex) -> bytes:
    """The index as it is stored."""
    passages = dump(index.passages).encode()
    return struct.pack("<I", len(passages)) + passages + index.words


def unpacked(data: bytes) -> QueryIndex:
    """The index from its stored form."""
    (length,) = struct.unpack_from("<I", data)
    return QueryIndex(load(tuple[Passage, ...], data[4 : 4 + length]), data[4 + length :])


def _parts(windows_at: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The offsets and ends of at most `SPOTS` equal parts of a text, from the offsets of its windows."""
    number = min(len(windows_at), SPOTS)
    starts = [windows_at[place * len(windows_at) // number] for place in range(number)]
    return pairwise([*starts, RECORD_LIMIT]) if starts else iter(())
