"""CSV and TSV: rows under their head row, whatever divides the cells."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.blocks import MAX_TEXT, TooLong
from dualtrack.plugins.knowledge.reading.encodings import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_DIVIDERS: Final = (",", ";", "\t", "|")
_SAMPLE: Final = 200
_LONGEST_CELL: Final = 1_000_000


def read_csv(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Adds one table. It has no metadata."""
    text = decoded(data).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if len(text) > 2 * MAX_TEXT:  # its marks are not half of it
        raise TooLong
    with _long_cells():
        divider, text = _divider_of(text)
        try:
            rows = list(csv.reader(io.StringIO(text), delimiter=divider))
        except csv.Error:  # a quote that never ends
            rows = [line.split(divider) for line in text.split("\n")]
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    widest = max(map(len, filled), default=0)
    while filled and len(filled[0]) < min(2, widest):  # what is said above the table
        blocks.text(filled.pop(0)[0])
    blocks.table(filled, heads=1)
    return ()


@contextmanager
def _long_cells() -> Iterator[None]:
    """The limit is the whole process's: whoever else reads CSV in it has their own."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _divider_of(text: str) -> tuple[str, str]:
    """The sign that gives the most rows one number of cells, above one; Excel may name it in a line of its own."""
    if text[:4].lower() == "sep=" and len(text) > 5 and text[5] == "\n":
        return text[4], text[6:]
    sample = "\n".join(text[:200_000].split("\n")[:_SAMPLE])
    return max(_DIVIDERS, key=lambda divider: _agreement(sample, divider)), text


def _agreement(sample: str, divider: str) -> tuple[int, int]:
    try:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=divider) if row]
    except csv.Error:
        return 0, 0
    wide = [width for width in widths if width > 1]
    common = max(set(wide), key=lambda width: (wide.count(width), width), default=0)
    return wide.count(common) if common else 0, common
