"""Ranking by keywords: BM25 (rank-bm25) over words; identifiers count whole and in parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rank_bm25 import BM25Plus

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD: Final = re.compile(r"\w+(?:[-.]\w+)*")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_STOPWORDS: Final = (
    "a an and are as at be by can do does for from get how i if in into is it its make my need of on or "
    "should so that the their there this to use using want was way what when where which will with would "
    "you your"
)
_STOP: Final = frozenset(_STOPWORDS.split())
_SUFFIXES: Final = (("sses", "ss"), ("ies", "y"), ("ing", ""), ("ed", ""), ("s", ""))


class Terms(dict[str, tuple[str, ...]]):
    """A cache of each word's search terms, so that a word is split once however often it occurs."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        """Split a new word."""
        whole = word.lower()
        parts = [part.lower() for part in _PART.findall(word)]
        stems = [_stem(part) for part in (parts or [whole]) if part not in _STOP]
        self[word] = terms = (whole, *stems) if len(parts) > 1 else tuple(stems)
        return terms


def words(text: str, known: Terms | None = None) -> list[str]:
    """Lower-case search terms: ``setAccessToken`` becomes itself and set, access, token; plural and simple verb
    endings are cut; stop words are left out. ``known``: a cache to share between texts.
    """
    known = Terms() if known is None else known
    return [term for word in WORD.findall(text) for term in known[word]]


def _stem(word: str) -> str:
    """A light stem, so that "sessions" matches "session"; never shorter than three letters."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and not word.endswith(("ss", "us", "is")):
            stem = word[: -len(suffix)] + replacement
            return stem if len(stem) >= 3 else word
    return word


def keyword_scores(question: str, texts: Sequence[str], *, k1: float, b: float) -> tuple[float, ...]:
    """BM25 scores of ``texts`` for the question, each at least 0; all 0 if no word matches.

    Uses rank-bm25's Plus variant for its idf log((N + 1) / df): in a small set of sections Okapi's idf is negative for
    words that more than half of them share, and rank-bm25's floor for it can exceed the weight of rarer words. Plus
    adds a constant to every section, even to one without the word; it is subtracted again, so that a section with none
    of the words scores 0.
    """
    known = Terms()
    terms = [words(text, known) for text in texts]
    if not any(terms):
        return tuple(0.0 for _ in texts)
    index = BM25Plus(terms, k1=k1, b=b)
    query = [term for term in dict.fromkeys(words(question)) if term in index.idf]
    absent = sum(index.idf[term] * index.delta for term in query)
    present = [not frequencies.keys().isdisjoint(query) for frequencies in index.doc_freqs]
    scores = index.get_scores(query)
    return tuple(
        max(0.0, float(score) - absent) if matches else 0.0
        for score, matches in zip(scores, present, strict=True)
    )
