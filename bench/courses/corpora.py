"""The data of the course retrieval bench: courses, and questions with the passages that answer them.

The sample courses' questions identify a passage by words in it, so that a label is valid for any chunking. The
packages' documentation serves as courses that we did not write: a library is a course, a section a lesson.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.tools.courses.chunking import chunks_of
from dualtrack.tools.courses.documents import read_document
from dualtrack.tools.courses.values import Course, Lesson, LessonChunk

from bench.retrieval.corpus import HELD_OUT, HELD_OUT_QUESTIONS, PACKAGES, QUESTIONS, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bench.retrieval.corpus import Package

SAMPLES: Final = (
    Path(__file__).resolve().parents[2] / "infra" / "dualtrack_stack" / "local" / "sample_courses"
)
SAMPLE_QUESTIONS: Final = Path(__file__).with_name("questions.json")
LIBRARIES: Final = {
    "flask": QUESTIONS,
    "undici": QUESTIONS,
    "click": HELD_OUT_QUESTIONS,
    "pino": HELD_OUT_QUESTIONS,
}


@dataclass(frozen=True, slots=True)
class Question:
    """``relevant``: label to grade, 2 answers it and 1 helps."""

    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Courses that are searched together. ``lessons``: each lesson's name in labels; empty where labels are words."""

    name: str
    courses: tuple[Course, ...]
    questions: tuple[Question, ...]
    lessons: tuple[str, ...] = ()

    @property
    def chunks(self) -> tuple[LessonChunk, ...]:
        """The chunks, as the product cuts them."""
        return tuple(chunk for course in self.courses for chunk in chunks_of(course))

    def labels(self, chunk: LessonChunk, question: Question) -> frozenset[str]:
        """The question's labels that this chunk satisfies."""
        if not self.lessons:
            return frozenset(label for label in question.relevant if label in chunk.text)
        return frozenset({self.lessons[chunk.lesson_number or 0]} & question.relevant.keys())


def samples() -> Corpus:
    """The sample courses, all in one index."""
    courses = tuple(read_document(file.name, file.read_bytes()) for file in sorted(SAMPLES.glob("*.[tm]*")))
    asked = [
        Question(entry["question"], entry["relevant"]) for entry in json.loads(SAMPLE_QUESTIONS.read_text())
    ]
    return Corpus("sample courses", courses, tuple(asked))


def documentation() -> Iterator[Corpus]:
    """Libraries' documentation, each library as a corpus."""
    for package in (*PACKAGES, *HELD_OUT):
        if package.name in LIBRARIES:
            yield _library(package, LIBRARIES[package.name])


def _library(package: Package, questions: Path) -> Corpus:
    corpus = load(package)
    lessons = tuple(
        Lesson(number, chunk.title, chunk.url, chunk.text) for number, chunk in enumerate(corpus.chunks)
    )
    asked = [entry for entry in json.loads(questions.read_text()) if entry["library"] == package.name]
    labelled = tuple(Question(entry["question"], entry["relevant"]) for entry in asked)
    return Corpus(package.name, (Course(package.name, "", "", lessons),), labelled, corpus.names)
