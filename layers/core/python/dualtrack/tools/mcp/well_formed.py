"""A body as well-formed JSON text, piece by piece: what is no Unicode becomes U+FFFD.

A parser that is strict refuses a whole message for half of a surrogate pair (``"\\ud83d"``, which JavaScript writes
where a text is cut within an emoji) or a byte that is not UTF-8, and with it the result of a call that was made.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Final

_HIGH: Final = r"u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = r"u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|({_HIGH}|{_LOW})|.)", re.DOTALL)
"""An escape of JSON; the group is half of a pair without its other half."""
_BEGUN: Final = re.compile(rf"\\(?:u[0-9a-fA-F]{{0,3}}|{_HIGH}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?)?")
"""An escape, or a pair of them, that the next piece may continue."""
_LONGEST: Final = 11
"""Characters of what `_BEGUN` matches."""


@dataclass(slots=True)
class WellFormed:
    """The text so far; each piece takes linear time."""

    _bytes: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _held: str = ""

    def take(self, piece: bytes) -> bytes:
        """What is certain by now."""
        text = self._held + self._bytes.decode(piece)
        end = _certain(text)
        self._held = text[end:]
        return _mended(text[:end])

    def end(self) -> bytes:
        """What was still held back."""
        return _mended(self._held + self._bytes.decode(b"", final=True))


def _mended(text: str) -> bytes:
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text).encode()


def _certain(text: str) -> int:
    """Where an escape begins that the next piece may continue; the text's length if none does."""
    for start in range(max(0, len(text) - _LONGEST), len(text)):
        if text[start] != "\\" or not _BEGUN.fullmatch(text, start):
            continue
        before = len(text[:start]) - len(text[:start].rstrip("\\"))
        if before % 2 == 0:
            return start
    return len(text)
