"""A CSV file that is too large for one upload, as several files that each begin with its header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PART: Final = re.compile(r"(?P<stem>.+)\.part[0-9]+(?P<ending>\.csv)", re.IGNORECASE)
_LINE: Final = re.compile(r"line ([0-9]+)")


class RowTooLong(Exception):
    """A row that fits into no part, perhaps because a quote is never closed."""


@dataclass(frozen=True, slots=True)
class CsvPart:
    """A file to upload. ``source``: the name of the file it is a part of; ``skipped``: the number of lines
    before it there; 0 for a whole file."""

    path: Path
    source: str
    skipped: int = 0

    def told(self, problem: str) -> str:
        """A problem of a row, with its line in the source."""
        return _LINE.sub(lambda match: f"line {int(match[1]) + self.skipped}", problem, count=1)


def parts_of(path: Path, folder: Path, most: int) -> list[CsvPart]:
    """The file's parts of at most ``most`` bytes, written into the folder: ``edges.part1.csv``, … Raises
    `RowTooLong`."""
    parts: list[CsvPart] = []
    with path.open("rb") as file:
        rows = _records(file, most)
        header = next(rows)
        skipped, lines, piece = 0, header.count(b"\n"), [header]
        size = len(header)
        for row in rows:
            if size + len(row) > most:
                if len(piece) == 1:
                    raise RowTooLong
                parts.append(_written(path, folder, len(parts) + 1, piece, skipped))
                skipped, piece, size = lines - header.count(b"\n"), [header], len(header)
                if size + len(row) > most:
                    raise RowTooLong
            piece.append(row)
            size += len(row)
            lines += row.count(b"\n")
        parts.append(_written(path, folder, len(parts) + 1, piece, skipped))
    return parts


def _records(file: BinaryIO, most: int) -> Iterator[bytes]:
    """The file's rows, unchanged; one with quotes may have several lines."""
    row, is_open = bytearray(), False
    while line := file.readline(most + 1):
        row += line
        if len(row) > most:
            raise RowTooLong
        is_open ^= line.count(b'"') % 2 == 1
        if not is_open:
            yield bytes(row)
            row.clear()
    if row:
        yield bytes(row)


def _written(path: Path, folder: Path, number: int, rows: Sequence[bytes], skipped: int) -> CsvPart:
    part = folder / f"{path.stem}.part{number}{path.suffix}"
    with part.open("wb") as file:
        file.writelines(rows)
    return CsvPart(part, path.name, skipped)


def other_parts(titles: Sequence[str], parts: Sequence[CsvPart]) -> list[str]:
    """Earlier loaded parts of these sources that the new ones would not replace."""
    names, sources = {part.path.name for part in parts}, {part.source for part in parts}
    return [title for title in titles if title not in names and _source_of(title) in sources]


def _source_of(title: str) -> str:
    match = _PART.fullmatch(title)
    return match["stem"] + match["ending"] if match else title
