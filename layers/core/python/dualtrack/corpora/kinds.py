"""The interface of a kind of corpus: how files are read, what is embedded, and how the index is built.

The rest (uploads, jobs, batches, publishing, cleaning up) is the same for all kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class FileRefused(Exception):
    """A file is refused. The message says why, as the rest of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The content of a file: the title, which is its key, the digest of the content, the counts of its parts, the
    document in the form for `CorpusKind.texts` and `CorpusKind.index`, and what else is told of it."""

    title: str
    digest: str
    counts: Mapping[str, int]
    packed: bytes
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class CorpusKind(Protocol):
    """A kind of corpus."""

    @property
    def name(self) -> str:
        """The name in URLs and keys, if there is one corpus of the kind."""

    @property
    def bounded(self) -> str:
        """The count that limits the size of a corpus: ``chunks``."""

    @property
    def bound(self) -> int:
        """The maximum of this count for a corpus."""

    @property
    def most_documents(self) -> int:
        """How many a corpus may have; 0 for any number."""

    def key(self, title: str) -> str:
        """What two titles of one document have in common."""

    def read(self, name: str, data: bytes, title: str) -> ParsedFile:
        """Read a file, whose sender may have given it a title. Raises `FileRefused`."""

    def texts(self, packed: bytes) -> Sequence[str]:
        """The texts of a document to embed, in order."""

    def unpacked(self, index: bytes, title: str) -> bytes:
        """A document from an index, packed again, for vectors of another model."""

    def index(
        self,
        base: bytes | None,
        kept: Sequence[str],
        added: Sequence[IndexedDocument],
        order: Sequence[str],
        model: str,
    ) -> bytes:
        """The index of these documents. ``kept`` titles are copied from ``base`` with their vectors; ``order`` has all
        titles. With an empty ``model`` there are no vectors."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document and its vectors: little-endian float32, a vector for each of its texts; none without a model."""

    packed: bytes
    vectors: Sequence[bytes]
