"""What a reader puts together: text by text under the headings that are open, and what it leaves out."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.documents import Block
from dualtrack.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.plugins.knowledge.documents import BlockKind

MAX_TEXT: Final = 20_000_000
"""Maximum characters of a document's text: 10,000 pages."""

MAX_HEADING: Final = 300
"""Characters; what is longer is no heading, but text."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufeff\ufffe\uffff\xad]")
_MANY_BREAKS: Final = re.compile(r"\n{3,}+")
_FENCE: Final = re.compile(r"`{3,}")
_HARD_BLANKS: Final = str.maketrans({"\xa0": " ", "\u202f": " ", "\u2007": " ", "\v": "\n", "\f": "\n"})


class TooLong(Exception):
    """The document has more text than is taken."""


class Blocks:
    """Collects blocks in reading order. Text that follows text under the same headings becomes one block with it."""

    def __init__(self, longest: int = MAX_TEXT) -> None:
        self.left_out: Counter[str] = Counter()
        self.first_heading = ""
        self._blocks: list[Block] = []
        self._open: list[tuple[int, str]] = []
        self._bare: Block | None = None
        self._paragraphs: list[str] = []
        self._page: int | None = None
        self._left = longest

    def heading(self, level: int, text: str, page: int | None = None) -> None:
        """Close the headings of this level and below, and open this one."""
        title = one_line(tidy(text))
        if not title:
            return
        if len(title) > MAX_HEADING:
            self.text(title, page)
            return
        self._flush()
        self._keep_bare(level)
        self._open = [(depth, name) for depth, name in self._open if depth < level] + [(level, title)]
        self.first_heading = self.first_heading or title
        self._count(title)
        self._bare = Block(title, "text", self._path(), page)

    def text(self, text: str, page: int | None = None) -> None:
        """A paragraph."""
        text = tidy(text)
        if not text:
            return
        if page != self._page:
            self._flush()
            self._page = page
        self._count(text)
        self._paragraphs.append(text)

    def table(self, rows: Sequence[Sequence[str]], heads: int = 1, page: int | None = None) -> None:
        """Rows of cells, of which the first ``heads`` are its header. A table of one column is text."""
        kept = [[one_line(tidy(cell)) for cell in row] for row in rows]
        filled = _without_empty_columns([row for row in kept if any(row)])
        if not filled:
            return
        heads = sum(any(row) for row in kept[:heads])
        if max(map(len, filled)) == 1:
            for row in filled:
                self.text(row[0], page)
            return
        if heads == len(filled):
            heads = 0
        lines = [" | ".join(row) for row in filled]
        self._add("\n".join(lines[heads:]), "table", page, "\n".join(lines[:heads]))

    def code(self, text: str, language: str = "", page: int | None = None) -> None:
        """A listing, kept as it is."""
        text = _CONTROLS.sub("", clean(text)).strip("\n")
        if not text.strip():
            return
        mark = "`" * max(3, 1 + max(map(len, _FENCE.findall(text)), default=0))
        self._add(f"{mark}{one_line(language)[:40]}\n{text}\n{mark}", "code", page)

    def items(self, lines: Iterable[str], page: int | None = None) -> None:
        """A list, its items with their marks and indentation."""
        cleaned = (_CONTROLS.sub("", clean(line)).translate(_HARD_BLANKS).rstrip() for line in lines)
        self._add("\n".join(line for line in cleaned if line), "list", page)

    def leave_out(self, what: str, number: int = 1) -> None:
        """Say that there was something that has no text here: ``pictures``."""
        if number:
            self.left_out[what] += number

    def finished(self) -> tuple[Block, ...]:
        """The blocks; a heading without anything below it is text."""
        self._flush()
        self._keep_bare(0)
        return tuple(self._blocks)

    def _add(self, text: str, kind: BlockKind, page: int | None, header: str = "") -> None:
        if not text.strip():
            return
        self._flush()
        self._bare = None
        self._count(text + header)
        self._blocks.append(Block(text, kind, self._path(), page, header))

    def _flush(self) -> None:
        if self._paragraphs:
            self._bare = None
            self._blocks.append(Block("\n\n".join(self._paragraphs), "text", self._path(), self._page))
            self._paragraphs = []

    def _keep_bare(self, level: int) -> None:
        """The path of what comes next does not name a heading that it closes."""
        if self._bare is not None and level <= self._open[-1][0]:
            self._blocks.append(self._bare)
        self._bare = None

    def _path(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._open)

    def _count(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise TooLong


def _without_empty_columns(rows: list[list[str]]) -> list[list[str]]:
    """Each row as wide as the widest, which only has columns that some row fills."""
    used = sorted({at for row in rows for at, cell in enumerate(row) if cell})
    return [[row[at] if at < len(row) else "" for at in used] for row in rows]


def tidy(text: str) -> str:
    """Without controls and hard blanks; at most one empty line in a row."""
    plain = _CONTROLS.sub("", clean(text)).translate(_HARD_BLANKS).replace("\r\n", "\n").replace("\r", "\n")
    return _MANY_BREAKS.sub("\n\n", "\n".join(line.rstrip() for line in plain.split("\n"))).strip()
