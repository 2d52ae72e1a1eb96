"""One form of a text for the search of conversations, for what is indexed and for what is asked. Pure.

Accents, the case of any script, harakat, niqqud and invisible characters make no difference: `İstanbul` is `istanbul`,
`Ὀδυσσεύς` is `ΟΔΥΣΣΕΥΣ`. The vowel signs of India's scripts, of Thai and its neighbours, and Japanese voicing marks
stay: without them other words would be the same.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS: Final = re.compile(
    "[\xad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff]+"
)
"""Marks on Latin, Greek, Cyrillic, Hebrew, Arabic and Syriac letters, the tatweel, characters without a glyph."""

_LETTERS: Final = str.maketrans(
    {
        "ı": "i",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ħ": "h",
        "æ": "ae",
        "Æ": "AE",
        "œ": "oe",
        "Œ": "OE",
    }
)
"""Letters whose accent has no character of its own."""

MARKED: Final = re.compile(
    "[\u0780-\u07bf\u0900-\u0963\u0966-\u0970\u0971-\u0df3\u0f00\u0f18-\u0f39\u0f3e-\u0fbc]+"
)
"""A word of a script that has blanks and writes its vowels as signs: those of India, Sinhala, Thaana, Tibetan."""

CHARACTERS: Final = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""A run of Chinese, Japanese or Korean, which is searched by its characters and pairs of them."""

SYLLABLES: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3\u17dc\u17dd]+")
"""A run of Thai, Lao, Burmese or Khmer, which have no blanks between words either, but few characters: it is searched
by three of them in a row."""


def plain(text: str) -> str:
    """The text without marks, in NFKC; ASCII letters keep their case, which divides ``setAccessToken``."""
    if text.isascii():
        return text
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text)).translate(_LETTERS)
    lower = "".join(sign if sign.isascii() else sign.casefold() for sign in bare)
    return unicodedata.normalize("NFKC", _MARKS.sub("", lower))


def folded(text: str) -> str:
    """The form in which texts are compared."""
    return plain(text).casefold()


def pieces(run: str) -> Iterator[str]:
    """The terms of a run of `CHARACTERS`: each and each pair."""
    yield from (*run, *map("".join, itertools.pairwise(run)))


def syllables(run: str) -> Iterator[str]:
    """The terms of a run of `SYLLABLES`: one to three characters in a row."""
    yield from (run[at : at + length] for length in (1, 2, 3) for at in range(len(run) - length + 1))
