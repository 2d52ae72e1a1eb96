"""What kind of document a file is, by its bytes and its name, and who reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.encodings import decoded
from dualtrack.plugins.knowledge.reading.markdown import read_markdown
from dualtrack.plugins.knowledge.reading.plain import read_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

    Reader = Callable[[bytes, Blocks], Sequence[str]]

_BY_ENDING: Final = {
    "md": "markdown",
    "markdown": "markdown",
    "mdown": "markdown",
    "mkd": "markdown",
    "mdx": "markdown",
}


def kind_of(name: str, data: bytes) -> str:
    """``txt``, ``markdown`` … Raises `DocumentRefused`."""
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    return _BY_ENDING.get(ending, "txt")


def reader_of(kind: str) -> Reader:
    """What adds a file's blocks and returns the titles in its metadata."""
    return {"txt": _plain, "markdown": _markdown}[kind]


def _plain(data: bytes, blocks: Blocks) -> Sequence[str]:
    read_plain(decoded(data), blocks)
    return ()


def _markdown(data: bytes, blocks: Blocks) -> Sequence[str]:
    return (read_markdown(decoded(data), blocks),)
