"""Tables of HTML as rows of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml import etree

_MOST_SPANNED: Final = 1_000
_LONGEST_LABEL: Final = 100
_LONGEST_CELL: Final = 1_000
_BLOCKS: Final = ("table", "pre", "h1", "h2", "h3", "h4")


def arranges_only(table: etree._Element) -> bool:
    """Whether a table is there for how a page looks: it has tables, headings or whole texts in its cells."""
    if (
        table.get("role") in {"presentation", "none"}
        or next(table.iterdescendants(*_BLOCKS), None) is not None
    ):
        return True
    rows = list(own_rows(table))
    if max((len(_cells(row)) for row in rows), default=0) <= 1:
        return True
    return any(len("".join(cell.itertext())) > _LONGEST_CELL for row in rows for cell in _cells(row))


def own_rows(table: etree._Element) -> Iterator[etree._Element]:
    """Its rows, in whatever part of it."""
    for part in table:
        if part.tag == "tr":
            yield part
        elif part.tag in {"thead", "tbody", "tfoot"}:
            yield from part.iterchildren("tr")


def rows_of(table: etree._Element, inline: Callable[[etree._Element], str]) -> tuple[list[list[str]], int]:
    """The cells' texts, and how many rows are its header. A short label that spans rows is in each of them; of a cell
    that spans columns, the first has the text."""
    rows: list[list[str]] = []
    spanned: dict[int, tuple[int, str]] = {}
    heads, is_head = 0, True
    for row in own_rows(table):
        line: list[str] = []
        for cell in _cells(row):
            _fill(line, spanned)
            text = inline(cell)
            down, right = _span(cell, "rowspan"), _span(cell, "colspan")
            for at in range(right):
                if down > 1:
                    repeated = text if at == 0 and len(text) <= _LONGEST_LABEL else ""
                    spanned[len(line)] = (down - 1, repeated)
                line.append(text if at == 0 else "")
        _fill(line, spanned)
        is_head = is_head and _is_head(row)
        heads += is_head
        rows.append(line)
    return rows, heads or 1


def _fill(line: list[str], spanned: dict[int, tuple[int, str]]) -> None:
    """The cells that reach down from rows above."""
    while len(line) in spanned:
        at = len(line)
        left, text = spanned[at]
        line.append(text)
        if left > 1:
            spanned[at] = (left - 1, text)
        else:
            del spanned[at]


def _cells(row: etree._Element) -> list[etree._Element]:
    return list(row.iterchildren("td", "th"))


def _is_head(row: etree._Element) -> bool:
    above = row.getparent()
    cells = _cells(row)
    return (above is not None and above.tag == "thead") or (
        bool(cells) and all(cell.tag == "th" for cell in cells)
    )


def _span(cell: etree._Element, name: str) -> int:
    text = cell.get(name, "1")
    return max(1, min(int(text), _MOST_SPANNED)) if text.isascii() and text.isdigit() and len(text) < 6 else 1
