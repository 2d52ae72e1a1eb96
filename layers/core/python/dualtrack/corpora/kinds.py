"""What a kind of corpus has to bring: how its files are read, what of them is embedded, and how its index is made.

The rest (uploads, jobs, batches, publishing, cleaning up) is the same for all kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Refused(Exception):
    """A file is not taken. The message says why, as the part of a sentence behind its name."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a file: the title that is its key, the digest of what it says, what it consists of, and the
    document in the form that `Kind.texts` and `Kind.index` take."""

    title: str
    digest: str
    counts: Mapping[str, int]
    packed: bytes


class Kind(Protocol):
    """One kind of corpus."""

    @property
    def name(self) -> str:
        """In addresses and keys."""

    @property
    def bounded(self) -> str:
        """Which of the counts the size of a corpus is bounded by: ``chunks``."""

    @property
    def bound(self) -> int:
        """How much of it a corpus may have."""

    def read(self, name: str, data: bytes) -> Read:
        """A file. Raises `Refused`."""

    def texts(self, packed: bytes) -> Sequence[str]:
        """What is embedded of a document, in order."""

    def unpacked(self, index: bytes, title: str) -> bytes:
        """A document of an index, packed again, for vectors of another model."""

    def index(
        self,
        base: bytes | None,
        kept: Sequence[str],
        added: Sequence[Added],
        order: Sequence[str],
        model: str,
    ) -> bytes:
        """The index of these documents. ``kept`` titles come from ``base``, vectors included; ``order`` has the titles
        of all. With an empty ``model`` there are no vectors."""


@dataclass(frozen=True, slots=True)
class Added:
    """A document and its vectors: little-endian float32, one for each of its texts; none without a model."""

    packed: bytes
    vectors: Sequence[bytes]
