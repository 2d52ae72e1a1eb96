"""``search_course_content`` and ``get_course_outline``: results with their locations, and sources with links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.text import clean, one_line
from dualtrack.tool_values import Source, ToolResult, failed, titles
from dualtrack.tools.courses.names import resolve
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.spec import MAX_NAME_CHARACTERS, MAX_QUERY_CHARACTERS

if TYPE_CHECKING:
    from dualtrack.tools.courses.index import Index
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.courses.values import Course, Hit
    from dualtrack.tools.documentation.dependencies import SearchNeeds
    from dualtrack.tools.running import Running

NO_COURSES: Final = "There are no course materials yet."
MAX_TITLES: Final = 50
"""Maximum titles that are listed for an unknown name."""


def search_course_content(running: Running, needs: SearchNeeds) -> ToolResult:
    """Run a call: at most five passages, best first, each below its course and lesson."""
    arguments = running.call.input
    query = one_line(clean(arguments["query"]))[:MAX_QUERY_CHARACTERS]
    if not query:
        return failed("the query is empty")
    return find(needs.courses, query, arguments.get("course_name"), arguments.get("lesson_number"))


def get_course_outline(running: Running, needs: SearchNeeds) -> ToolResult:
    """Run a call: the course and its lessons."""
    index = needs.courses.index()
    if index is None:
        return ToolResult(NO_COURSES)
    name = running.call.input["course_name"]
    title = _title(needs.courses, index, name)
    course = index.course(title) if title else None
    if course is None:
        return _refused(index, name)
    return ToolResult(_outline(course), sources=(Source(course.title, course.link),))


def find(
    library: CourseLibrary, query: str, course_name: str | None, lesson_number: int | None
) -> ToolResult:
    """The results of a query, optionally only in a course or in lessons of a number."""
    index = library.index()
    if index is None:
        return ToolResult(NO_COURSES)
    title = _title(library, index, course_name) if course_name else None
    if course_name and title is None:
        return _refused(index, course_name)
    vector = library.vector(index, query)
    near = library.nearest(index, vector, title, lesson_number)
    hits = search(index, query, vector, title, lesson_number, library.settings, near)
    left_out = ("meaning",) if library.lacks_meaning(index, vector, near) else ()
    if not hits:
        return ToolResult(_nothing(title, lesson_number), left_out=left_out)
    text = "\n\n".join(f"[{hit.location}]\n{hit.chunk.text}" for hit in hits)
    sources = _sources(hits)
    return ToolResult(text, sources=sources, left_out=left_out, preview=titles(sources))


def _title(library: CourseLibrary, index: Index, name: str) -> str | None:
    """The title that a name means; embeds the name only if words do not decide."""
    name = one_line(clean(name))[:MAX_NAME_CHARACTERS]
    return resolve(index, name, settings=library.settings) or resolve(
        index, name, library.vector(index, name), library.settings
    )


def _refused(index: Index, name: str) -> ToolResult:
    titles = [course.title for course in index.catalogue]
    more = f"; and {len(titles) - MAX_TITLES} more" if len(titles) > MAX_TITLES else ""
    there_are = f"There are: {'; '.join(titles[:MAX_TITLES])}{more}." if titles else NO_COURSES
    return ToolResult(
        f"No course found matching '{one_line(clean(name))[:MAX_NAME_CHARACTERS]}'. {there_are}",
        is_error=True,
    )


def _nothing(title: str | None, lesson_number: int | None) -> str:
    course = f" in course '{title}'" if title else ""
    lesson = f" in lesson {lesson_number}" if lesson_number is not None else ""
    return f"No relevant content found{course}{lesson}."


def _sources(hits: tuple[Hit, ...]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(Source(hit.location, hit.link) for hit in hits))


def _outline(course: Course) -> str:
    facts = [f"Course: {course.title}"]
    facts += [f"Link: {course.link}"] if course.link else []
    facts += [f"Instructor: {course.instructor}"] if course.instructor else []
    facts += [f"Lessons: {len(course.lessons)}"]
    return "\n".join([*facts, *(f"Lesson {lesson.number}: {lesson.title}" for lesson in course.lessons)])
