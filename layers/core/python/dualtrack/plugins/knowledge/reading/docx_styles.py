"""What a DOCX's paragraph is by its style: a heading of some level, an item of a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from dualtrack.plugins.knowledge.reading.office import attribute, child, children, local, number

if TYPE_CHECKING:
    from lxml import etree

_HEADING: Final = re.compile(r"heading ([1-9])\Z")
_MAX_PARENTS: Final = 20
_TEXT_LEVEL: Final = 9


class Shape(NamedTuple):
    """``heading``: its level from 0 (the document's title), or None; ``list_id`` and ``level``: its numbering."""

    heading: int | None = None
    list_id: str = ""
    level: int = 0
    is_code: bool = False


class Styles:
    """The styles by their ids, each with what it inherits."""

    def __init__(self, root: etree._Element | None) -> None:
        items = children(root) if root is not None else ()
        self._styles = {attribute(item, "styleId"): item for item in items if local(item) == "style"}
        self._known: dict[str, Shape] = {}

    def shape(self, properties: etree._Element | None) -> Shape:
        """Of a paragraph with these properties, which win over its style."""
        style = attribute(child(properties, "pStyle"), "val")
        return _with_own(properties, self._of_style(style))

    def _of_style(self, style: str) -> Shape:
        if style not in self._known:
            chain = []
            while style in self._styles and len(chain) < _MAX_PARENTS:
                chain.append(self._styles[style])
                style = attribute(child(chain[-1], "basedOn"), "val")
            shape = Shape()
            for item in reversed(chain):
                shape = _with_own(child(item, "pPr"), _named(item, shape))
            if not chain:
                return shape
            self._known[attribute(chain[0], "styleId")] = shape
            return shape
        return self._known[style]


def _named(style: etree._Element, shape: Shape) -> Shape:
    name = attribute(child(style, "name"), "val").lower()
    if name == "title":
        return shape._replace(heading=0)
    if heading := _HEADING.match(name):
        return shape._replace(heading=int(heading[1]))
    if "source code" in name or name in {"html preformatted", "macro text", "code"}:
        return shape._replace(is_code=True)
    return shape


def _with_own(properties: etree._Element | None, shape: Shape) -> Shape:
    outline = child(properties, "outlineLvl")
    if outline is not None:
        level = number(attribute(outline, "val"), _TEXT_LEVEL)
        shape = shape._replace(heading=level + 1 if level < _TEXT_LEVEL else None)
    numbering = child(properties, "numPr")
    if numbering is not None:
        list_id = attribute(child(numbering, "numId"), "val", shape.list_id)
        level = number(attribute(child(numbering, "ilvl"), "val", str(shape.level)))
        shape = shape._replace(list_id="" if list_id == "0" else list_id, level=min(level, 8))
    return shape
