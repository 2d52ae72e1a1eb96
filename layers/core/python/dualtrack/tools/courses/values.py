"""Courses, lessons and chunks, all frozen, and why a document is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dualtrack.codec import stored


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Lesson:
    """``number`` counts from 0; None for text of the course itself, outside of any lesson. ``link`` may be empty."""

    number: int | None
    title: str
    link: str
    text: str = ""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Course:
    """The content of a document. ``title`` is the key; ``link`` and ``instructor`` may be empty."""

    title: str
    link: str
    instructor: str
    lessons: tuple[Lesson, ...]


def without_text(course: Course) -> Course:
    """The course with its numbered lessons, whose text its chunks have."""
    lessons = (replace(lesson, text="") for lesson in course.lessons if lesson.number is not None)
    return replace(course, lessons=tuple(lessons))


@dataclass(frozen=True, slots=True)
class LessonChunk:
    """A piece of a lesson's text; ``chunk_index`` counts through its course from 0."""

    course_title: str
    lesson_number: int | None
    chunk_index: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that matches a query, and the link of its lesson, else of its course, else empty."""

    chunk: LessonChunk
    link: str

    @property
    def location(self) -> str:
        """``<course title> - Lesson <n>``; the title alone for text of the course itself."""
        return location_of(self.chunk.course_title, self.chunk.lesson_number)


class DocumentRefused(Exception):
    """A document cannot become a course. The message says why, as part of a sentence: ``is locked with a password``."""


def location_of(course_title: str, lesson_number: int | None) -> str:
    """The location of a lesson, as results and sources show it."""
    return course_title if lesson_number is None else f"{course_title} - Lesson {lesson_number}"


def embedded_text(chunk: LessonChunk) -> str:
    """The text to embed for a chunk: its course and lesson, then its text. Results show only the text."""
    lesson = "" if chunk.lesson_number is None else f" Lesson {chunk.lesson_number}"
    return f"Course {chunk.course_title}{lesson} content: {chunk.text}"
