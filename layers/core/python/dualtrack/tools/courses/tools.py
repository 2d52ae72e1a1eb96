"""``search_course_content`` and ``get_course_outline``: results with their locations, and sources with links."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge, MaxLen, MinLen

from dualtrack import tool
from dualtrack.text import clean, one_line
from dualtrack.tool_values import Source, ToolResult, failed, titles
from dualtrack.tools.courses.names import nearest, resolve
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.search_needs import SearchNeeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.courses.values import Course, Hit

_BETWEEN: Final = "\n\n"
NO_COURSES: Final = "There are no course materials yet."
MAX_QUERY_CHARACTERS: Final = 1_000
MAX_NAME_CHARACTERS: Final = 300


@tool(effect="reads")
def search_course_content(
    query: Annotated[
        str, MinLen(1), MaxLen(MAX_QUERY_CHARACTERS), "What to look for, without the name of the course."
    ],
    course_name: Annotated[
        str | None,
        MaxLen(MAX_NAME_CHARACTERS),
        "Search only this course: its title or a part of it, such as 'MCP'.",
    ] = None,
    lesson_number: Annotated[
        int | None,
        Ge(0),
        "Search only lessons with this number, such as 0 or 5; without course_name, in every course.",
    ] = None,
    *,
    needs: SearchNeeds,
) -> ToolResult:
    """Searches the texts of the courses' lessons, by words and by meaning, and returns the passages that fit best, each
    with its course and lesson. Use it for questions about what a course teaches. Give course_name or
    lesson_number only to restrict the search; part of a title is enough.
    """
    query = one_line(clean(query))
    if not query:
        return failed("the query is empty")
    return find(needs.courses, query, course_name, lesson_number)


@tool(effect="reads")
def get_course_outline(
    course_name: Annotated[
        str, MinLen(1), MaxLen(MAX_NAME_CHARACTERS), "The course's title or a part of it."
    ],
    *,
    needs: SearchNeeds,
) -> ToolResult:
    """Returns a course's title, link, instructor and all its lessons by number and title. Use it for questions about
    what a course covers, and to learn the topic of a lesson before you search for it.
    """
    index = needs.courses.index()
    if index is None:
        return ToolResult(NO_COURSES)
    title, near = _meant(needs.courses, index, course_name)
    course = index.course(title) if title else None
    if course is None:
        outlines = (_outline(found) for found in map(index.course, near) if found)
        return _of_no_course(course_name, near, "Their outlines:\n\n" + "\n\n".join(outlines))
    return ToolResult(_outline(course), sources=(Source(course.title, course.link),))


def find(
    library: CourseLibrary, query: str, course_name: str | None, lesson_number: int | None
) -> ToolResult:
    """The results of a query, optionally only in a course or in lessons of a number. For a name that means no course,
    the nearest titles and what all courses have, so that no further call is needed; that costs no credits."""
    index = library.index()
    if index is None:
        return ToolResult(NO_COURSES)
    title, alike = _meant(library, index, course_name) if course_name else (None, ())
    if course_name and title is None:
        found = find(library, query, None, lesson_number)
        told = _of_no_course(course_name, alike, f"The search in all courses:\n\n{found.content}")
        shift = len(told.content) - len(found.content)
        sources = tuple(_moved(source, shift) for source in found.sources)
        return replace(found, content=told.content, sources=sources, charged=False)
    vector = library.vector(index, query)
    near = library.nearest(index, vector, title, lesson_number)
    hits = search(index, query, vector, title, lesson_number, library.settings, near)
    left_out = ("meaning",) if library.lacks_meaning(index, vector, near) else ()
    if not hits:
        return ToolResult(_nothing(title, lesson_number), left_out=left_out)
    return replace(_found(hits), left_out=left_out)


def _meant(library: CourseLibrary, index: CourseIndex, name: str) -> tuple[str | None, tuple[str, ...]]:
    """The title that a name means, else the nearest titles; embeds the name only if words do not decide."""
    name = _cleaned(name)
    if title := resolve(index, name, settings=library.settings):
        return title, ()
    vector = library.vector(index, name)
    title = resolve(index, name, vector, library.settings)
    return title, () if title else nearest(index, name, vector, library.settings)


def _moved(source: Source, characters: int) -> Source:
    """A source whose result stands behind further text."""
    return replace(source, passages=tuple((a + characters, b + characters) for a, b in source.passages))


def _of_no_course(name: str, titles: Sequence[str], text: str) -> ToolResult:
    """The answer to a name that means no course, with what helps to do without it."""
    if not titles:
        return ToolResult(NO_COURSES, charged=False)
    near = "; ".join(f"'{title}'" for title in titles)
    return ToolResult(
        f"There is no course '{_cleaned(name)}'. The nearest titles: {near}. {text}", charged=False
    )


def _cleaned(name: str) -> str:
    return one_line(clean(name))[:MAX_NAME_CHARACTERS]


def _nothing(title: str | None, lesson_number: int | None) -> str:
    course = f" in course '{title}'" if title else ""
    lesson = f" in lesson {lesson_number}" if lesson_number is not None else ""
    return f"No relevant content found{course}{lesson}."


def _found(hits: Sequence[Hit]) -> ToolResult:
    """The hits as text, and their lessons as sources, with the places of their passages."""
    parts: list[str] = []
    passages: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {}
    at = 0
    for hit in hits:
        head = f"[{hit.location}]\n"
        start, end = at + len(head), at + len(head) + len(hit.chunk.text)
        key = hit.location, hit.link
        passages[key] = (*passages.get(key, ()), (start, end))
        parts.append(f"{head}{hit.chunk.text}")
        at = end + len(_BETWEEN)
    sources = tuple(Source(title, link, passages=places) for (title, link), places in passages.items())
    return ToolResult(_BETWEEN.join(parts), sources=sources, preview=titles(sources))


def _outline(course: Course) -> str:
    facts = [f"Course: {course.title}"]
    facts += [f"Link: {course.link}"] if course.link else []
    facts += [f"Instructor: {course.instructor}"] if course.instructor else []
    facts += [f"Lessons: {len(course.lessons)}"]
    return "\n".join([*facts, *(f"Lesson {lesson.number}: {lesson.title}" for lesson in course.lessons)])
