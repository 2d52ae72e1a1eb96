"""The tools as the model sees them. Light: imported by the functions that only offer them."""

from __future__ import annotations

from typing import Final

from dualtrack.frozen import freeze
from dualtrack.tool_values import ToolSpec

MAX_QUERY_CHARACTERS: Final = 1_000
MAX_NAME_CHARACTERS: Final = 300

SEARCH_COURSE_CONTENT: Final = ToolSpec(
    name="search_course_content",
    description=(
        "Searches the texts of the courses' lessons, by words and by meaning, and returns the passages that fit "
        "best, each with its course and lesson. Use it for questions about what a course teaches. Name the course "
        "or the lesson only to search there alone; part of a course's title is enough."
    ),
    input_schema=freeze(
        {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_QUERY_CHARACTERS,
                    "description": "What to look for, without the name of the course.",
                },
                "course_name": {
                    "type": ["string", "null"],
                    "maxLength": MAX_NAME_CHARACTERS,
                    "description": "Only in this course: its title or a part of it, such as 'MCP'.",
                },
                "lesson_number": {
                    "type": ["integer", "null"],
                    "minimum": 0,
                    "description": "Only in lessons of this number, such as 0 or 5; without a course in all of them.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    ),
    kind="search",
    runner="dualtrack.tools.courses.tools:search_course_content",
)

GET_COURSE_OUTLINE: Final = ToolSpec(
    name="get_course_outline",
    description=(
        "Returns a course's title, link, instructor and all its lessons by number and title. Use it for questions "
        "about what a course consists of, and to learn what a lesson is about before you search for its topic."
    ),
    input_schema=freeze(
        {
            "type": "object",
            "properties": {
                "course_name": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_NAME_CHARACTERS,
                    "description": "The course's title or a part of it.",
                }
            },
            "required": ["course_name"],
            "additionalProperties": False,
        }
    ),
    kind="search",
    runner="dualtrack.tools.courses.tools:get_course_outline",
)
