"""The words by which a user finds a conversation: those of its questions, answers and summaries, as hashes. Pure.

Each word has the number of the query that said it first, so a fork takes over those of the queries that it shares, and
the oldest can be left out. A word that is said again after that counts as new. Packed, they are columns of bytes: the
steps between the sorted hashes (CRC 32), then the queries (u32 both), which compress to 3 to 4 bytes a word.
"""

from __future__ import annotations

import itertools
import re
import zlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.ids import kind_of
from dualtrack.knowledge.folding import folded, normalised, plain
from dualtrack.knowledge.words import asked, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from dualtrack.memory.records import QueryTrack, Record

PACKED_LIMIT: Final = 63 * 1_024
"""Maximum size of a conversation's words, in bytes, packed: with its key, the item has at most 64 KB."""

QUERY_WORDS: Final = 4_000
"""Maximum number of words that a query adds, its question's first: a pasted text does not push out all others."""

TEXT_LIMIT: Final = 100_000
"""Maximum length of a text whose words are counted."""

_PAIRED: Final = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_WRITTEN: Final = re.compile(r"\w+(?:[-.]\w+)*")
"""Runs and words as they were when accents stood in them."""

_WIDTH: Final = 4
_LEFT_OUT: Final = 10
"""A tenth of the words, the oldest, is left out until the others fit."""


@dataclass(frozen=True, slots=True)
class SearchedWord:
    """A word of a search. ``text``: as it is compared with titles; ``ways``: sets of hashes, one of which a
    conversation has whole if it says the word; none for a stop word or a sign."""

    text: str
    ways: tuple[frozenset[int], ...]


def searched_words(text: str) -> tuple[SearchedWord, ...]:
    """The distinct words of a search."""
    said = dict.fromkeys(normalised(text).casefold().split())
    return tuple(SearchedWord(folded(word), _ways(word)) for word in said if folded(word))


def has_words(searched: Sequence[SearchedWord], titles: str, known: Set[int]) -> bool:
    """Whether every word occurs in the ``titles`` (folded; also as a part of a longer word) or is ``known``. Words
    without hashes count only where there are no others."""
    needed = [word for word in searched if word.ways] or searched
    return all(word.text in titles or any(way <= known for way in word.ways) for word in needed)


def words_of_query(records: Sequence[Record], track: QueryTrack) -> Sequence[int]:
    """The hashes of the words of an ended query: its question's, its answer's, its summaries'; at most
    `QUERY_WORDS`."""
    messages = (record for record in records if kind_of(record.record_id) in ("query", "response"))
    texts = (
        *(record.content for record in messages),
        *(block.content for block in track.blocks if block.ref),
    )
    found = dict.fromkeys(word for text in texts for word in words_of_text(text))
    return list(itertools.islice(found, QUERY_WORDS))


def words_of_text(text: str) -> list[int]:
    """The hashes of a text's words, in order."""
    bare = plain(text[:TEXT_LIMIT])[:TEXT_LIMIT]
    return [_hash(term) for term in dict.fromkeys(words(bare))]


def with_query(known: Mapping[int, int], query: int, hashes: Iterable[int]) -> Mapping[int, int]:
    """The words with those of a query: hashes, with the number of the query that said them first."""
    return {**dict.fromkeys(hashes, query), **known}


def packed(known: Mapping[int, int]) -> bytes:
    """The words as they are stored, without the oldest ones that do not fit."""
    while len(data := _packed(known)) > PACKED_LIMIT:
        latest_last = sorted(known.items(), key=lambda entry: entry[::-1])
        known = dict(latest_last[len(known) // _LEFT_OUT :])
    return data


def unpacked(data: bytes) -> dict[int, int]:
    """The words from their stored form."""
    columns = zlib.decompress(data)
    size, raw = len(columns) // _WIDTH, bytearray(len(columns))
    for place in range(_WIDTH):
        raw[place::_WIDTH] = columns[place * size : (place + 1) * size]
    numbers = array("I", bytes(raw))
    return dict(zip(itertools.accumulate(numbers[: size // 2]), numbers[size // 2 :], strict=True))


def _packed(known: Mapping[int, int]) -> bytes:
    entries = sorted(known.items())
    hashes = [number for number, _ in entries]
    steps = (own - before for before, own in itertools.pairwise([0, *hashes]))
    raw = array("I", [*steps, *(query for _, query in entries)]).tobytes()
    return zlib.compress(b"".join(raw[place::_WIDTH] for place in range(_WIDTH)), 9)


def _ways(word: str) -> tuple[frozenset[int], ...]:
    """The ways in which a text may have said this word: in parts or, as ``setAccessTokens`` has other ones in lower
    case, whole; or as texts were indexed before there was one folding, of which the words are still stored."""
    bare = folded(word)
    ways = (asked(bare), asked(bare, parts=False), _as_before(word))
    return tuple({frozenset(map(_hash, way)): None for way in ways if way and words(bare)})


def _as_before(word: str) -> list[str]:
    """The terms when accents stood in the words, and marks between them."""
    pairs = [pair for run in _PAIRED.findall(word) for pair in asked(run)]
    return [*pairs, *(token for token in _WRITTEN.findall(_PAIRED.sub(" ", word)) if words(token))]


def _hash(term: str) -> int:
    return zlib.crc32(term.encode(errors="replace"))
