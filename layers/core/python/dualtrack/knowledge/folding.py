"""One form of a text for searches, for what is indexed and for what is asked. Pure, and linear in any text.

Accents, the case of any script, harakat, niqqud and invisible characters make no difference: `İstanbul` is `istanbul`,
`Ὀδυσσεύς` is `ΟΔΥΣΣΕΥΣ`, `Straße` is `STRASSE`. The vowel signs of India's scripts, of Thai and its neighbours, and
Japanese voicing marks stay: without them other words would be the same.
"""

from __future__ import annotations

import re
from typing import Final

from dualtrack.text import in_form

JOINING: Final = (
    "\xad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u135d-\u135f\u180b-\u180d"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
)
"""Marks on Latin, Greek, Cyrillic, Hebrew, Arabic, Syriac and Ethiopic letters, and characters without a glyph, as the
inside of a regular expression's class: they stand in words and make no difference."""

_LEFT_OUT: Final = re.compile(f"[{JOINING}\u0640]+")
"""The same and the tatweel."""

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")

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


def normalised(text: str) -> str:
    """The text in NFKC."""
    return in_form("NFKC", text)


def plain(text: str) -> str:
    """The text without marks, in NFKC; ASCII letters keep their case, which divides ``setAccessToken``."""
    if text.isascii():
        return text
    bare = _LEFT_OUT.sub("", in_form("NFKD", text)).translate(_LETTERS)
    lower = _NOT_ASCII.sub(lambda signs: signs[0].casefold(), bare)
    return in_form("NFKC", _LEFT_OUT.sub("", lower))


def folded(text: str) -> str:
    """The form in which texts are compared."""
    return plain(text).casefold()
