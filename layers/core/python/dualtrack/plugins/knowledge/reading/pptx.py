"""Presentations: each slide under its title, its shapes in their order, its tables, and what its speaker notes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.drawings import line_of, related
from dualtrack.plugins.knowledge.reading.office import (
    Package,
    attribute,
    child,
    children,
    local,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.archives import Archive
    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_TITLES: Final = frozenset({"title", "ctrTitle"})
_AT_THE_EDGE: Final = frozenset({"dt", "ftr", "sldNum", "hdr"})
_NO_LIST: Final = frozenset({"title", "ctrTitle", "subTitle"})
_BLANKS: Final = re.compile(r"\s+")


def read_pptx(archive: Archive, blocks: Blocks) -> Sequence[str]:
    """Adds the slides' blocks. Returns the title in its properties. Raises `DocumentRefused`."""
    package = Package(archive, blocks)
    name, root = package.main()
    relations = package.relations(name)
    shown = 0
    for slides in (item for item in children(root) if local(item) == "sldIdLst"):
        for slide in children(slides):
            relation = relations.get(_relation_id(slide))
            part = package.xml(relation.target) if relation is not None and relation.target else None
            if part is None:
                continue
            shown += 1
            if attribute(part, "show") in {"0", "false"}:
                blocks.leave_out("hidden slides")
            else:
                _Slide(package, relation.target if relation else "", shown, blocks).read(part)
    return (package.title(),)


def _relation_id(slide: etree._Element) -> str:
    """Both of its attributes are called ``id``; the one with a namespace refers to the part."""
    return next((value for key, value in slide.attrib.items() if str(key).endswith("}id")), "")  # type: ignore[misc]


class _Slide:
    def __init__(self, package: Package, name: str, page: int, blocks: Blocks) -> None:
        self._package, self._name, self._page, self._blocks = package, name, page, blocks

    def read(self, root: etree._Element) -> None:
        tree = child(root, "cSld", "spTree")
        shapes = list(children(tree)) if tree is not None else []
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        title = " ".join(filter(None, (_BLANKS.sub(" ", _text(shape)).strip() for shape in titles)))
        self._blocks.heading(1, title or f"Slide {self._page}", self._page)
        for shape in shapes:
            if shape not in titles:
                self._shape(shape)
        for relation in self._package.relations(self._name).values():
            if relation.kind == "notesSlide" and (notes := self._package.xml(relation.target)) is not None:
                self._notes(notes)
            elif relation.kind == "comments" and (comments := self._package.xml(relation.target)) is not None:
                self._blocks.leave_out("comments", sum(local(item) == "cm" for item in comments.iter()))

    def _shape(self, shape: etree._Element) -> None:
        """Groups are walked without recursion, as hostile ones are deep."""
        stack = [shape]
        while stack:
            item = stack.pop()
            kind = local(item)
            if kind == "txBody":
                self._body(item, is_list=_placeholder(item.getparent()) not in _NO_LIST)
            elif kind == "tbl":
                self._table(item)
            elif kind == "sp" and _placeholder(item) in _AT_THE_EDGE:
                self._blocks.leave_out("headers and footers", bool(_text(item).strip()))
            else:
                self._mark(kind, item)
                stack.extend(reversed(list(children(item))))

    def _mark(self, kind: str, item: etree._Element) -> None:
        if kind == "pic":
            is_media = any(local(part) in {"videoFile", "audioFile"} for part in item.iter())
            self._blocks.leave_out("sounds and videos" if is_media else "pictures")
        elif kind == "oleObj":
            self._blocks.leave_out("embedded objects")
        elif kind in {"chart", "relIds"}:
            relation = attribute(item, "id" if kind == "chart" else "dm")
            what = "charts" if kind == "chart" else "diagrams"
            for line in related(self._package, self._name, relation, what, self._blocks):
                self._blocks.text(line, self._page)
        elif kind == "cNvPr" and (described := attribute(item, "descr").strip()):
            self._blocks.text(f"[{described}]", self._page)

    def _body(self, body: etree._Element, *, is_list: bool) -> None:
        """Paragraphs of several levels, or more than one of a placeholder, are a list."""
        found = [
            (number(attribute(child(item, "pPr"), "lvl")), text)
            for item in children(body)
            if local(item) == "p" and (text := line_of(item))
        ]
        is_placeholder = bool(_placeholder(body.getparent()))
        if is_list and len(found) > 1 and (is_placeholder or any(level for level, _ in found)):
            lines = [f"{'  ' * min(level, 8)}- {_BLANKS.sub(' ', text)}" for level, text in found]
            self._blocks.items(lines, self._page)
            return
        for _, text in found:
            self._blocks.text(text, self._page)

    def _table(self, table: etree._Element) -> None:
        rows = [
            [_text(cell) for cell in children(row) if local(cell) == "tc"]
            for row in children(table)
            if local(row) == "tr"
        ]
        self._blocks.table(rows, 1, self._page)

    def _notes(self, root: etree._Element) -> None:
        for shape in root.iter():
            if local(shape) == "sp" and _placeholder(shape) not in {*_AT_THE_EDGE, "sldImg"}:
                self._blocks.text(_text(shape), self._page)


def _placeholder(shape: etree._Element | None) -> str:
    """``title``, ``body`` …; ``obj`` for one without a type, empty for another shape."""
    mark = child(child(shape, "nvSpPr"), "nvPr", "ph") if shape is not None else None
    return attribute(mark, "type", "obj") if mark is not None else ""


def _text(shape: etree._Element) -> str:
    body = child(shape, "txBody")
    found = children(body) if body is not None else ()
    return "\n".join(filter(None, (line_of(item) for item in found if local(item) == "p")))
