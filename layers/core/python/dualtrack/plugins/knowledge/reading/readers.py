"""Who reads which kind of document. A reader's packages are imported where it is needed."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.plugins.knowledge.reading.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_ROOM: Final = "dualtrack.plugins.knowledge.reading"

_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {"csv": "delimited", "eml": "mail", "epub": "books", "html": "web", "txt": "plain"}
)
"""Where a kind's reader is in a module of another name."""


def read_into(name: str, data: bytes, blocks: Blocks) -> tuple[str, Sequence[str]]:
    """Add a file's blocks. Returns its kind and the titles in its metadata. Raises `DocumentRefused`."""
    kind = kind_of(name, data)
    if kind != "zip":
        return kind, _reader(kind)(data, blocks)
    from dualtrack.plugins.knowledge.reading.archives import Archive  # noqa: PLC0415 - needs lxml
    from dualtrack.plugins.knowledge.reading.packed import kind_of_zip  # noqa: PLC0415

    archive = Archive(data)
    kind = kind_of_zip(archive)
    return kind, _reader(kind)(archive, blocks)


def _reader(kind: str) -> Callable[[Any, Blocks], Sequence[str]]:
    return getattr(import_module(f"{_ROOM}.{_MODULES.get(kind, kind)}"), f"read_{kind}")
