"""The index of a version: catalogue, chunks, their words and vectors, in one object that is used without parsing.

Designed for 40,000 chunks in a function's memory: a text is decoded only when it is shown. The object is that of
`dualtrack.knowledge.array_file`; its header has the model, the catalogue and the rule of words.

Words that another rule has found (`dualtrack.knowledge.words.RULE`) are found anew when the object is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.codec import decode
from dualtrack.knowledge.array_file import BadIndex, array_in, header_of, joined
from dualtrack.knowledge.postings import Postings, postings_of
from dualtrack.knowledge.vectors import quantised
from dualtrack.knowledge.words import RULE
from dualtrack.tools.courses.values import Course, LessonChunk, without_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_MAGIC: Final = b"DTCOURS1"
_NO_LESSON: Final = -1
_NOT_ASCII: Final = 0x80
"""Words of bytes below it are the same by every rule."""

_CHUNK_ARRAYS: Final = ("texts", "text_ends", "courses", "lessons", "places")
_WORD_ARRAYS: Final = ("vocabulary", "vocabulary_ends", "firsts", "chunks", "counts", "lengths")


@dataclass(frozen=True, slots=True)
class CourseIndex:
    """``catalogue``: the courses, their lessons without text. ``vectors`` (int8, a row for each chunk) and
    ``title_vectors`` (a row for each course) are from the embedding model ``model``; without a model they are None, and
    only keywords rank.

    ``vector_index``: the S3 Vectors index to query instead, if this index was read without its vectors
    (`dualtrack.tools.courses.vector_index`); ``vectors`` are None then too.

    For each chunk, ``courses`` has its course's position in the catalogue, ``lessons`` its lesson's number or -1, and
    ``places`` its index in the course.
    """

    catalogue: tuple[Course, ...]
    texts: Array
    text_ends: Array
    courses: Array
    lessons: Array
    places: Array
    postings: Postings
    model: str = ""
    vectors: Array | None = None
    title_vectors: Array | None = None
    vector_index: str = ""

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self.courses)

    def chunk(self, row: int) -> LessonChunk:
        """The chunk of a row."""
        start = int(self.text_ends[row - 1]) if row else 0
        text = self.texts[start : int(self.text_ends[row])].tobytes().decode()
        lesson = int(self.lessons[row])
        title = self.catalogue[int(self.courses[row])].title
        return LessonChunk(title, None if lesson == _NO_LESSON else lesson, int(self.places[row]), text)

    def course(self, title: str) -> Course | None:
        """The course with exactly this title."""
        return next((course for course in self.catalogue if course.title == title), None)

    def link(self, chunk: LessonChunk) -> str:
        """The link of the chunk's lesson, else of its course, else empty."""
        course = self.course(chunk.course_title)
        if course is None:
            return ""
        own = (lesson.link for lesson in course.lessons if lesson.number == chunk.lesson_number)
        return next(own, "") or course.link


def build(
    courses: Sequence[Course],
    chunks: Sequence[LessonChunk],
    model: str = "",
    vectors: Sequence[bytes] = (),
    title_vectors: Sequence[bytes] = (),
) -> CourseIndex:
    """The index of these courses, whose titles must differ. ``vectors`` (one for each chunk) and ``title_vectors`` (one
    for each course) are little-endian float32; without ``model`` there are none.

    Raises ValueError if their numbers do not match.
    """
    if model and (len(vectors) != len(chunks) or len(title_vectors) != len(courses)):
        raise ValueError("one vector is needed for each chunk and for each course")
    rows = {course.title: row for row, course in enumerate(courses)}
    texts, text_ends = _joined(chunk.text for chunk in chunks)
    numbers = (_NO_LESSON if chunk.lesson_number is None else chunk.lesson_number for chunk in chunks)
    return CourseIndex(
        catalogue=tuple(map(without_text, courses)),
        texts=texts,
        text_ends=text_ends,
        courses=np.fromiter((rows[chunk.course_title] for chunk in chunks), "<u4", len(chunks)),
        lessons=np.fromiter(numbers, "<i4", len(chunks)),
        places=np.fromiter((chunk.chunk_index for chunk in chunks), "<u4", len(chunks)),
        postings=postings_of(chunk.text for chunk in chunks),
        model=model,
        vectors=quantised(vectors) if model else None,
        title_vectors=quantised(title_vectors) if model else None,
    )


def save(index: CourseIndex) -> bytes:
    """The index as one object."""
    arrays = {name: getattr(index, name) for name in _CHUNK_ARRAYS}
    arrays |= {name: getattr(index.postings, name) for name in _WORD_ARRAYS}
    if index.vectors is not None and index.title_vectors is not None:
        # the chunks' vectors come last, so that a reader can leave them out
        arrays |= {"title_vectors": index.title_vectors, "vectors": index.vectors}
    told = {"model": index.model, "rule": RULE, "catalogue": index.catalogue}
    return joined(_MAGIC, told, arrays)


def load(data: bytes, vector_index: str = "") -> CourseIndex:
    """The index in an object; it keeps the bytes. With a ``vector_index``, ``data`` are only the first `head` bytes.
    Raises `BadIndex`."""
    try:
        return _read(data, vector_index)
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise BadIndex(f"not an index in this format: {type(error).__name__}") from error


def head(data: bytes) -> int:
    """How many bytes of an object come before its chunks' vectors; 0 if it has none."""
    header, first = header_of(_MAGIC, data)
    _, shape, at = header["arrays"].get("vectors", ("", [0], 0))
    return first + at if shape[0] else 0


def _read(data: bytes, vector_index: str) -> CourseIndex:
    header, first = header_of(_MAGIC, data)

    def array(name: str) -> Array:
        return array_in(data, header, first, name)

    has_vectors = "vectors" in header["arrays"]
    postings = Postings(**{name: array(name) for name in _WORD_ARRAYS})
    if header.get("rule") != RULE and (postings.vocabulary >= _NOT_ASCII).any():
        postings = postings_of(_texts(array("texts"), array("text_ends")))
    return CourseIndex(
        catalogue=decode(tuple[Course, ...], header["catalogue"]),
        **{name: array(name) for name in _CHUNK_ARRAYS},
        postings=postings,
        model=header["model"],
        vectors=array("vectors") if has_vectors and not vector_index else None,
        title_vectors=array("title_vectors") if has_vectors else None,
        vector_index=vector_index,
    )


def _texts(joined: Array, ends: Array) -> Iterator[str]:
    """The texts of all chunks."""
    for start, end in pairwise([0, *ends.tolist()]):
        yield joined[start:end].tobytes().decode()


def _joined(texts: Iterable[str]) -> tuple[Array, Array]:
    """The texts concatenated in UTF-8, and where each ends."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype="<u4")
    return np.frombuffer(b"".join(encoded), np.uint8), ends
