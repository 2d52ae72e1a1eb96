"""Who reads which kind of document. A reader's packages are imported where it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_ROOM: Final = "dualtrack.plugins.knowledge.reading"

_READERS: Final[Mapping[str, str]] = {
    kind: kind for kind in ("csv", "docx", "eml", "epub", "html", "markdown", "pdf", "pptx", "txt", "xlsx")
}


def read_into(name: str, data: bytes, blocks: Blocks) -> tuple[str, Sequence[str]]:
    """Add a file's blocks. Returns its kind and the titles in its metadata. Raises `DocumentRefused`."""
    kind = kind_of(name, data)
    if kind != "zip":
        read = getattr(import_module(f"{_ROOM}.{kind}"), f"read_{kind}")
        return kind, read(data, blocks)
    from dualtrack.plugins.knowledge.reading.archives import Archive  # noqa: PLC0415 - needs lxml
    from dualtrack.plugins.knowledge.reading.packed import kind_of_zip  # noqa: PLC0415

    archive = Archive(data)
    kind = kind_of_zip(archive)
    read = getattr(import_module(f"{_ROOM}.{kind}"), f"read_{kind}")
    return kind, read(archive, blocks)
