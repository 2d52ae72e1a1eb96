"""One width for the prose of the documents: tables, code, addresses and headings have theirs.

uv run --group test python -m tests.drivers.wrap_docs        wraps what is too long, and nothing else
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from tests.drivers.documents import DOCUMENTS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 120

_FENCE: Final = re.compile(r" *(?:```|~~~)")
_NO_PROSE: Final = re.compile(r" *(?:\||#|<|!\[|\[[^\]]*\]: )")
_TIED: Final = "\0"
_WOULD_BEGIN: Final = re.compile(r" (?=(?:[-*+#>|]+|\d+[.)])(?: |$))")
"""Before what would begin an item, a heading or a row if it began a line."""
_BEGINS: Final = re.compile(r"(?P<indent> *)(?P<mark>(?:[-*+]|\d+\.) +)?")


def paragraphs(text: str) -> Iterator[tuple[bool, list[str]]]:
    """The lines, in passages that belong together, each with whether it is prose."""
    passage: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = bool(_FENCE.match(line))
        code = fenced or fence or (line.startswith("    ") and not passage)
        prose = not (code or not line.strip() or _NO_PROSE.match(line))
        begins = bool(prose and (begin := _BEGINS.match(line)) and begin["mark"])
        if passage and (not prose or begins):
            yield True, passage
            passage = []
        if prose:
            passage.append(line)
        else:
            yield False, [line]
        fenced ^= fence
    if passage:
        yield True, passage


def too_long(passage: list[str]) -> bool:
    """Whether a line of prose could be broken and is not."""
    return any(len(line) > WIDTH and " " in line.strip()[:WIDTH] for line in passage)


def wrapped(text: str) -> str:
    """The text, with its long passages wrapped again; a passage with nothing too long stays as it was."""
    lines: list[str] = []
    for prose, passage in paragraphs(text):
        lines += _broken(passage) if prose and too_long(passage) else passage
    return "\n".join(lines) + "\n"


def _broken(passage: list[str]) -> list[str]:
    begin = _BEGINS.match(passage[0])
    first = begin[0] if begin else ""
    words = " ".join(line.strip() for line in passage)[len(first.strip()) :].strip()
    lines = textwrap.wrap(
        _WOULD_BEGIN.sub(_TIED, words),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_TIED, " ") for line in lines]


if __name__ == "__main__":
    for document in DOCUMENTS:
        old = document.read_text()
        if (new := wrapped(old)) != old:
            document.write_text(new)
            print(document.relative_to(ROOT))
