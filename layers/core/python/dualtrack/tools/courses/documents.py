"""Reads text, Markdown, PDF and DOCX documents in the course format, or refuses them with a reason.

    Course Title: <title>
    Course Link: <link>                 optional
    Course Instructor: <name>           optional

    Lesson <n>: <title>                 n from 0
    Lesson Link: <link>                 optional
    <text up to the next lesson>

Text before the first lesson belongs to the course itself, as does all text if there are no lessons. In Markdown
these lines may be headings or bold. Linear in the document.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.message_files import as_utf8
from dualtrack.text import clean
from dualtrack.tools.courses.extract import extracted
from dualtrack.tools.courses.values import Course, DocumentRefused, Lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BYTES: Final = 20_000_000
"""Maximum size of a file, as in the corpora API (CONTRACT 4)."""

MAX_CHARACTERS: Final = 5_000_000
"""Maximum text of a file: 2,500 pages."""

MAX_LESSONS: Final = 2_000
MAX_LINE: Final = 300
"""Maximum characters of a title, a name or a link."""

_DECORATED: Final = re.compile(r"\A[#*_>\s]*+")
_FIELD: Final = re.compile(r"(course title|course link|course instructor|lesson link)\s*+:", re.IGNORECASE)
_LESSON: Final = re.compile(r"lesson\s++(\d{1,6}+)\s*+:", re.IGNORECASE)
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_MANY_BREAKS: Final = re.compile(r"\n{3,}+")
_LINK: Final = re.compile(r"https?://[^\s<>\"]++", re.IGNORECASE)


def read_document(name: str, data: bytes) -> Course:
    """The course in a file with this name and content. Raises `DocumentRefused`."""
    if len(data) > MAX_BYTES:
        raise DocumentRefused(f"has {len(data) / 1e6:.1f} MB; at most {MAX_BYTES / 1e6:.0f} MB are taken")
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if ending not in _READERS:
        raise DocumentRefused(f"is not one of the formats that are taken: {', '.join(sorted(_READERS))}")
    text = _READERS[ending](data)
    if len(text) > MAX_CHARACTERS:
        raise DocumentRefused(f"has {len(text):,} characters of text; at most {MAX_CHARACTERS:,} are taken")
    return parse(text)


def parse(text: str) -> Course:
    """The course in a document's text. Raises `DocumentRefused`."""
    fields: dict[str, str] = {}
    lessons = [Lesson(None, "", "", "")]
    bodies: list[list[str]] = [[]]
    for line in _lines(text):
        plain = _DECORATED.sub("", line)
        field, lesson = _FIELD.match(plain), _LESSON.match(plain)
        if lesson:
            lessons.append(Lesson(int(lesson[1]), _value(plain, lesson), "", ""))
            bodies.append([])
        elif field and _belongs(field[1].lower(), fields, lessons[-1], bodies[-1]):
            key = field[1].lower()
            if key == "lesson link":
                lessons[-1] = replace(lessons[-1], link=_link(_value(plain, field)))
            else:
                fields[key] = _value(plain, field)
        else:
            bodies[-1].append(line)
    return _course(fields, lessons, bodies)


def _belongs(key: str, fields: Mapping[str, str], lesson: Lesson, body: list[str]) -> bool:
    """Whether the line is a field: the first of its key in the course or lesson, before any text of it."""
    if any(line and not line.isspace() for line in body[:3]):
        return False
    if key == "lesson link":
        return lesson.number is not None and not lesson.link
    return lesson.number is None and key not in fields


def _course(fields: Mapping[str, str], lessons: list[Lesson], bodies: list[list[str]]) -> Course:
    title = fields.get("course title", "")
    if not title:
        raise DocumentRefused("has no title: its first line must be 'Course Title: <title>'")
    if len(lessons) > MAX_LESSONS:
        raise DocumentRefused(f"has {len(lessons):,} lessons; at most {MAX_LESSONS:,} are taken")
    repeated = [number for number, times in Counter(lesson.number for lesson in lessons).items() if times > 1]
    if repeated:
        raise DocumentRefused(f"has lesson {repeated[0]} twice")
    written = [
        replace(lesson, text=_MANY_BREAKS.sub("\n\n", "\n".join(body)).strip())
        for lesson, body in zip(lessons, bodies, strict=True)
    ]
    kept = tuple(lesson for lesson in written if lesson.number is not None or lesson.text)
    if not any(lesson.text for lesson in kept):
        raise DocumentRefused("has no text below its title")
    return Course(title, _link(fields.get("course link", "")), fields.get("course instructor", ""), kept)


def _lines(text: str) -> list[str]:
    """The lines without invisible characters and trailing white space."""
    return [line.rstrip() for line in _INVISIBLE.sub("", clean(text)).splitlines()]


def _value(line: str, key: re.Match[str]) -> str:
    """The text after a key, on one line, without Markdown's marks around it."""
    return " ".join(line[key.end() :][: 4 * MAX_LINE].split()).strip("*_# ")[:MAX_LINE]


def _link(text: str) -> str:
    """The first http or https address in a text; empty if there is none."""
    match = _LINK.search(text)
    return match[0].rstrip(")]>.,;") if match else ""


def _decoded(data: bytes) -> str:
    """A text file's text."""
    data = as_utf8(data)
    if b"\x00" in data:
        raise DocumentRefused("is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentRefused(f"is not UTF-8 (byte {error.start + 1}): save it in that encoding") from error


_READERS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "txt": _decoded,
    "md": _decoded,
    "markdown": _decoded,
    "pdf": lambda data: extracted("pdf", data),
    "docx": lambda data: extracted("docx", data),
}
