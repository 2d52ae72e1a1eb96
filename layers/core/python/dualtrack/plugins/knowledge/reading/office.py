"""Office's packages: zips of XML parts that refer to each other (ISO/IEC 29500-2), transitional and strict alike.

Elements are known by their local names, since the strict form has other namespaces for the same ones.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from lxml import etree

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.archives import BROKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.plugins.knowledge.reading.archives import Archive
    from dualtrack.plugins.knowledge.reading.blocks import Blocks


class Relation(NamedTuple):
    """``kind``: the last word of its type; ``target``: a part's name, empty if it is outside of the package."""

    kind: str
    target: str


class Package:
    """Its parts, parsed once. A part that is missing or broken is left out, and that is said; the main one must be
    there."""

    def __init__(self, archive: Archive, blocks: Blocks) -> None:
        self._archive = archive
        self._blocks = blocks

    def main(self) -> tuple[str, etree._Element]:
        """The part with the document itself, under whatever name. Raises `DocumentRefused`."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and (root := self.xml(relation.target)) is not None:
                return relation.target, root
        raise DocumentRefused("is damaged: its main part cannot be read. Open it and save it anew")

    def relations(self, part: str) -> Mapping[str, Relation]:
        """By id; of the package itself where the part is empty."""
        folder, name = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"), is_needed=False)
        found = {}
        for item in children(root) if root is not None else ():
            target = unquote(item.get("Target", ""))
            inside = item.get("TargetMode") != "External"
            path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/") if inside else ""
            found[item.get("Id", "")] = Relation(item.get("Type", "").rsplit("/", 1)[-1], path)
        return found

    def of_kind(self, part: str, kind: str) -> Iterator[etree._Element]:
        """The roots of all parts that this one refers to in this way."""
        targets = dict.fromkeys(
            to.target for to in self.relations(part).values() if to.kind == kind and to.target
        )
        for target in targets:
            if (root := self.xml(target)) is not None:
                yield root

    def xml(self, name: str, *, is_needed: bool = True) -> etree._Element | None:
        """A part's root; None if there is none."""
        data = self._archive.part(name)
        root, is_whole = parsed(data) if data is not None else (None, not is_needed)
        if not is_whole:
            self._blocks.leave_out("damaged parts")
        return root

    def elements(self, name: str, *tags: str) -> Iterator[etree._Element]:
        """A large part's elements of these names as they are read, then cleared; what is damaged ends it."""
        stream = self._archive.stream(name)
        if stream is None:
            self._blocks.leave_out("damaged parts")
            return
        events = etree.iterparse(
            stream, tag=[f"{{*}}{tag}" for tag in tags], resolve_entities=False, no_network=True, load_dtd=False,
            huge_tree=True, remove_comments=True, remove_pis=True,
        )  # fmt: skip
        try:
            for _, element in events:
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]  # type: ignore[union-attr]
        except (etree.XMLSyntaxError, *BROKEN):
            self._blocks.leave_out("damaged parts")

    def title(self) -> str:
        """As its properties say."""
        for root in self.of_kind("", "core-properties"):
            return next((text_of(item) for item in root.iter() if local(item) == "title"), "")
        return ""


def parsed(data: bytes) -> tuple[etree._Element | None, bool]:
    """A part's root and whether all of it was read. No entity is expanded, and nothing is fetched."""
    try:
        return etree.fromstring(data, _parser(recover=False)), True
    except etree.XMLSyntaxError:
        return etree.fromstring(data, _parser(recover=True)), False


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=recover,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _bare(name: str) -> str:
    return name.rsplit("}", 1)[-1]


def local(element: etree._Element) -> str:
    """Its name without namespace; empty for what is no element."""
    tag = element.tag
    return _bare(tag) if isinstance(tag, str) else ""


def children(element: etree._Element) -> Iterator[etree._Element]:
    """Its children, where a program offers alternatives, those of the one that it prefers."""
    for child in element:
        if local(child) == "AlternateContent":
            chosen = next((option for option in child if local(option) in {"Choice", "Fallback"}), None)
            if chosen is not None:
                yield from children(chosen)
        else:
            yield child


def child(element: etree._Element | None, *path: str) -> etree._Element | None:
    """The first descendant on this path."""
    for name in path:
        if element is None:
            return None
        element = next((item for item in children(element) if local(item) == name), None)
    return element


def attribute(element: etree._Element | None, name: str, default: str = "") -> str:
    """The value of an attribute in whatever namespace."""
    if element is None:
        return default
    return next((value for key, value in element.attrib.items() if _bare(str(key)) == name), default)  # type: ignore[misc]


def is_on(element: etree._Element | None) -> bool:
    """Whether a switch is there and not set to false."""
    return element is not None and attribute(element, "val", "1") not in {"0", "false", "off", "none"}


def text_of(element: etree._Element) -> str:
    """All text below an element."""
    return "".join(element.itertext())


def number(text: str, default: int = 0) -> int:
    """A small whole number; ``default`` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
