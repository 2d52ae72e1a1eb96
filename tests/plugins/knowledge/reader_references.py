"""What a document says, found in another way than the readers do: the words that a reader must not lose.

Left out is what the readers say that they leave out: headers and footers, hidden sheets, slides and passages, menus.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

_WORD: Final = re.compile(r"\w+")
_NOT_SHOWN: Final = frozenset({"del", "moveFrom", "instrText", "delText", "rt", "rPh"})


def words(texts: Iterable[str]) -> Counter[str]:
    """Each with its number."""
    return Counter(_WORD.findall("\n".join(texts)))


def _local(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _paragraphs(root: ET.Element) -> list[str]:  # noqa: C901 - one walk over all elements
    """The texts of an Office part: a run's words belong together, and of alternatives the first counts."""
    found: list[str] = []

    def walk(element: ET.Element, into: list[str]) -> None:
        name = _local(element)
        if name in _NOT_SHOWN or _is_hidden(element) or _is_edge(element):
            return
        if name == "AlternateContent":
            for option in list(element)[:1]:
                walk(option, into)
        elif name == "t":
            into.append(element.text or "")
        elif name in {"tab", "br", "cr", "oMath", "e", "sup", "sub", "num", "den", "deg"}:
            into.append(" ")
            for child in element:
                walk(child, into)
            into.append(" ")
        elif name == "p":
            own: list[str] = []
            for child in element:
                walk(child, own)
            found.append("".join(own))
        else:
            for child in element:
                walk(child, into)

    rest: list[str] = []
    walk(root, rest)
    return [*found, "".join(rest)]


def _is_hidden(element: ET.Element) -> bool:
    properties = next((child for child in element if _local(child) == "rPr"), None)
    marks = [] if properties is None else [child for child in properties if _local(child) == "vanish"]
    return any("0" not in mark.attrib.values() and "false" not in mark.attrib.values() for mark in marks)


def _is_edge(element: ET.Element) -> bool:
    """Date, footer and number of a slide."""
    if _local(element) != "sp":
        return False
    marks = (child for child in element.iter() if _local(child) == "ph")
    return any(mark.get("type") in {"dt", "ftr", "sldNum", "hdr", "sldImg"} for mark in marks)


def _of_docx(path: Path) -> list[str]:
    packed = zipfile.ZipFile(path)
    pattern = re.compile(r"word/(document\d*|footnotes|endnotes)\.xml\Z", re.IGNORECASE)
    names = [name for name in packed.namelist() if pattern.match(name)]
    return [text for name in names for text in _paragraphs(ET.fromstring(packed.read(name)))]


def _of_pptx(path: Path) -> list[str]:
    packed = zipfile.ZipFile(path)
    found: list[str] = []
    for name in packed.namelist():
        if re.fullmatch(r"ppt/slides/slide\d+\.xml", name):
            root = ET.fromstring(packed.read(name))
            relations = name.replace("slides/", "slides/_rels/") + ".rels"
            is_linked = name.rsplit("/", 1)[-1].encode() in packed.read("ppt/_rels/presentation.xml.rels")
            if root.get("show") == "0" or not is_linked:
                continue
            found += _paragraphs(root)
            notes = re.findall(rb"notesSlides/notesSlide\d+\.xml", packed.read(relations))
            for target in set(notes) if relations in packed.namelist() else ():
                found += _paragraphs(ET.fromstring(packed.read(f"ppt/{target.decode()}")))
    return found


def _of_xlsx(path: Path) -> list[str]:
    """The strings of visible sheets; numbers and dates are shown in many ways."""
    packed = zipfile.ZipFile(path)
    strings: list[str] = []
    for name in packed.namelist():
        if name.lower().endswith("sharedstrings.xml"):
            strings = ["".join(_paragraphs(item)) for item in ET.fromstring(packed.read(name))]
    found: list[str] = []
    relations = ET.fromstring(packed.read("xl/_rels/workbook.xml.rels"))
    targets = {item.get("Id"): item.get("Target", "") for item in relations}
    for sheet in (
        item for item in ET.fromstring(packed.read("xl/workbook.xml")).iter() if _local(item) == "sheet"
    ):
        target = targets.get(
            next((value for key, value in sheet.attrib.items() if key.endswith("}id")), ""), ""
        )
        if not sheet.get("state", "visible").endswith("idden") and "worksheets" in target:
            root = ET.fromstring(packed.read("xl/" + target.removeprefix("/xl/")))
            found += [_cell(cell, strings) for cell in root.iter() if _local(cell) == "c"]
    return found


def _cell(cell: ET.Element, strings: list[str]) -> str:
    value = next((child.text or "" for child in cell if _local(child) == "v"), "")
    if cell.get("t") == "s" and value.strip().isdigit():
        return strings[int(value)] if int(value) < len(strings) else ""
    if cell.get("t") == "inlineStr":
        return "".join(_paragraphs(cell))
    return value if cell.get("t") == "str" else ""


class _Shown(HTMLParser):
    _VOID: Final = frozenset(
        [
            "area",
            "base",
            "br",
            "col",
            "embed",
            "hr",
            "img",
            "input",
            "link",
            "meta",
            "param",
            "source",
            "track",
            "wbr",
        ]
    )
    _SILENT: Final = frozenset(["script", "style", "nav", "template", "noscript", "title", "svg"])

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """What is silent is so up to its end."""
        said = dict(attrs)
        is_silent = tag in self._SILENT or "hidden" in said or said.get("role") == "navigation"
        is_silent = is_silent or bool(re.search(r"display\s*:\s*none", said.get("style") or ""))
        if tag not in self._VOID and (self._silent or is_silent):
            self._silent.append(tag)
        if tag in {"br", "p", "td", "th", "li", "div", "h1", "h2", "h3", "tr", "dt", "dd"}:
            self.found.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Tags that are never closed end with the one around them."""
        if tag in self._silent:
            while self._silent.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Kept unless it is silent."""
        if not self._silent:
            self.found.append(data)


def _of_html(path: Path) -> list[str]:
    shown = _Shown()
    shown.feed(path.read_bytes().decode("utf-8", "replace"))
    return ["".join(shown.found)]


def _of_pdf(path: Path) -> list[str]:
    """By another library, whose words come in another order: `pdfminer.six`."""
    from pdfminer.high_level import extract_text  # type: ignore[import-not-found,unused-ignore]

    return [extract_text(path)]


REFERENCES: Final[Mapping[str, Callable[[Path], list[str]]]] = {
    "docx": _of_docx,
    "pptx": _of_pptx,
    "xlsx": _of_xlsx,
    "html": _of_html,
    "pdf": _of_pdf,
}
