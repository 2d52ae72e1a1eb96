"""EPUB: the chapters in the order of the book's spine."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.office import attribute, local, parsed
from dualtrack.plugins.knowledge.reading.web import add_page, text_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.archives import Archive
    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})


def read_epub(archive: Archive, blocks: Blocks) -> Sequence[str]:
    """Adds the chapters' blocks. Returns the titles in its metadata. Raises `DocumentRefused`."""
    if archive.part("META-INF/encryption.xml") and archive.part("META-INF/rights.xml"):
        raise DocumentRefused("is locked by its shop (DRM): add an edition without")
    container = _root(archive, "META-INF/container.xml")
    name = next((attribute(item, "full-path") for item in container.iter() if local(item) == "rootfile"), "")
    package = _root(archive, name)
    folder = posixpath.dirname(name)
    items = {attribute(item, "id"): item for item in package.iter() if local(item) == "item"}
    for reference in (item for item in package.iter() if local(item) == "itemref"):
        item = items.get(attribute(reference, "idref"))
        if item is None or attribute(item, "media-type") not in _PAGES:
            blocks.leave_out("damaged parts" if item is None else "pictures")
        elif "nav" in attribute(item, "properties").split():
            blocks.leave_out("tables of contents")
        else:
            _chapter(
                archive, posixpath.normpath(posixpath.join(folder, unquote(attribute(item, "href")))), blocks
            )
    return tuple("".join(item.itertext()) for item in package.iter() if local(item) == "title")


def _root(archive: Archive, name: str) -> etree._Element:
    data = archive.part(name)
    root = parsed(data)[0] if data else None
    if root is None:
        raise DocumentRefused(
            "is damaged: its list of chapters cannot be read. Convert it anew, or save it as PDF"
        )
    return root


def _chapter(archive: Archive, name: str, blocks: Blocks) -> None:
    data = archive.part(name)
    root = tree_of(text_of(data), blocks) if data else None
    if root is None:
        blocks.leave_out("damaged parts")
    else:
        add_page(root, blocks)
