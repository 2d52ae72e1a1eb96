"""DOCX as Word shows it with all changes accepted: what was inserted or moved in is there, what was deleted is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.docx_numbers import Numbers
from dualtrack.plugins.knowledge.reading.docx_runs import Runs
from dualtrack.plugins.knowledge.reading.docx_styles import Styles
from dualtrack.plugins.knowledge.reading.office import (
    Package,
    attribute,
    child,
    children,
    is_on,
    local,
    number,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.archives import Archive
    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_LONGEST_CELL: Final = 1_000
"""Characters; a table with a longer cell only arranges text."""

_DEEPEST: Final = 12
"""Tables in tables in tables; what is deeper is text."""

_GONE: Final = frozenset({"del", "moveFrom"})
_WRAPPERS: Final = frozenset(
    {"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "subDoc", "body", "docPartBody"}
)


def read_docx(archive: Archive, blocks: Blocks) -> Sequence[str]:
    """Adds the document's blocks. Returns the title in its properties. Raises `DocumentRefused`."""
    package = Package(archive, blocks)
    name, root = package.main()
    _Document(package, name, blocks).read(root)
    for kind in ("header", "footer"):
        parts = package.of_kind(name, kind)
        blocks.leave_out("headers and footers", sum(bool(text_of(part).strip()) for part in parts))
    return (package.title(),)


class _Document:
    def __init__(self, package: Package, name: str, blocks: Blocks) -> None:
        self._blocks = blocks
        self._styles = Styles(next(package.of_kind(name, "styles"), None))
        self._numbers = Numbers(next(package.of_kind(name, "numbering"), None))
        self._runs = Runs(package, name, blocks)
        self._items: list[str] = []
        self._code: list[str] = []
        self._begun = ""
        """The text of a paragraph whose end was deleted: the next one goes on with it."""

    def read(self, root: etree._Element) -> None:
        for body in children(root):
            if local(body) == "body":
                self._walk(body, 0)
        self._close()

    def _walk(self, container: etree._Element, depth: int) -> None:
        for element in children(container):
            name = local(element)
            if name == "p":
                self._paragraph(element)
            elif name == "tbl":
                self._table(element, depth)
            elif name in _WRAPPERS:
                self._walk(element, depth)
            elif name == "altChunk":
                self._blocks.leave_out("embedded documents")
            elif name == "oMathPara":
                self._close()
                self._blocks.text(self._runs.text(element))

    def _paragraph(self, element: etree._Element) -> None:
        properties = child(element, "pPr")
        text = self._begun + self._runs.text(element)
        self._begun = ""
        boxes = self._runs.take_boxes()
        if any(local(mark) in _GONE for mark in children_of(child(properties, "rPr"))):
            self._begun = text
        else:
            self._add(properties, text)
        for box in boxes:
            self._close()
            self._walk(box, 0)

    def _add(self, properties: etree._Element | None, text: str) -> None:
        shape = self._styles.shape(properties)
        if shape.is_code:
            self._close(code=True)
            self._code.append(text)
            return
        if not text.strip():
            return
        label = self._numbers.label(shape.list_id, shape.level) if shape.list_id else ""
        if shape.heading is not None:
            self._close()
            self._blocks.heading(shape.heading, f"{label} {text}" if label not in {"", "-"} else text)
        elif label:
            self._close(items=True)
            self._items += _item(label, shape.level, text)
        else:
            self._close()
            self._blocks.text(text)

    def _close(self, *, items: bool = False, code: bool = False) -> None:
        """End the list and the listing that are open, but for the kind that goes on."""
        if self._items and not items:
            self._blocks.items(self._items)
            self._items = []
        if self._code and not code:
            self._blocks.code("\n".join(self._code))
            self._code = []

    def _table(self, table: etree._Element, depth: int) -> None:
        self._close()
        rows = list(_rows(table))
        cells = [list(_cells(row)) for row in rows]
        if max(map(len, cells), default=0) == 1 and depth < _DEEPEST:
            for row in cells:
                for cell in row:
                    self._walk(cell, depth + 1)
            self._close()
            return
        mark = len(self._runs.boxes)
        texts = self._texts(cells, depth)
        if max((len(text) for row in texts for text in row), default=0) > _LONGEST_CELL and depth < _DEEPEST:
            del self._runs.boxes[mark:]
            for row in cells:
                for cell in row:
                    self._walk(cell, depth + 1)
            self._close()
            return
        heads = 0
        while heads < len(rows) and is_on(child(rows[heads], "trPr", "tblHeader")):
            heads += 1
        self._blocks.table(texts, max(1, heads))
        for box in self._runs.take_boxes():
            self._walk(box, depth)

    def _texts(self, cells: Sequence[Sequence[etree._Element]], depth: int) -> list[list[str]]:
        """A cell that spans rows is in each of them; one that spans columns leaves the others empty."""
        texts: list[list[str]] = []
        for row in cells:
            line: list[str] = []
            for cell in row:
                text = self._cell(cell, depth)
                merged = child(cell, "tcPr", "vMerge")
                if merged is not None and attribute(merged, "val", "continue") == "continue" and not text:
                    above = texts[-1] if texts else []
                    text = above[len(line)] if len(line) < len(above) else ""
                span = min(number(attribute(child(cell, "tcPr", "gridSpan"), "val"), 1), 63)
                line += [text, *[""] * (span - 1)]
            texts.append(line)
        return texts

    def _cell(self, container: etree._Element, depth: int) -> str:
        """A cell's text on a line: a table within has its rows divided by ``/``."""
        parts = []
        for element in children(container):
            name = local(element)
            if name == "p":
                properties = child(element, "pPr")
                shape = self._styles.shape(properties)
                label = self._numbers.label(shape.list_id, shape.level) if shape.list_id else ""
                parts.append(f"{label} {self._runs.text(element)}".strip())
            elif name == "tbl":
                rows = ([self._cell(cell, depth + 1) for cell in _cells(row)] for row in _rows(element))
                parts.append(" / ".join("; ".join(filter(None, row)) for row in rows))
            elif name in _WRAPPERS:
                parts.append(self._cell(element, depth))
        return "\n".join(filter(None, parts))


def children_of(element: etree._Element | None) -> Iterator[etree._Element]:
    return children(element) if element is not None else iter(())


def _item(label: str, level: int, text: str) -> list[str]:
    indent = "  " * level
    first, *others = text.strip().split("\n")
    return [f"{indent}{label} {first}", *(f"{indent}  {line}" for line in others)]


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    """Its rows but the deleted ones."""
    for element in children(table):
        if local(element) == "tr":
            if not any(local(mark) in _GONE for mark in children_of(child(element, "trPr"))):
                yield element
        elif local(element) in _WRAPPERS:
            yield from _rows(element)


def _cells(row: etree._Element) -> Iterator[etree._Element]:
    for element in children(row):
        if local(element) == "tc":
            if child(element, "tcPr", "cellDel") is None:
                yield element
        elif local(element) in _WRAPPERS:
            yield from _cells(element)
