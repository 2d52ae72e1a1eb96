"""Documents as a kind of corpus (`dualtrack.corpora.kinds`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from dualtrack.corpora.kinds import FileRefused, IndexedDocument, ParsedFile
from dualtrack.plugins.knowledge.chunks import chunks_of
from dualtrack.plugins.knowledge.documents import DocumentRefused, left_out_in_words
from dualtrack.plugins.knowledge.index import build, floats_of, load, save
from dualtrack.plugins.knowledge.limits import CHUNKS, DOCUMENTS
from dualtrack.plugins.knowledge.names import KIND, shown_title
from dualtrack.plugins.knowledge.packed import digest, embedded_text, pack, unpack
from dualtrack.plugins.knowledge.reading import read
from dualtrack.text import folded_name

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class DocumentsKind:
    """Two titles are one document if they differ in compatibility, case and blanks alone; its chunks are embedded with
    the title and the headings that they stand under."""

    bound: int = CHUNKS
    most_documents: int = DOCUMENTS
    name: str = field(default=KIND, init=False)
    bounded: str = field(default="chunks", init=False)

    def key(self, title: str) -> str:
        """The folded title."""
        return folded_name(title)

    def read(self, name: str, data: bytes, title: str = "") -> ParsedFile:
        """Any ordinary document. Raises `FileRefused`."""
        try:
            found = read(name, data, title)
        except DocumentRefused as reason:
            raise FileRefused(str(reason)) from reason
        chunks = chunks_of(found)
        if not chunks:
            raise FileRefused("has no text")
        shown = shown_title(title) or shown_title(found.title) or shown_title(name) or "Untitled"
        packed = pack(shown, found.kind, chunks)
        pages = max((chunk.page or 0 for chunk in chunks), default=0)
        counts = {"chunks": len(chunks), "bytes": len(data)} | ({"pages": pages} if pages else {})
        facts = {"kind": found.kind}
        if left_out := left_out_in_words(found.left_out):
            facts["left_out"] = left_out[:1_000]
        return ParsedFile(shown, digest(packed), MappingProxyType(counts), packed, MappingProxyType(facts))

    def texts(self, packed: bytes) -> Sequence[str]:
        """One for each chunk."""
        document = unpack(packed)
        return [embedded_text(document.title, chunk) for chunk in document.listed]

    def unpacked(self, index: bytes, title: str) -> bytes:
        """A document from an index."""
        loaded = load(index)
        at = loaded.titles.index(title)
        return pack(title, loaded.kinds[at], [loaded.chunk(row) for row in loaded.rows(at)])

    def index(
        self,
        base: bytes | None,
        kept: Sequence[str],
        added: Sequence[IndexedDocument],
        order: Sequence[str],
        model: str,
    ) -> bytes:
        """The index of these documents."""
        documents, vectors = {}, {}
        if base is not None:
            loaded, wanted = load(base), frozenset(kept)
            for at, title in enumerate(loaded.titles):
                if title in wanted:
                    rows = [loaded.chunk(row) for row in loaded.rows(at)]
                    documents[title] = (title, loaded.kinds[at], rows)
                    vectors[title] = list(floats_of(loaded, at)) if model else []
        for document in added:
            found = unpack(document.packed)
            documents[found.title] = (found.title, found.kind, found.listed)
            vectors[found.title] = list(document.vectors)
        listed = [vector for title in order for vector in vectors[title]]
        return save(build([documents[title] for title in order], model, listed))
