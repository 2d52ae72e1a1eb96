"""Untrusted text: forged ids, truncation, estimates of tokens.

Only dualtrack writes id lines (CONTRACT 6). Anything that looks like the start of one in user text, documents,
tool results or summaries is neutralised before it is sent. Id lines that the model copies into its answer
are removed before a user sees them.

The text may be hostile and long, so every function here takes linear time: patterns use possessive quantifiers
(``*+``), and no run of characters is scanned from more than one starting point.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE_BREAKS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Every character that a reader or a model may take for a line break; the same as in `str.splitlines`."""

# Characters without a glyph of their own: controls, all format characters (category Cf), combining marks,
# variation selectors, fillers, and the rest of Unicode's Default_Ignorable_Code_Point.
_FILLERS: Final = "\u115f\u1160\u3164\uffa0"
INVISIBLE: Final = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u0300-\u036f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u20d0-\u20ff\u2800\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\ufff0-\ufffb\U000110bd\U000110cd"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
) + _FILLERS
_UP_TO_A_LETTER: Final = re.compile(r"(?s:.){1,200}[\W\u1160-\u11ff\uff9e\uff9f]{0,100}")
"""A piece of a text up to the beginning of a letter. Normal forms sort the marks in a row, in time quadratic in their
number: a megabyte of them takes hours."""

_GAP: Final = rf"[\s{INVISIBLE}]*+"

# The brackets of the marker, with their compatibility equivalents in Unicode (NFKC) and lookalikes.
_OPEN: Final = (
    "\\[\u2045\u2329\u2772\u27e6\u27e8\u27ea\u27ec\u298b\u298d\u298f\u2997\u2e22\u2e24\u2e26\u2e55\u2e57"
    "\u3008\u300a\u300c\u300e\u3010\u3014\u3016\u3018\u301a\ufe17\ufe39\ufe3b\ufe3d\ufe3f\ufe41\ufe43\ufe47"
    "\ufe5d\uff3b\uff62"
)
_LOOKALIKES: Final[Mapping[str, str]] = json.loads(
    Path(__file__).with_name("lookalikes.json").read_text(encoding="utf-8")
)
"""All characters that look like I, D and a colon (tests/drivers/lookalikes.py)."""
_ID_SIGN: Final = "\U0001f194"


def _any_of(letter: str) -> str:
    return f"[{re.escape(_LOOKALIKES[letter])}]"


_ID: Final = rf"(?:{_GAP}{_any_of('I')}{_GAP}{_any_of('D')}|{_GAP}{_ID_SIGN}){_GAP}{_any_of(':')}"

# What may come before the marker at the start of a line: anything but letters and digits, except the number of a
# list item. (So quote and list marks, indentation, brackets, and invisible characters.)
_SIGNS: Final = rf"[^\w{LINE_BREAKS}{_OPEN}]++|[_{_FILLERS}]++|[{_OPEN}](?!{_ID})"
_NUMBER: Final = r"(?:\d{1,9}+|[A-Za-z])[.):]"
_FORGED: Final = re.compile(rf"(?<![^{LINE_BREAKS}])((?:{_SIGNS}|{_NUMBER})*+)[{_OPEN}]{_ID}")

# An id line as we write it, which is what a model copies. Its length is bounded, so that little is held back.
_BLANKS: Final = r"[ \t]{0,32}+"
_HIDDEN: Final = rf"[{INVISIBLE}]{{0,4}}+"
_INSIDE: Final = rf"[^\]{LINE_BREAKS}]{{0,120}}+"
_ECHO: Final = re.compile(
    rf"{_BLANKS}{_HIDDEN}\[{_HIDDEN}I{_HIDDEN}D{_HIDDEN}:{_INSIDE}\]{_BLANKS}(?:\r\n|[{LINE_BREAKS}])?+"
)
_BEGUN_ECHO: Final = re.compile(
    rf"{_BLANKS}{_HIDDEN}(?:\[{_HIDDEN}(?:I{_HIDDEN}(?:D{_HIDDEN}(?::{_INSIDE})?+)?+)?+)?+\Z"
)
_LINE_TO_LOOK_AT: Final = re.compile(rf"[{LINE_BREAKS}](?={_BLANKS}{_HIDDEN}(?:\[|\Z))")


def neutralise(text: str) -> str:
    """Replace what looks like the start of an id line by ``[ ID:``, so that it is text and not an id."""
    # a function, since for a template `re` hashes the whole pattern in each call
    return _FORGED.sub(lambda forged: f"{forged[1]}[ ID:", text)


def one_line(text: str) -> str:
    """The text on one line: each run of white space becomes a single space."""
    return " ".join(text.split())


def strip_echoes(text: str) -> str:
    """The text without the id lines that a model copied to the start of its lines."""
    stripper = EchoStripper()
    return stripper.feed(text) + stripper.end()


class EchoStripper:
    """`strip_echoes` for text that arrives in pieces; the result does not depend on where it is split.

    Only what may still become an id line is held back: about 200 characters at the start of a line.
    """

    def __init__(self) -> None:
        self._held = ""
        self._at_start = True

    def feed(self, piece: str) -> str:
        """The text that is certain by now."""
        return self._drain(self._held + piece, final=False)

    def end(self) -> str:
        """The text that was still held back."""
        return self._drain(self._held, final=True)

    def _drain(self, text: str, *, final: bool) -> str:
        out, position = [], 0
        while position < len(text):
            if self._at_start:
                echo = _ECHO.match(text, position)
                if echo and (final or _is_certain(echo)):
                    position = echo.end()
                    continue
                if not final and (echo or _BEGUN_ECHO.match(text, position)):
                    break
            line_break = _LINE_TO_LOOK_AT.search(text, position)
            self._at_start = line_break is not None
            end = line_break.end() if line_break else len(text)
            out.append(text[position:end])
            position = end
        self._held = text[position:]
        return "".join(out)


def _is_certain(echo: re.Match[str]) -> bool:
    """Whether the match is complete: more text could not extend it. A carriage return may be half of a line break."""
    return echo.end() < len(echo.string) or (echo[0][-1] in LINE_BREAKS and echo[0][-1] != "\r")


def cut(text: str, limit: int, note: str) -> str:
    """At most ``limit`` characters of the text, then the note; the text itself if it fits."""
    return text if len(text) <= limit else text[:limit] + note


def preview(text: str, limit: int = 500) -> str:
    """The start of a text for events, at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clean(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which neither DynamoDB nor the model's API accepts."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def readable(text: str) -> str:
    """`clean`, and without NUL."""
    return clean(text).replace("\0", "")


_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def in_form(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """The text in a normal form of Unicode; more than a hundred marks in a row are sorted in pieces."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize(form, part) for part in _UP_TO_A_LETTER.findall(text))


def estimate_tokens(text: str) -> int:
    """A rough estimate, for comparisons only: four characters a token."""
    return tokens_of(len(text))


def tokens_of(characters: int) -> int:
    """The same from the length of a text."""
    return math.ceil(characters / 4)


_NOT_LATIN: Final = re.compile(r"[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f]")
_LATIN, _OTHER, _TOKEN = 13, 40, 40
"""In fortieths of a token: a Latin character (1.3 / 4 token), a character of another script (1 token), a token."""


def cautious_tokens(text: str) -> int:
    """An estimate for budgets, rather too high than too low (CONTRACT 6): 30 % more than four characters a token;
    each character of a script other than Latin counts as a token."""
    return -(-_weight(text) // _TOKEN)


def within_tokens(text: str, tokens: int) -> int:
    """The length of the longest prefix that `cautious_tokens` estimates at no more than ``tokens``.

    Each step looks at half as many characters as the one before, so all steps together take linear time.
    """
    position, left = 0, max(tokens, 0) * _TOKEN
    step = 1 << len(text).bit_length()
    while step:
        piece = text[position : position + step]
        weight = _weight(piece)
        if piece and weight <= left:
            position += len(piece)
            left -= weight
        step //= 2
    return position


def _weight(text: str) -> int:
    others = 0 if text.isascii() else len(text) - len(_NOT_LATIN.sub("", text))
    return others * _OTHER + (len(text) - others) * _LATIN


def folded_name(name: str) -> str:
    """What names that count as one have in common: compatibility, case and blanks do not matter."""
    return one_line(in_form("NFKC", in_form("NFKC", name).casefold())).strip()
