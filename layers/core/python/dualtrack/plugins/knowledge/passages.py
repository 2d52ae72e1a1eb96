"""A document's text in pieces, and where its passages stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.knowledge.documents import Chunk
    from dualtrack.plugins.knowledge.library import Opened

PIECE: Final = 8_000
"""Characters that are read at a time, to the end of a chunk."""

_OVERLAP: Final = 300
_LEAST_OVERLAP: Final = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """``following``: where the next one begins, None at the end; chunks count from 0."""

    text: str
    begin: int
    following: int | None
    chunks: int


class Chunks(Protocol):
    """Chunks by their row: an index in memory, or what was read of one."""

    def chunk(self, row: int) -> Chunk:
        """The chunk of a row."""


def piece_of(index: Chunks, rows: Sequence[int], begin: int) -> Piece:
    """The text of a document's rows from a chunk on, each heading once, without what chunks repeat of the one before.
    At most about `PIECE` characters."""
    parts: list[str] = []
    size, before, headings = 0, "", None
    for at in range(begin, len(rows)):
        chunk = index.chunk(rows[at])
        head = "" if chunk.headings == headings else " › ".join(chunk.headings)
        text = chunk.text if head else _without_overlap(before, chunk.text)
        if parts and size + len(head) + len(text) > PIECE:
            return Piece("\n\n".join(parts), begin, at, len(rows))
        parts += [part for part in (f"## {head}" if head else "", text) if part]
        size += len(head) + len(text)
        before, headings = chunk.text, chunk.headings
    return Piece("\n\n".join(parts), begin, None, len(rows))


def _without_overlap(before: str, text: str) -> str:
    for length in range(min(len(before), len(text), _OVERLAP), _LEAST_OVERLAP, -1):
        if before.endswith(text[:length]):
            return text[length:].lstrip()
    return text


def location(title: str, chunk: Chunk) -> str:
    """``Handbook › Leave, page 3``."""
    path = " › ".join((title, *(part for part in chunk.headings if part != title)))
    return f"{path}, page {chunk.page}" if chunk.page else path


def address(opened: Opened, document: int, begin: int = 0) -> str:
    """Where a passage opens."""
    place = f"/v1/collections/{opened.collection.corpus}/documents/{opened.document_id(document)}"
    return f"{place}?from={begin}" if begin else place
