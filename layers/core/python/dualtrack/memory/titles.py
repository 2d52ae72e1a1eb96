"""What a search of conversations looks at: titles, and the beginnings of the latest queries (CONTRACT 4). Pure."""

from __future__ import annotations

import itertools
import re
import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERIES_KEPT: Final = 20
START_CHARACTERS: Final = 100
TITLE_CHARACTERS: Final = 80

_LOOKED_AT: Final = 4000
"""Characters of a query from which its title is made."""

_SHORT: Final = 15
"""A shorter sentence is no title on its own: ``Hi!``."""

_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINE_MARKS: Final = re.compile(r"^[ \t]{0,8}(?:#{1,6}|>{1,4}|[-*+]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\n]{0,300}\)")
_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+(?![a-z])|(?<=[。！？])|\n+")


def start_of(message: str) -> str:
    """The beginning of a query, as far as a search looks at it."""
    return message[:START_CHARACTERS]


def title_of(message: str) -> str:
    """The start of the first query on one line: its first sentence, without Markdown and code, cut between words."""
    head = message[:_LOOKED_AT]
    prose = _CODE.sub("\n", head)
    sentences = _sentences(prose) or _sentences(head.replace("```", "\n"))
    line = _first_of(sentences) or " ".join(itertools.islice(head.split(), 40))
    short = textwrap.shorten(line, TITLE_CHARACTERS, placeholder="…")
    return short if short != "…" else line[: TITLE_CHARACTERS - 1] + "…"


def _sentences(text: str) -> list[str]:
    plain = _LINK.sub(r"\1", _LINE_MARKS.sub("", text)).replace("**", "").replace("`", "")
    return [" ".join(part.split()) for part in _SENTENCE.split(plain) if part.strip()]


def _first_of(sentences: Sequence[str]) -> str:
    line = ""
    for sentence in sentences:
        line = f"{line} {sentence}".strip()
        if len(line) >= _SHORT:
            break
    return line.rstrip(" :;,")
