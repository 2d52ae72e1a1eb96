"""What a zip is: a document of Office, an EPUB, or an archive of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.blocks import Blocks
from dualtrack.plugins.knowledge.reading.office import Package, local

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.plugins.knowledge.reading.archives import Archive

_ROOTS: Final[Mapping[str, str]] = {"document": "docx", "presentation": "pptx", "workbook": "xlsx"}
"""The element that the main part begins with."""

_ELSEWHERE: Final[Mapping[str, str]] = {
    "application/vnd.oasis.opendocument.text": "is an OpenDocument text: save it as DOCX or PDF",
    "application/vnd.oasis.opendocument.spreadsheet": "is an OpenDocument spreadsheet: save it as XLSX",
    "application/vnd.oasis.opendocument.presentation": "is an OpenDocument presentation: save it as PPTX or PDF",
}


def kind_of_zip(archive: Archive) -> str:
    """``docx``, ``pptx``, ``xlsx`` or ``epub``. Raises `DocumentRefused`."""
    names = archive.names()
    if "_rels/.rels" in names:
        _, root = Package(archive, Blocks()).main()
        if kind := _ROOTS.get(local(root)):
            return kind
    if "xl/workbook.bin" in names:
        raise DocumentRefused("is a binary spreadsheet (.xlsb): save it as XLSX")
    if "meta-inf/container.xml" in names and "meta-inf/manifest.xml" not in names:
        return "epub"
    mark = (archive.part("mimetype") or b"")[:200].decode("ascii", "replace").strip()
    if mark in _ELSEWHERE:
        raise DocumentRefused(_ELSEWHERE[mark])
    if any(name.startswith("index/") and name.endswith(".iwa") for name in names):
        raise DocumentRefused(
            "is a document of Apple's Pages, Numbers or Keynote: export it as PDF or for Office"
        )
    raise DocumentRefused("is an archive: unpack it, and add the documents in it")
