"""The text of a DOCX's paragraph, through whatever its runs are wrapped in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.drawings import related
from dualtrack.plugins.knowledge.reading.equations import equation
from dualtrack.plugins.knowledge.reading.office import attribute, child, children, is_on, local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.blocks import Blocks
    from dualtrack.plugins.knowledge.reading.office import Package

_SKIPPED: Final = frozenset(
    {
        "del",
        "moveFrom",
        "pPr",
        "rPr",
        "sdtPr",
        "sdtEndPr",
        "instrText",
        "delInstrText",
        "delText",
        "fldData",
        "rt",
    }
)
_FIXED: Final = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "-"}
_PRIVATE: Final = range(0xE000, 0xF900)
_NOTES: Final = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_DEEPEST: Final = 500


class Runs:
    """Notes stand at their places, in brackets; text boxes are kept for whoever reads the paragraph."""

    def __init__(self, package: Package, name: str, blocks: Blocks) -> None:
        self._package, self._name, self._blocks = package, name, blocks
        self._notes = {kind: _notes(package, name, kind) for kind in _NOTES.values()}
        self._open: set[int] = set()
        self.boxes: list[etree._Element] = []

    def take_boxes(self) -> list[etree._Element]:
        """The text boxes that were met since."""
        boxes, self.boxes = self.boxes, []
        return boxes

    def text(self, element: etree._Element) -> str:
        """Everything that is shown of it."""
        return "".join(self._parts(element, 0))

    def _parts(self, element: etree._Element, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            self._blocks.leave_out("passages that are nested too deeply")
            return
        for item in children(element):
            name = local(item)
            if name in {"t", "delText"} and name == "t":
                yield item.text or ""
            elif name in _FIXED:
                yield _FIXED[name]
            elif name == "r":
                yield from self._run(item, depth)
            elif name in {"oMath", "oMathPara"}:
                yield equation(item)
            elif name not in _SKIPPED:
                yield from self._other(name, item, depth)

    def _run(self, item: etree._Element, depth: int) -> Iterator[str]:
        parts = self._parts(item, depth + 1)
        if is_on(child(item, "rPr", "vanish")):
            if "".join(parts).strip():
                self._blocks.leave_out("hidden passages")
        else:
            yield from parts

    def _other(self, name: str, item: etree._Element, depth: int) -> Iterator[str]:
        if name == "br":
            yield "\n"
        elif name in _NOTES:
            yield from self._note(_NOTES[name], attribute(item, "id"), depth)
        elif name == "sym":
            yield from self._symbol(attribute(item, "char"))
        elif name in {"drawing", "pict", "object"}:
            yield from self._drawing(name, item)
        elif name == "commentReference":
            self._blocks.leave_out("comments")
        elif name == "ruby":
            reading = child(item, "rt")
            yield from self._parts(item, depth + 1)
            if reading is not None:
                yield f" ({self.text(reading)})"
        elif name == "fldChar":
            yield from _form_value(item)
        else:
            yield from self._parts(item, depth + 1)

    def _note(self, kind: str, note_id: str, depth: int) -> Iterator[str]:
        note = self._notes[kind].get(note_id)
        if note is None or id(note) in self._open:
            return
        self._open.add(id(note))
        paragraphs = ("".join(self._parts(part, depth + 1)).strip() for part in children(note))
        if text := " ".join(filter(None, paragraphs)):
            yield f" [{text}]"
        self._open.discard(id(note))

    def _symbol(self, code: str) -> Iterator[str]:
        """A font's own sign has no meaning outside of it."""
        value = (
            int(code, 16)
            if code and len(code) <= 6 and all(sign in "0123456789abcdefABCDEF" for sign in code)
            else 0
        )
        if value in _PRIVATE or not 32 <= value < 0x110000:
            self._blocks.leave_out("symbols")
        else:
            yield chr(value)

    def _drawing(self, name: str, drawing: etree._Element) -> Iterator[str]:
        """Its text boxes are kept, diagrams read, pictures counted, and described if their author did so."""
        pictures = 0
        stack = [drawing]
        while stack:
            item = stack.pop()
            kind = local(item)
            if kind == "txbxContent":
                self.boxes.append(item)
                continue
            if kind in {"pic", "imagedata"}:
                pictures += 1
            elif kind == "docPr" and (described := attribute(item, "descr").strip()):
                yield f" [{described}] "
            elif kind == "chart":
                yield from (
                    f"\n{line}"
                    for line in related(
                        self._package, self._name, attribute(item, "id"), "charts", self._blocks
                    )
                )
            elif kind == "relIds":
                yield from (
                    f"\n{line}"
                    for line in related(
                        self._package, self._name, attribute(item, "dm"), "diagrams", self._blocks
                    )
                )
            stack.extend(reversed(list(children(item))))
        is_object = name == "object" or any(local(item) == "OLEObject" for item in drawing.iter())
        self._blocks.leave_out("embedded objects" if is_object else "pictures", 1 if is_object else pictures)


def _notes(package: Package, name: str, kind: str) -> dict[str, etree._Element]:
    root = next(package.of_kind(name, kind), None)
    found = children(root) if root is not None else ()
    return {attribute(note, "id"): note for note in found if "eparator" not in attribute(note, "type")}


def _form_value(mark: etree._Element) -> Iterator[str]:
    """What is ticked or chosen in a field of an old form; what is typed there is text."""
    box, choice = child(mark, "ffData", "checkBox"), child(mark, "ffData", "ddList")
    if box is not None:
        ticked = child(box, "checked")
        yield "☒" if is_on(ticked if ticked is not None else child(box, "default")) else "☐"
    if choice is not None:
        entries = [attribute(item, "val") for item in children(choice) if local(item) == "listEntry"]
        chosen = attribute(child(choice, "result"), "val", "0")
        at = int(chosen) if chosen.isascii() and chosen.isdigit() and len(chosen) < 6 else 0
        yield entries[at] if at < len(entries) else ""
