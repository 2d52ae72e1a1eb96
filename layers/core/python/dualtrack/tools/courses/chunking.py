"""Courses in chunks: at most 800 characters, cut at the ends of sentences, overlapping by whole sentences.

A chunk begins with the last sentences of the previous chunk, up to 100 characters. Linear in the text: every pattern
visits a character a bounded number of times.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from dualtrack.tools.courses.values import Course, LessonChunk

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE: Final = 800
OVERLAP: Final = 100

_ABBREVIATIONS: Final = (
    "dr mr mrs ms prof sr jr st vs e.g i.e cf ca approx fig figs eq eqs no nos vol pp ch sec resp incl al inc ltd "
    "dept est max min"
)
_ABBREVIATED: Final = frozenset(_ABBREVIATIONS.split())
_LONGEST_ABBREVIATION: Final = 12

_FULL_STOP: Final = re.compile(r"[.!?…।॥؟۔][\"'”’)\]]{0,3}(?=\s)|[。！？｡][」』）】”’]{0,3}")
_PARAGRAPH: Final = re.compile(r"\n[^\S\n]*+\n\s*+")
_BLANKS: Final = re.compile(r"\s*+")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]++`|^(?: {4}|\t)[^\n]*+", re.DOTALL | re.MULTILINE)
_LAST_WORD: Final = re.compile(r"[\w.]+\Z")
_LIST_ITEM: Final = re.compile(r"(?:\A|\n)[^\S\n]*\d{1,3}\Z")


def chunks_of(course: Course) -> tuple[LessonChunk, ...]:
    """The course's chunks in reading order; none spans two lessons, and none is empty."""
    texts = ((lesson.number, text) for lesson in course.lessons for text in pieces(lesson.text))
    return tuple(LessonChunk(course.title, number, index, text) for index, (number, text) in enumerate(texts))


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of at most `SIZE` characters, stripped of white space; none is empty."""
    return (piece for start, end in spans(text) if (piece := text[start:end].strip()))


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each piece begins and ends, white space included: together they cover the whole text."""
    ends = sentence_ends(text)
    start = end = 0
    while end < len(text):
        start, end = _next(text, ends, start, end)
        yield start, end


def sentence_ends(text: str) -> list[int]:
    """Where sentences and paragraphs end, including the white space after them; the end of the text is the last.

    Not inside code, not after an abbreviation, an initial or the number of a list item, and not before a lower-case
    letter. (``3.14`` and ``a.py`` have no white space after the full stop.)
    """
    stops = [match.end() for match in _FULL_STOP.finditer(text) if _ends_sentence(text, match)]
    breaks = [match.end() for match in _PARAGRAPH.finditer(text)]
    ends = sorted({_BLANKS.match(text, at).end() for at in (*stops, *breaks)})  # type: ignore[union-attr]
    return [*_outside_code(text, ends), len(text)]


def _next(text: str, ends: list[int], start: int, end: int) -> tuple[int, int]:
    """Where the next piece begins and ends; the previous one is from ``start`` to ``end``."""
    for begin in (_overlapping(ends, start, end), end):
        fitting = bisect_right(ends, begin + SIZE)
        if fitting and ends[fitting - 1] > end:
            return begin, ends[fitting - 1]
    return end, _break_in(text, end)  # one sentence is longer than a chunk


def _overlapping(ends: list[int], start: int, end: int) -> int:
    """The beginning of the first sentence to repeat; ``end`` if there is none."""
    earliest = max(start + 1, end - OVERLAP)
    at = bisect_left(ends, earliest)
    return min(ends[at], end) if at < len(ends) else end


def _break_in(text: str, start: int) -> int:
    """Where to cut a sentence that is too long: after a line, else after a word, else anywhere."""
    for mark in ("\n", " "):
        mark_at = text.rfind(mark, start + SIZE // 2, start + SIZE)
        if mark_at >= 0:
            return mark_at + 1
    return start + SIZE


def _ends_sentence(text: str, stop: re.Match[str]) -> bool:
    blanks = _BLANKS.match(text, stop.end())
    following = text[blanks.end() : blanks.end() + 1] if blanks else ""
    if following.islower():
        return False
    if stop[0][0] != ".":
        return True
    before = text[max(0, stop.start() - _LONGEST_ABBREVIATION) : stop.start()]
    word = _LAST_WORD.search(before)
    if word is None:
        return True
    is_initial = len(word[0]) == 1 and word[0].isupper() and word[0] != "I"
    return not (word[0].lower() in _ABBREVIATED or is_initial or _LIST_ITEM.search(before))


def _outside_code(text: str, offsets: list[int]) -> list[int]:
    """The offsets that are not inside code; ``offsets`` are in ascending order."""
    kept, at = [], 0
    for code in _CODE.finditer(text):
        while at < len(offsets) and offsets[at] <= code.start():
            kept.append(offsets[at])
            at += 1
        while at < len(offsets) and offsets[at] < code.end():
            at += 1
    return [*kept, *offsets[at:]]
