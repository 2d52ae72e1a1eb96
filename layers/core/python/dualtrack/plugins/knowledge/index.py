"""The index of a collection's version: its documents, chunks, words and vectors in one object that is used without
parsing (`dualtrack.knowledge.array_file`). Its header has the model, documents, paths of headings, the rule of words.

Words that another rule has found (`dualtrack.knowledge.words.RULE`) are found anew when the object is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.knowledge.array_file import BadIndex, array_in, header_of, joined
from dualtrack.knowledge.postings import Postings, postings_of
from dualtrack.knowledge.vectors import quantised
from dualtrack.knowledge.words import RULE
from dualtrack.plugins.knowledge.documents import Chunk
from dualtrack.plugins.knowledge.packed import embedded_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_MAGIC: Final = b"DTDOCUM1"
_ARRAYS: Final = ("texts", "text_ends", "firsts", "paths", "pages")
_WORD_ARRAYS: Final = ("vocabulary", "vocabulary_ends", "firsts", "chunks", "counts", "lengths")


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """``titles`` and ``kinds`` of the documents; document ``d`` has the rows ``firsts[d]`` to ``firsts[d + 1]``.

    For each row, ``paths`` has the position of its headings in ``headings``, ``pages`` its page or 0, ``vectors``
    (int8) its vector of the embedding model ``model``; without a model only keywords rank.
    """

    titles: tuple[str, ...]
    kinds: tuple[str, ...]
    headings: tuple[tuple[str, ...], ...]
    texts: Array
    text_ends: Array
    firsts: Array
    paths: Array
    pages: Array
    postings: Postings
    model: str = ""
    vectors: Array | None = None

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self.paths)

    @property
    def size(self) -> int:
        """Bytes of its arrays, near enough to what it takes of memory."""
        words = (getattr(self.postings, name).nbytes for name in _WORD_ARRAYS)
        own = (getattr(self, name).nbytes for name in _ARRAYS)
        return sum(words) + sum(own) + (self.vectors.nbytes if self.vectors is not None else 0)

    def text(self, row: int) -> str:
        """A row's text."""
        start = int(self.text_ends[row - 1]) if row else 0
        return self.texts[start : int(self.text_ends[row])].tobytes().decode()

    def chunk(self, row: int) -> Chunk:
        """A row's chunk."""
        return Chunk(self.text(row), self.headings[int(self.paths[row])], int(self.pages[row]) or None)

    def rows(self, document: int) -> range:
        """The rows of a document, by its position."""
        return range(int(self.firsts[document]), int(self.firsts[document + 1]))

    def document_of(self, row: int) -> int:
        """The position of a row's document."""
        return int(np.searchsorted(self.firsts, row, side="right")) - 1


def build(
    documents: Sequence[tuple[str, str, Sequence[Chunk]]], model: str = "", vectors: Sequence[bytes] = ()
) -> DocumentIndex:
    """The index of documents (title, kind, chunks). ``vectors``, little-endian float32, one for each chunk."""
    chunks = [chunk for _, _, listed in documents for chunk in listed]
    if model and len(vectors) != len(chunks):
        raise ValueError("one vector is needed for each chunk")
    paths: dict[tuple[str, ...], int] = {}
    numbers = [paths.setdefault(chunk.headings, len(paths)) for chunk in chunks]
    encoded = [chunk.text.encode() for chunk in chunks]
    found = (embedded_text(title, chunk) for title, _, listed in documents for chunk in listed)
    return DocumentIndex(
        titles=tuple(title for title, _, _ in documents),
        kinds=tuple(kind for _, kind, _ in documents),
        headings=tuple(paths),
        texts=np.frombuffer(b"".join(encoded), np.uint8),
        text_ends=np.cumsum([len(text) for text in encoded], dtype="<u4"),
        firsts=np.cumsum([0, *(len(listed) for _, _, listed in documents)], dtype="<u4"),
        paths=np.array(numbers, "<u4"),
        pages=np.array([chunk.page or 0 for chunk in chunks], "<u4"),
        postings=postings_of(found),
        model=model if chunks else "",
        vectors=quantised(vectors) if model and chunks else None,
    )


def save(index: DocumentIndex) -> bytes:
    """The index as one object."""
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    arrays |= {f"words.{name}": getattr(index.postings, name) for name in _WORD_ARRAYS}
    if index.vectors is not None:
        arrays["vectors"] = index.vectors
    told = {"model": index.model, "rule": RULE, "titles": index.titles, "kinds": index.kinds}
    return joined(_MAGIC, {**told, "headings": index.headings}, arrays)


def load(data: bytes) -> DocumentIndex:
    """The index in an object; it keeps the bytes. Raises `BadIndex`."""
    try:
        return _read(data)
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise BadIndex(f"not an index in this format: {type(error).__name__}") from error


def _read(data: bytes) -> DocumentIndex:
    header, first = header_of(_MAGIC, data)

    def array(name: str) -> Array:
        return array_in(data, header, first, name)

    index = DocumentIndex(
        titles=tuple(header["titles"]),
        kinds=tuple(header["kinds"]),
        headings=tuple(map(tuple, header["headings"])),
        **{name: array(name) for name in _ARRAYS},
        postings=Postings(**{name: array(f"words.{name}") for name in _WORD_ARRAYS}),
        model=header["model"],
        vectors=array("vectors") if "vectors" in header["arrays"] else None,
    )
    return index if header.get("rule") == RULE else _with_words(index)


def _with_words(index: DocumentIndex) -> DocumentIndex:
    listed = [
        (title, kind, [index.chunk(row) for row in index.rows(at)])
        for at, (title, kind) in enumerate(zip(index.titles, index.kinds, strict=True))
    ]
    fresh = build(listed)
    return DocumentIndex(
        **{name: getattr(index, name) for name in ("titles", "kinds", "headings", *_ARRAYS)},
        postings=fresh.postings,
        model=index.model,
        vectors=index.vectors,
    )


def floats_of(index: DocumentIndex, document: int) -> Iterator[bytes]:
    """A document's vectors as float32; converting them back results in the same int8."""
    if index.vectors is not None:
        for row in index.rows(document):
            yield index.vectors[row].astype("<f4").tobytes()
