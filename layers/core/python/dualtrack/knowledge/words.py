"""The terms of a text for ranking by keywords; identifiers count whole and in parts. Pure."""

from __future__ import annotations

import re
from typing import Final

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
