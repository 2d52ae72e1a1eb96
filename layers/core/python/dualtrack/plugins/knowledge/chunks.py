"""Documents in chunks of at most 800 characters, each with what explains it.

Text is cut at the ends of sentences and overlaps, as in courses, also from one page to the next. Tables are cut between
rows, code between lines and lists between items; each piece repeats the header, the fence or the items above it, and
the line that introduces it. Short neighbours under the same headings share a chunk. Linear in the document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import groupby
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.documents import Chunk
from dualtrack.tools.courses.chunking import SIZE, pieces, spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dualtrack.plugins.knowledge.documents import Block, ReadDocument

LONGEST_INTRODUCTION: Final = 300
"""Characters of the line before a list, a table or code; a chunk has them besides the 800."""

LONGEST_HEADER: Final = 300
"""Characters of a header that each chunk repeats; below a longer one, rows name their columns cell by cell."""

_LONGEST_PARENT, _MOST_PARENTS = 100, 4
_CELLS: Final = " | "
_FENCE: Final = re.compile(r"`{3,}+")
_INDENT: Final = re.compile(r"[ \t]*+")
_ITEM: Final = re.compile(r"[ \t]*+(?:[-*+•]|\d{1,9}[.)]|[A-Za-z][.)])[ \t]")
_ENDED: Final = tuple(".!?…:;。！？：；”\"'」』）)")
_INTRODUCES: Final = (":", "：", "︰")


def chunks_of(document: ReadDocument) -> tuple[Chunk, ...]:
    """The document's chunks in reading order; none is empty, and none spans two headings."""
    chunks: list[Chunk] = []
    for headings, section in groupby(document.blocks, lambda block: block.headings):
        begin = len(chunks)
        for is_text, run in groupby(section, lambda block: block.kind == "text"):
            if is_text:
                _append(chunks, begin, _of_text(list(run)), headings)
                continue
            for block in run:
                _append(chunks, begin, ((piece, block.page) for piece in _pieces_of(block)), headings)
    return tuple(chunks)


def _append(
    chunks: list[Chunk],
    begin: int,
    found: Iterable[tuple[str, int | None]],
    headings: tuple[str, ...],
) -> None:
    """Add the pieces of one block; the first joins the chunk before it, from ``begin`` on, if both fit."""
    introduction = ""
    for number, (piece, page) in enumerate(found):
        before = chunks[-1] if number == 0 and len(chunks) > begin else None
        if before is not None:
            introduction = _introduction(before.text)
        if before is not None and len(before.text) + len(piece) + 2 <= SIZE:
            chunks[-1] = Chunk(f"{before.text}\n\n{piece}", headings, before.page)
        else:
            chunks.append(Chunk(f"{introduction}\n{piece}" if introduction else piece, headings, page))


def _introduction(text: str) -> str:
    """The last line of what stands before, if it announces something."""
    line = text[text.rfind("\n") + 1 :].strip()
    return line if line.endswith(_INTRODUCES) and len(line) <= LONGEST_INTRODUCTION else ""


def _of_text(run: Sequence[Block]) -> Iterator[tuple[str, int | None]]:
    """The pieces of a run of paragraphs, each with the page where it begins: a sentence may go on over the page."""
    text, starts = "", []
    joined: list[str] = []
    length = 0
    for block in run:
        if joined:
            gap = "\n\n" if joined[-1].endswith(_ENDED) or block.page is None else "\n"
            joined.append(gap)
            length += len(gap)
        starts.append(length)
        joined.append(block.text)
        length += len(block.text)
    text = "".join(joined)
    for start, end in spans(text):
        piece = text[start:end]
        if stripped := piece.strip():
            at = start + len(piece) - len(piece.lstrip())
            yield stripped, run[bisect_right(starts, at) - 1].page


def _pieces_of(block: Block) -> Iterator[str]:
    if block.kind == "table":
        return _of_table(block)
    return _of_code(block.text) if block.kind == "code" else _of_list(block.text)


def _of_table(block: Block) -> Iterator[str]:
    """Rows below their header. What is too wide for that stands cell by cell, with the names of the columns."""
    header = block.header
    names = header.split("\n")[-1].split(_CELLS)
    is_short = len(header) <= LONGEST_HEADER
    above = f"{header}\n" if header and is_short else ""
    widest = SIZE - len(above)
    if header and not is_short:
        yield from pieces(header)
    rows = block.text.split("\n")
    for fits, group in groupby(rows, lambda row: is_short and len(row) <= widest):
        if fits:
            yield from (above + "\n".join(lines) for lines in _filled(group, widest))
            continue
        for row in group:
            yield from pieces(_by_names(names if header else [], row))


def _by_names(names: Sequence[str], row: str) -> str:
    cells = row.split(_CELLS)
    if len(cells) != len(names):
        return row
    return "\n".join(
        f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True) if cell
    )


def _of_code(text: str) -> Iterator[str]:
    """The whole listing if it fits; else its lines, each piece in a fence of its own."""
    if len(text) <= SIZE:
        yield text
        return
    first, _, rest = text.partition("\n")
    mark = fence[0] if (fence := _FENCE.match(first)) else "```"
    widest = SIZE - len(first) - len(mark) - 2
    lines = rest.removesuffix(mark).removesuffix("\n").split("\n")
    cut = (line[at : at + widest] for line in lines for at in range(0, max(1, len(line)), widest))
    for group in _filled(cut, widest):
        if body := "\n".join(group).strip("\n"):
            yield f"{first}\n{body}\n{mark}"


def _of_list(text: str) -> Iterator[str]:
    """Items below the items that they belong to; an item that fits a chunk is not cut."""
    above: list[tuple[int, str]] = []
    group: list[str] = []
    for item in _items(text.split("\n")):
        indent = len(_INDENT.match(item)[0])  # type: ignore[index]
        above = [(depth, parent) for depth, parent in above if depth < indent]
        parts = (item,) if len(item) <= SIZE else tuple(pieces(item))
        for part in parts:
            if group and sum(map(len, group)) + len(group) + len(part) > SIZE:
                yield "\n".join(group)
                group = []
            if not group:
                group = [parent for _, parent in above[-_MOST_PARENTS:]]
                if sum(map(len, group)) + len(group) + len(part) > SIZE:
                    group = []
            group.append(part)
        if _ITEM.match(item):
            above.append((indent, _shortened(item.partition("\n")[0])))
    if group:
        yield "\n".join(group)


def _items(lines: Sequence[str]) -> Iterator[str]:
    """Each item with the lines that go on with it."""
    item: list[str] = []
    for line in lines:
        if item and _ITEM.match(line):
            yield "\n".join(item)
            item = []
        item.append(line)
    yield "\n".join(item)


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST_PARENT else f"{line[:_LONGEST_PARENT].rsplit(' ', 1)[0]} …"


def _filled(lines: Iterable[str], widest: int) -> Iterator[list[str]]:
    """Lines in groups of at most so many characters, with their breaks."""
    group: list[str] = []
    size = 0
    for line in lines:
        if group and size + len(line) + 1 > widest:
            yield group
            group, size = [], 0
        group.append(line)
        size += len(line) + 1
    if group:
        yield group
