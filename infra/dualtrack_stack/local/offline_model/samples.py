"""The questions that documents and page show, and the tool that answers each. Other tools are called by their names."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from dualtrack.profiles import PLACEHOLDER, all_profiles
from dualtrack_stack.local.sample_docs.catalogue import libraries

from .prose import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .transcript import Transcript

DOCUMENTATION = "retrieve_documentation"
COURSES = "search_course_content"
DOCUMENTS = "search_documents"
OUTLINE = "get_course_outline"
QUERY_LIMIT = 500
"""Characters of a search query (the documentation tool takes no more)."""

_END = r"(?=[?!,;\n]|\.\s|\.?\Z| teach)"
_THING = r"(?:the )?(?P<{}>[^\s?!,;][^?!,;\n]{{0,200}}?)"


def _pattern(text: str, *things: str) -> re.Pattern[str]:
    """``…`` stands for the name of a thing, in order of ``things``. Where another one follows, it is atomic: else each
    end of the first is tried with each of the second."""
    for thing in things:
        text = text.replace("…", _THING.format(thing), 1)
    return re.compile(text + _END, re.IGNORECASE)


_SAMPLES = (
    ("count_related_by_name", _pattern(r"\bhow many (?P<target_label>\w+) (?:are )?in …", "name")),
    ("list_related_by_name", _pattern(r"\blist (?P<target_label>\w+) (?:are )?in …", "name")),
    ("get_node_connections", _pattern(r"\bwhat is connected to …", "name")),
    ("count_breakdown", _pattern(r"\bbreakdown of …", "name")),
    ("find_path", _pattern(r"\bpath from (?>… to )…", "from", "to")),
    ("find_path", _pattern(r"\bhow is (?>… connected (?:with|to) )…", "from", "to")),
    (
        "count_by_category",
        _pattern(r"\bhow many (?P<target_label>\w+) are there per (?P<scope>location|system) category"),
    ),
    (OUTLINE, _pattern(r"\boutline of (?:the course on )?…", "course_name")),
    (COURSES, _pattern(r"\blesson (?P<lesson_number>\d{1,4}) of …", "course_name")),
)
"""Tool and question; the groups are the tool's arguments."""

_COMMON = re.compile(
    r"\b(?:capital|population|president|weather) (?:of|in)\b|\btell me a joke\b|\bhow (?:tall|far|old) is\b"
    r"|\bwho (?:wrote|painted|invented|won)\b|\bwhat (?:day|time) is it\b",
    re.IGNORECASE,
)
"""What everybody knows, or nobody here: no course is searched for it."""
_THEM = re.compile(r"\A\W*list them\b", re.IGNORECASE)
_ELSEWHERE = _pattern(
    r"\b(?:another|a) course\b[^\n]{0,100}\blesson (?P<number>\d{1,4}) of (?:course )?…", "course_name"
)
_ASKED = all_profiles()["courses"].query_template.partition(PLACEHOLDER)[0]


def calls(
    seen: Transcript, offered: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tools and inputs for a question."""
    question = seen.question.removeprefix(_ASKED)
    if _THEM.match(question) and seen.past:
        question = seen.past[-1].question.replace("How many", "List")
    if COURSES in offered and (match := _ELSEWHERE.search(question)):
        yield OUTLINE, {"course_name": match["course_name"]}
        for outcome in seen.outcomes:
            title = re.search(rf"^Lesson {match['number']}: (.+)$", outcome.text, re.MULTILINE)
            yield from [(COURSES, {"query": title[1]})] if title else []
        return
    for tool, pattern in _SAMPLES:
        found = list(pattern.finditer(question)) if tool in offered else []
        yield from ((tool, _arguments(match, question, offered[tool])) for match in found)
        if found:
            return
    query = {"query": " ".join(question.split())[:QUERY_LIMIT]}
    if seen.files:
        return
    searches = [tool for tool in (COURSES, DOCUMENTS) if tool in offered]
    if searches and words(question) and not _COMMON.search(question):
        yield from ((tool, query) for tool in searches)
    elif DOCUMENTATION in offered and _topics().search(question):
        yield DOCUMENTATION, query


def _arguments(match: re.Match[str], question: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    taken = {name: typed(text, properties.get(name) or {}) for name, text in match.groupdict().items()}
    if "target_label" in taken:
        taken["target_label"] = taken["target_label"].rstrip("s").capitalize()
    return {"query": question, **taken} if "query" in properties else taken


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """A value that is written in a message, as its schema has it."""
    if schema.get("type") == "string" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@cache
def _topics() -> re.Pattern[str]:
    """What the sample documents are about: no search for anything else is paid for, unless one is asked for."""
    names = {
        name.strip().lower()
        for library in libraries()
        for name in (*library.aliases, *re.split(r"[()]", library.title))
        if name.strip()
    }
    return re.compile(rf"\b(?:docs|documentation|{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
