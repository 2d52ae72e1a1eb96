"""Text that is not ours: forged ids, cuts, estimates.

Only dualtrack writes id lines (CONTRACT 6). ``[ID:`` at the start of a line in user text, documents,
tool results or summaries is neutralised before it is sent; id lines that the model copies into its
answer are removed before anybody sees them.
"""

from __future__ import annotations

import math
import re
from typing import Final

# Everything that a reader or a model may take for the start of a line, and what hides before it.
_LINE_START: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE: Final = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_FORGED: Final = re.compile(
    rf"(?:^|(?<=[{_LINE_START}]))([\s>*#`_{_INVISIBLE}-]*)\[([\s{_INVISIBLE}]*)ID([\s{_INVISIBLE}]*):",
    re.IGNORECASE,
)
_ECHO: Final = re.compile(r"[ \t]*\[ID:[^\]\n]{0,120}\][ \t]*\n?")
_ECHO_LIMIT: Final = 160


def neutralise(text: str) -> str:
    """``[ID:`` at the start of a line becomes ``[ ID:``, so that it is read as text and not as an id."""
    if "[" not in text:
        return text
    return _FORGED.sub(lambda match: f"{match[1]}[ ID:", text)


def strip_echoes(text: str) -> str:
    """Without the id lines that a model copied to the start of its lines."""
    stripper = EchoStripper()
    return stripper.feed(text) + stripper.end()


class EchoStripper:
    """`strip_echoes` for text that arrives in pieces: any cut gives the same result.

    Only what may still become an id line is held back: at most 160 characters at the start of a line.
    """

    def __init__(self) -> None:
        self._held = ""
        self._at_start = True

    def feed(self, piece: str) -> str:
        """Text that is certain by now."""
        self._held += piece
        return self._drain(final=False)

    def end(self) -> str:
        """What was held back."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> str:
        out = []
        while self._held:
            if self._at_start:
                match = _ECHO.match(self._held)
                if match and (final or match.end() < len(self._held) or match[0].endswith("\n")):
                    self._at_start = True
                    self._held = self._held[match.end() :]
                    continue
                if not final and (match or _may_become_echo(self._held)):
                    break
            newline = self._held.find("\n")
            end = len(self._held) if newline < 0 else newline + 1
            out.append(self._held[:end])
            self._at_start = newline >= 0
            self._held = self._held[end:]
        return "".join(out)


def _may_become_echo(text: str) -> bool:
    rest = text.lstrip(" \t")
    if len(text) > _ECHO_LIMIT or "\n" in text:
        return False
    marker = "[ID:"
    return marker.startswith(rest) if len(rest) < len(marker) else rest.startswith(marker) and "]" not in rest


def cut(text: str, limit: int, note: str) -> str:
    """At most ``limit`` characters of the text, then the note; the text itself if it fits."""
    return text if len(text) <= limit else text[:limit] + note


def preview(text: str, limit: int = 500) -> str:
    """The start of a text for events, at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clean(text: str) -> str:
    """Without lone surrogates, which neither DynamoDB nor the model's API can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def estimate_tokens(text: str) -> int:
    """A plain estimate, the same for everything that is compared: four characters a token."""
    return math.ceil(len(text) / 4)
