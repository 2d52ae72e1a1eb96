"""Text without marks: paragraphs, and lines that are underlined as headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.encodings import decoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_UNDERLINE: Final = re.compile(r"([=\-~^\"'#*+])\1{2,}\s*+\Z")
_EMPTY: Final = re.compile(r"\n[^\S\n]*+\n")


def read_txt(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Paragraphs are divided by empty lines. A line over one of ``====`` of its length is a heading; the first kind of
    line that is used so is of the highest level, as in reStructuredText. It has no metadata."""
    text = decoded(data)
    levels: dict[str, int] = {}
    for paragraph in _EMPTY.split(text.replace("\r\n", "\n").replace("\r", "\n")):
        lines = paragraph.strip("\n").split("\n")
        kept: list[str] = []
        for line in lines:
            mark = _UNDERLINE.match(line)
            if mark and kept and _underlines(line, kept[-1]):
                title = kept.pop()
                if kept and _UNDERLINE.match(kept[-1]):
                    kept.pop()
                if kept:
                    blocks.text("\n".join(kept))
                blocks.heading(levels.setdefault(mark[1], len(levels) + 1), title)
                kept = []
            else:
                kept.append(line)
        blocks.text("\n".join(kept))
    return ()


def _underlines(line: str, title: str) -> bool:
    wide = len(title.strip())
    return 2 < wide <= 200 and abs(len(line.strip()) - wide) <= max(2, wide) and title[:1].strip() != ""
