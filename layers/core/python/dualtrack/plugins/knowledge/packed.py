"""A document as a job stores it: its facts and its chunks, as deterministic bytes."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack import codec
from dualtrack.codec import dump, stored
from dualtrack.plugins.knowledge.documents import Chunk

if TYPE_CHECKING:
    from collections.abc import Sequence


@stored
@dataclass(frozen=True, slots=True)
class Packed:
    """``chunks``: text, headings (outermost first), page (0 for none)."""

    title: str
    kind: str
    chunks: tuple[tuple[str, tuple[str, ...], int], ...]

    @property
    def listed(self) -> Sequence[Chunk]:
        """The chunks."""
        return [Chunk(text, headings, page or None) for text, headings, page in self.chunks]


def pack(title: str, kind: str, chunks: Sequence[Chunk]) -> bytes:
    """The bytes."""
    listed = tuple((chunk.text, chunk.headings, chunk.page or 0) for chunk in chunks)
    return zlib.compress(dump(Packed(title, kind, listed)).encode())


def unpack(packed: bytes) -> Packed:
    """The reverse."""
    return codec.load(Packed, zlib.decompress(packed))


def digest(packed: bytes) -> str:
    """Of the content; not of its compressed bytes, which may change with the library."""
    return hashlib.sha256(zlib.decompress(packed)).hexdigest()


def embedded_text(title: str, chunk: Chunk) -> str:
    """What a chunk's vector is made of, and in which its words are found: with what it stands under."""
    return f"{' › '.join((title, *chunk.headings))}\n{chunk.text}"
