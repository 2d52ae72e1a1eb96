"""Questions about course materials: which course tool they need, and answers from the passages that it returned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .compared import sides
from .prose import overlap, sentences, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .transcript import Outcome, Transcript

SEARCH = "search_course_content"
OUTLINE = "get_course_outline"

MAX_PASSAGES = 3
MAX_SENTENCES = 3

_ASKED = re.compile(r"\A\s*+Answer this question about course materials:\s*+")
_STOP = (
    r"(?=\s{1,4}+(?:teach|cover|discuss|explain|treat|deal|say|compare|compared|contain|consist|about|is|are|have|has|course|and what|with)"
    r"\w{0,4}\b|[?!.,;:\n]|\Z)"
)
_NAME = rf"(?:the )?(?:course )?(?:on |about |called |named )?([^\s?!.,;:][^\n]{{0,200}}?){_STOP}"
_LESSON = re.compile(r"\blesson (\d{1,4})\b", re.IGNORECASE)
_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[\"“]([^\"“”\n]{2,200})[\"”]",
        rf"\blesson \d{{1,4}} (?:of|in|from) {_NAME}",
        rf"\b(?:outline|syllabus|lessons|instructor|structure) (?:of|in|for|does) {_NAME}",
        rf"\bcourse (?:on |about |called |named )([^\s?!.,;:][^\n]{{0,200}}?){_STOP}",
        r"\bthe (?!same |other |whole |first |next |right )(\w[\w&'-]{0,40}(?: [\w&'-]{1,40}){0,5}) course\b",
    )
)
_ACROSS = re.compile(
    r"\b(?:another|other|similar|same topic|compare\w{0,2}|prerequisites?|which courses?|else)\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\b(?:another|others?|similar|elsewhere)\b", re.IGNORECASE)
_ABOUT_STRUCTURE = re.compile(
    r"\b(?:outline|syllabus|instructor|who teaches|how many lessons|(?:which|what|all|list|its) (?:the )?lessons"
    r"|structure of)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\A\W*(?:hi|hello|hey|thanks?|thank you|good (?:morning|evening))\b|\b(?:capital of|population of|president of"
    r"|who wrote|who painted|weather|translate|joke|who are you|what can you do)\b|\d\s*[-+*/x×]\s*\d",
    re.IGNORECASE,
)
_LOOKS_BACK = re.compile(r"\b(?:it|its|that|this|they|them|these|those)\b", re.IGNORECASE)
_TITLE_LINE = re.compile(r"^Course: (.*)$", re.MULTILINE)
_PLACE = re.compile(r"^\[([^\[\]\n]{1,400})\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a result and the course and lesson named above it."""

    source: str
    text: str


def plain(question: str) -> str:
    """The question without the template of the profile `courses`."""
    return _ASKED.sub("", question)


def is_about_courses(question: str) -> bool:
    """Whether it is in the template of the profile `courses`."""
    return _ASKED.match(question) is not None


Call = tuple[str, dict[str, object]]


def next_calls(seen: Transcript) -> tuple[Call, ...]:
    """The tools to call now and their inputs, two for a comparison; none to answer."""
    question = plain(seen.question)
    compared = () if _ELSEWHERE.search(question) else sides(question)
    if compared and not _GENERAL.search(question):
        return () if seen.outcomes else tuple(_call_for(side, question) for side in compared)
    call = _next_call(seen, question)
    return (call,) if call else ()


def _call_for(side: str, question: str) -> Call:
    """One side of a comparison: a lesson's text, a course's outline, or what is said of a topic."""
    name, number = _course_in(side), _lesson_in(side)
    if number is not None:
        return SEARCH, _search(_LESSON.sub(" ", side).strip() or side, name, number)
    if name or re.search(r"\bcourses?\b", question, re.IGNORECASE):
        return OUTLINE, {"course_name": name or side}
    return SEARCH, _search(side, None, None)


def _next_call(seen: Transcript, question: str) -> Call | None:
    """An outline first if the lesson of another course is compared; None to answer."""
    name, number = _course_in(question), _lesson_in(question)
    outline = next((outcome for outcome in seen.outcomes if outcome.tool == OUTLINE), None)
    if any(outcome.tool == SEARCH for outcome in seen.outcomes) or _GENERAL.search(question):
        return None
    if outline is not None:
        topic = "" if outline.is_error else _lesson_title(outline.text, number)
        return (SEARCH, _search(topic, None, None)) if topic and _ACROSS.search(question) else None
    if name and (_ABOUT_STRUCTURE.search(question) or (_ACROSS.search(question) and number is not None)):
        return OUTLINE, {"course_name": name}
    return SEARCH, _search(_topic(question, name, seen), name, number)


def answer_from(seen: Transcript) -> str:
    """The results of course tools, with their courses and lessons."""
    several = [outcome for outcome in seen.outcomes if outcome.tool in (SEARCH, OUTLINE)]
    if sides(plain(seen.question)) and len(several) > 1 and not _ELSEWHERE.search(plain(seen.question)):
        return "\n\n".join(_of_side(outcome) for outcome in several)
    outline = next(
        (outcome for outcome in seen.outcomes if outcome.tool == OUTLINE and not outcome.is_error), None
    )
    search = next(
        (outcome for outcome in seen.outcomes if outcome.tool == SEARCH and not outcome.is_error), None
    )
    if search is None:
        return f"{outline.text}" if outline else ""
    own = _title(outline.text) if outline else ""
    passages = _passages(search.text)
    others = [passage for passage in passages if not own or not passage.source.startswith(own)]
    if not passages:
        return search.text
    lead = _lead(seen, own, others)
    wanted = frozenset(words(f"{_ASKED.sub('', seen.question)} {search.input.get('query', '')}"))
    shown = [_shown(passage, wanted) for passage in _best(others or passages, wanted)]
    return "\n\n".join((*([lead] if lead else ()), *shown))


def _of_side(outcome: Outcome) -> str:
    arguments = outcome.input
    name, number = arguments.get("course_name"), arguments.get("lesson_number")
    title = name or arguments.get("query") or ""
    heading = f"### {title}" + (f", lesson {number}" if number is not None else "")
    passages = _passages(outcome.text)
    if outcome.tool == OUTLINE or outcome.is_error or not passages:
        return f"{heading}\n\n{outcome.text}"
    wanted = frozenset(words(str(arguments.get("query", ""))))
    return "\n\n".join((heading, *(_shown(passage, wanted) for passage in _best(passages, wanted))))


def _lead(seen: Transcript, own: str, others: Sequence[Passage]) -> str:
    """The conclusion of a comparison."""
    if not own:
        return ""
    number = _lesson_in(plain(seen.question))
    titles = list(dict.fromkeys(passage.source for passage in others))
    elsewhere = f"It is also treated in {', '.join(titles)}." if titles else "No other course treats it."
    return f"Lesson {number} of {own} is about the topic that was searched for. {elsewhere}"


def _search(query: str, name: str | None, number: int | None) -> dict[str, object]:
    """As the model sends it, nulls included."""
    return {"query": query[:1_000], "course_name": name, "lesson_number": number}


def _topic(question: str, name: str | None, seen: Transcript) -> str:
    """The question without the course's name; with the previous question, if it refers to that."""
    rest = question.replace(name, " ") if name else question
    rest = " ".join(_LESSON.sub(" ", rest).split())
    if not set(words(rest)) - {"teach", "course", "say", "about", "cover", "happen", "lesson"}:
        rest = " ".join(question.split())
    before = seen.past[-1].question if seen.past else ""
    return f"{rest} {_ASKED.sub('', before)}".strip() if before and _LOOKS_BACK.search(question) else rest


def _course_in(question: str) -> str | None:
    for pattern in _NAMES:
        match = pattern.search(question)
        if match:
            return match[1].strip()
    return None


def _lesson_in(question: str) -> int | None:
    match = _LESSON.search(question)
    return int(match[1]) if match else None


def _title(outline: str) -> str:
    match = _TITLE_LINE.search(outline)
    return match[1].strip() if match else ""


def _lesson_title(outline: str, number: int | None) -> str:
    match = re.search(rf"^Lesson {number}: (.+)$", outline, re.MULTILINE) if number is not None else None
    return match[1].strip() if match else ""


def _passages(result: str) -> list[Passage]:
    heads = list(_PLACE.finditer(result))
    ends = [*(head.start() for head in heads[1:]), len(result)][: len(heads)]
    return [Passage(head[1], result[head.end() : end].strip()) for head, end in zip(heads, ends, strict=True)]


def _best(passages: Sequence[Passage], wanted: frozenset[str]) -> list[Passage]:
    """Those that share most words with the question, in their original order."""
    by_words = sorted(
        range(len(passages)), key=lambda at: overlap(wanted, passages[at].text) - at / 4, reverse=True
    )
    return [passages[at] for at in sorted(by_words[:MAX_PASSAGES])]


def _shown(passage: Passage, wanted: frozenset[str]) -> str:
    lines = sentences(passage.text)
    chosen = sorted(range(len(lines)), key=lambda at: overlap(wanted, lines[at]) - at / 10, reverse=True)
    text = " ".join(lines[at] for at in sorted(chosen[:MAX_SENTENCES]))
    return f"{text} ({passage.source})"
