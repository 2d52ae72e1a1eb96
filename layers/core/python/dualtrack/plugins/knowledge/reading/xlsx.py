"""Spreadsheets: each sheet a heading, each block of filled rows a table with its head row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.blocks import MAX_TEXT, TooLong
from dualtrack.plugins.knowledge.reading.drawings import read_drawing
from dualtrack.plugins.knowledge.reading.office import Package, attribute, child, children, local, number
from dualtrack.plugins.knowledge.reading.xlsx_values import GENERAL, formats_of, shown, string_of, unescaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.archives import Archive
    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_REFERENCE: Final = re.compile(r"([A-Z]{1,3})([0-9]{1,7})\Z")
_COLUMNS: Final = 16_384
_LONGEST_LABEL: Final = 100
"""Characters; a longer text of a merged cell stands once."""

_NUMBER: Final = re.compile(r"[-+]?[\d.,\s:%–-]+\Z|[-+]?[\d.]+ \S{1,4}\Z")
_MOST_MERGED: Final = 100_000

_COMMENTS: Final = {"comments": "comment", "threadedComment": "threadedComment"}
"""The elements to count, by the kind of part."""

_Row = dict[int, str]


def read_xlsx(archive: Archive, blocks: Blocks) -> Sequence[str]:
    """Adds the visible sheets' blocks. Returns the title in its properties. Raises `DocumentRefused`."""
    package = Package(archive, blocks)
    name, root = package.main()
    _Workbook(package, name, root, blocks).read(root)
    return (package.title(),)


class _Workbook:
    def __init__(self, package: Package, name: str, root: etree._Element, blocks: Blocks) -> None:
        self._package, self._blocks = package, blocks
        self._relations = package.relations(name)
        self._strings: list[str] = []
        self._left = MAX_TEXT
        for target in (
            to.target for to in self._relations.values() if to.kind == "sharedStrings" and to.target
        ):
            self._strings += [string_of(item) for item in package.elements(target, "si")]
        self._formats = formats_of(next(package.of_kind(name, "styles"), None))
        self._since_1904 = attribute(child(root, "workbookPr"), "date1904") in {"1", "true"}

    def read(self, root: etree._Element) -> None:
        """Sheet by sheet."""
        for sheets in (item for item in children(root) if local(item) == "sheets"):
            for sheet in children(sheets):
                relation = self._relations.get(attribute(sheet, "id"))
                if attribute(sheet, "state") in {"hidden", "veryHidden"}:
                    self._blocks.leave_out("hidden sheets")
                elif relation is not None and relation.target:
                    self._blocks.heading(1, attribute(sheet, "name"))
                    if relation.kind == "chartsheet":
                        self._blocks.leave_out("charts")
                    else:
                        self._sheet(relation.target)

    def _sheet(self, name: str) -> None:
        rows: dict[int, _Row] = {}
        merged: list[str] = []
        last = 0
        for element in self._package.elements(name, "row", "mergeCell", "headerFooter"):
            kind = local(element)
            if kind == "row":
                last = number(attribute(element, "r"), last + 1)
                if cells := self._cells(element):
                    rows[last] = {**rows.get(last, {}), **cells}
            elif kind == "mergeCell" and len(merged) < _MOST_MERGED:
                merged.append(attribute(element, "ref"))
            elif kind == "headerFooter":
                self._blocks.leave_out("headers and footers", bool("".join(element.itertext()).strip()))
        for area in merged:
            _fill_down(rows, area)
        for region in _regions(rows):
            self._region(region)
        self._attached(name)

    def _attached(self, name: str) -> None:
        """What lies on a sheet."""
        for relation in self._package.relations(name).values():
            if relation.kind == "drawing" and (drawing := self._package.xml(relation.target)) is not None:
                read_drawing(self._package, relation.target, drawing, self._blocks)
            elif relation.kind in _COMMENTS and (found := self._package.xml(relation.target)) is not None:
                number_of = sum(local(item) == _COMMENTS[relation.kind] for item in found.iter())
                self._blocks.leave_out("comments", number_of)

    def _cells(self, row: etree._Element) -> _Row:
        cells: _Row = {}
        at = 0
        for cell in row:
            if local(cell) != "c":
                continue
            place = _REFERENCE.match(attribute(cell, "r"))
            at = _column(place[1]) if place else at + 1
            if (text := self._value(cell).strip()) and at <= _COLUMNS:
                cells[at] = text
                self._left -= len(text)
                if self._left < 0:
                    raise TooLong
        return cells

    def _value(self, cell: etree._Element) -> str:  # noqa: PLR0911 - one for each kind of value
        kind = attribute(cell, "t", "n")
        stored = child(cell, "v")
        text = (stored.text or "") if stored is not None else ""
        if kind == "s":
            at = number(text.strip(), len(self._strings))
            return self._strings[at] if at < len(self._strings) else ""
        if kind == "inlineStr":
            inline = child(cell, "is")
            return string_of(inline) if inline is not None else ""
        if not text and child(cell, "f") is not None:
            self._blocks.leave_out("formulas without a stored value")
            return ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE" if text else ""
        if kind == "n" and text:
            style = number(attribute(cell, "s"))
            form = self._formats[style] if style < len(self._formats) else GENERAL
            return shown(text, form, since_1904=self._since_1904)
        if kind == "d":
            return text.removesuffix("T00:00:00").replace("T", " ")
        return unescaped(text)

    def _region(self, rows: Sequence[_Row]) -> None:
        """Rows above a table that have one cell are text."""
        first = next((at for at, row in enumerate(rows) if len(row) > 1), len(rows))
        for row in rows[:first]:
            for text in row.values():
                self._blocks.text(text)
        table = rows[first:]
        columns = sorted({column for row in table for column in row})
        lines = [[row.get(column, "") for column in columns] for row in table]
        self._blocks.table(lines, heads=1 if len(lines) > 1 and _names_columns(table[0]) else 0)


def _names_columns(row: _Row) -> bool:
    return sum(bool(_NUMBER.match(text[:60])) for text in row.values()) * 2 <= len(row)


def _regions(rows: dict[int, _Row]) -> Iterator[list[_Row]]:
    """Runs of rows without an empty one between them."""
    region: list[_Row] = []
    last = 0
    for at in sorted(rows):
        if region and at > last + 1:
            yield region
            region = []
        region.append(rows[at])
        last = at
    if region:
        yield region


def _fill_down(rows: dict[int, _Row], area: str) -> None:
    """A label that spans rows is in each of them that has something."""
    begin, _, end = area.partition(":")
    first, last = _REFERENCE.match(begin), _REFERENCE.match(end)
    if not first or not last:
        return
    column, top = _column(first[1]), int(first[2])
    label = rows.get(top, {}).get(column, "")
    if label and len(label) <= _LONGEST_LABEL:
        for at in range(top + 1, min(int(last[2]), top + 1_000) + 1):
            if at in rows:
                rows[at].setdefault(column, label)


def _column(letters: str) -> int:
    value = 0
    for letter in letters:
        value = value * 26 + ord(letter) - 64
    return value
