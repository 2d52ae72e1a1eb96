"""Long Markdown in pieces, none of it lost: at its headings, else between paragraphs, else between lines. Pure, and
linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADING: Final = re.compile(r"^(#{1,6})\s++(.+)$")

FenceAfter = Callable[[str, str], str]
"""The open fence after a line, from that before it."""


def cut(text: str, size: int, fence_after: FenceAfter) -> Iterator[tuple[tuple[str, ...], str]]:
    """The headings above each piece, and the piece, of about ``size`` characters at most.

    A heading begins a piece and is not in it. A fence that a piece would cut is closed, and opened again in the next.
    """
    path: list[tuple[int, str]] = []
    piece: list[str] = []
    length, fence, opening = 0, "", ""

    def taken() -> tuple[tuple[str, ...], str]:
        return tuple(title for _, title in path), "\n".join([*piece, *([fence] if fence else [])]).strip("\n")

    for line in _lines(text, size):
        heading = None if fence else _HEADING.match(line)
        after = fence_after(fence, line)
        is_gap = not fence and (after or not line.strip())
        is_full = length + len(line) > size or (is_gap and length > size // 2)
        if piece and (heading or is_full):
            if any(kept.strip() and kept != opening for kept in piece):
                yield taken()
            piece, length = ([opening], len(opening)) if fence else ([], 0)
        if heading:
            level = len(heading[1])
            path = [above for above in path if above[0] < level]
            path.append((level, heading[2].rstrip().rstrip("#").rstrip()))
            continue
        opening = line if after and not fence else opening
        fence = after
        piece.append(line)
        length += len(line) + 1
    if any(kept.strip() for kept in piece):
        yield taken()


def _lines(text: str, size: int) -> Iterator[str]:
    for line in text.splitlines():
        yield from _parts(line, size) if len(line) > size else (line,)


def _parts(line: str, size: int) -> Sequence[str]:
    """A line that is too long, at blanks where it has some."""
    parts = []
    start = 0
    while start < len(line):
        blank = line.rfind(" ", start + size // 2, start + size)
        end = blank + 1 if blank >= 0 and start + size < len(line) else start + size
        parts.append(line[start:end])
        start = end
    return parts
