"""BM25 over an inverted index in arrays.

rank-bm25 keeps a dictionary for each text and takes half a gigabyte for 40,000 chunks. Words and scores are the same as
in documentation search (`dualtrack.knowledge.keywords`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.knowledge.bm25 import weights
from dualtrack.knowledge.words import Terms, asked, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Postings:
    """``vocabulary``: the sorted words, concatenated in UTF-8; word ``w`` ends at ``vocabulary_ends[w]``.

    Word ``w`` is in the rows ``chunks[firsts[w]:firsts[w + 1]]``, as often as ``counts`` in the same slice (at most
    65,535). ``lengths``: the number of words in each row.
    """

    vocabulary: Array
    vocabulary_ends: Array
    firsts: Array
    chunks: Array
    counts: Array
    lengths: Array

    def word(self, number: int) -> bytes:
        """The word of a number."""
        start = int(self.vocabulary_ends[number - 1]) if number else 0
        return self.vocabulary[start : int(self.vocabulary_ends[number])].tobytes()

    def find(self, word: str) -> int | None:
        """The number of a word; None if it is in no row."""
        wanted, low, high = word.encode(), 0, len(self.vocabulary_ends)
        while low < high:
            middle = (low + high) // 2
            if self.word(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.vocabulary_ends) and self.word(low) == wanted else None

    def scores(self, query: str, k1: float, b: float) -> Array:
        """BM25 of every row, float32; 0 for rows with none of the words."""
        total = np.zeros(len(self.lengths), np.float32)
        if not len(self.lengths):
            return total
        average = float(self.lengths.mean()) or 1.0
        for word in asked(query):
            number = self.find(word)
            if number is None:
                continue
            span = slice(int(self.firsts[number]), int(self.firsts[number + 1]))
            rows, counts = self.chunks[span], self.counts[span].astype(np.float32)
            total[rows] += weights(counts, self.lengths[rows] / average, len(self.lengths), k1, b)
        return total

    def shares(self, query: str, rows: Array) -> Array:
        """Of each of these rows, how much of the query's words it has, from 0 to 1: rare words count more, and those
        that are nowhere most."""
        found, total = np.zeros(len(rows)), 0.0
        for word in asked(query):
            number = self.find(word)
            span = (
                slice(0) if number is None else slice(int(self.firsts[number]), int(self.firsts[number + 1]))
            )
            holders = self.chunks[span]
            rarity = float(np.log1p((len(self.lengths) - len(holders) + 0.5) / (len(holders) + 0.5)))
            found += rarity * np.isin(rows, holders)
            total += rarity
        return found / (total or 1.0)


def postings_of(texts: Iterable[str]) -> Postings:
    """The postings of the texts, one row for each."""
    numbers: dict[str, int] = {}
    lengths: list[int] = []
    by_row: list[Array] = []
    known = Terms()
    for row, text in enumerate(texts):
        terms = words(text, known)
        lengths.append(len(terms))
        counted = Counter(terms)
        triples = np.empty((len(counted), 3), "<u4")
        for at, (word, times) in enumerate(counted.items()):
            triples[at] = numbers.setdefault(word, len(numbers)), row, min(times, 65_535)
        by_row.append(triples)
    return _sorted(numbers, np.concatenate(by_row) if by_row else np.empty((0, 3), "<u4"), lengths)


def _sorted(numbers: dict[str, int], triples: Array, lengths: list[int]) -> Postings:
    """The words in the order of their bytes, each with its rows in ascending order."""
    ordered = sorted((word.encode(), number) for word, number in numbers.items())
    positions = np.empty(len(ordered), np.int64)
    positions[[number for _, number in ordered]] = np.arange(len(ordered))
    of_word = positions[triples[:, 0]]
    order = np.argsort(of_word, kind="stable")
    ends = np.cumsum([len(word) for word, _ in ordered], dtype="<u4")
    return Postings(
        vocabulary=np.frombuffer(b"".join(word for word, _ in ordered), np.uint8),
        vocabulary_ends=ends,
        firsts=np.searchsorted(of_word[order], np.arange(len(ordered) + 1)).astype("<u4"),
        chunks=triples[order, 1].astype("<u4"),
        counts=triples[order, 2].astype("<u2"),
        lengths=np.array(lengths, "<u4"),
    )
