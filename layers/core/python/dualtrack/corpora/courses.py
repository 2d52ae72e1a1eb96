"""Course materials as a kind of corpus."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack import codec
from dualtrack.codec import dump, stored
from dualtrack.corpora.kinds import FileRefused, IndexedDocument, ParsedFile
from dualtrack.text import folded_name
from dualtrack.tools.courses import values, vector_index
from dualtrack.tools.courses.chunking import chunks_of
from dualtrack.tools.courses.documents import read_document
from dualtrack.tools.courses.index import build, head, load, save
from dualtrack.tools.courses.values import Course, LessonChunk, embedded_text, without_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.storage.vector_indexes import VectorIndexes
    from dualtrack.tools.courses.index import CourseIndex

NAME: Final = "courses"

MAX_CHUNKS: Final = 50_000
"""Maximum chunks of all courses together. The index then takes 70 to 100 MB in every function that searches it."""

MAX_CHUNKS_BESIDE: Final = 100_000
"""Maximum chunks with a vector index: as many as a function can write to it in one call."""


@dataclass(frozen=True, slots=True)
class CoursesKind:
    """Documents are courses; the title is embedded first, then each chunk with its course and lesson.

    ``bound``: maximum chunks of all courses together.
    """

    bound: int = MAX_CHUNKS
    name: str = field(default=NAME, init=False)
    bounded: str = field(default="chunks", init=False)
    most_documents: int = field(default=0, init=False)

    def key(self, title: str) -> str:
        """Titles that differ in compatibility, case and blanks alone are one course."""
        return folded_name(title)

    def read(self, name: str, data: bytes, title: str = "") -> ParsedFile:  # noqa: ARG002 - the file has it
        """A course. Raises `FileRefused`."""
        try:
            course = read_document(name, data)
        except values.DocumentRefused as reason:
            raise FileRefused(str(reason)) from reason
        chunks = chunks_of(course)
        packed = pack(course, chunks)
        counts = {"lessons": _numbered(course), "chunks": len(chunks)}
        return ParsedFile(course.title, _digest(packed), MappingProxyType(counts), packed)

    def texts(self, packed: bytes) -> Sequence[str]:
        """The title, then the chunks."""
        course, chunks = unpack(packed)
        return (course.title, *map(embedded_text, chunks))

    def unpacked(self, index: bytes, title: str) -> bytes:
        """A course from an index."""
        loaded = load(index)
        course = next(listed for listed in loaded.catalogue if listed.title == title)
        return pack(course, [loaded.chunk(row) for row in _rows(loaded, title)])

    def index(
        self,
        base: bytes | None,
        kept: Sequence[str],
        added: Sequence[IndexedDocument],
        order: Sequence[str],
        model: str,
    ) -> bytes:
        """The index of these courses."""
        documents = _kept(load(base), kept, model) if base is not None else {}
        for document in added:
            course, chunks = unpack(document.packed)
            documents[course.title] = (course, chunks, document.vectors)
        listed = [documents[title] for title in order]
        made = build(
            [course for course, _, _ in listed],
            [chunk for _, chunks, _ in listed for chunk in chunks],
            model,
            [vector for _, _, vectors in listed for vector in vectors[1:]],
            [vectors[0] for _, _, vectors in listed if vectors],
        )
        return save(made)


def put_vectors(indexes: VectorIndexes, version: str, index: bytes) -> int:
    """`Ingest.vectors_beside` for courses: writes a version's vectors to a vector index, if it has any."""
    size = head(index)
    if size:
        vector_index.write(indexes, NAME, version, load(index))
    return size


_Document = tuple[Course, "Sequence[LessonChunk]", "Sequence[bytes]"]


def _kept(base: CourseIndex, titles: Sequence[str], model: str) -> dict[str, _Document]:
    """Courses from an index with their chunks and vectors, unchanged."""
    documents: dict[str, _Document] = {}
    for position, course in enumerate(base.catalogue):
        if course.title in titles:
            rows = np.flatnonzero(base.courses == position)
            vectors: list[bytes] = []
            if model and base.vectors is not None and base.title_vectors is not None:
                vectors = _floats([base.title_vectors[position], *(base.vectors[row] for row in rows)])
            documents[course.title] = (course, [base.chunk(int(row)) for row in rows], vectors)
    return documents


def _floats(rows: Sequence[Any]) -> list[bytes]:
    """Rows of int8 as float32; converting them back results in the same int8."""
    return [row.astype("<f4").tobytes() for row in rows]


def _rows(index: CourseIndex, title: str) -> list[int]:
    position = [course.title for course in index.catalogue].index(title)
    return [int(row) for row in np.flatnonzero(index.courses == position)]


def _digest(packed: bytes) -> str:
    """The digest of a document's content; not of its compressed bytes, which may change with the library."""
    return hashlib.sha256(zlib.decompress(packed)).hexdigest()


def _numbered(course: Course) -> int:
    return sum(lesson.number is not None for lesson in course.lessons)


@stored
@dataclass(frozen=True, slots=True)
class _PackedCourse:
    """A course without its text, and its chunks in order: the number of their lesson, their text."""

    course: Course
    chunks: tuple[tuple[int | None, str], ...]


def pack(course: Course, chunks: Sequence[LessonChunk]) -> bytes:
    """A course and its chunks as bytes; deterministic."""
    listed = tuple((chunk.lesson_number, chunk.text) for chunk in chunks)
    return zlib.compress(dump(_PackedCourse(without_text(course), listed)).encode())


def unpack(packed: bytes) -> tuple[Course, list[LessonChunk]]:
    """The reverse of `pack`; only the chunks have the lessons' text."""
    read = codec.load(_PackedCourse, zlib.decompress(packed))
    title = read.course.title
    return read.course, [
        LessonChunk(title, number, at, text) for at, (number, text) in enumerate(read.chunks)
    ]
