"""Reading text without understanding it: words, sentences, and the sections of a Markdown document."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP_WORDS = """
a about after again all also an and any are as ask at be been before but by bye can could did do does
earlier find for from full get give had has have hello hey hi how i if in into is it its just know
let like me more my need new no not of ok okay on one or our out over please previous should show so
some such tell than thank thanks that the their them then there these they thing this those to us use used using want
was way we were what when where which who why will with without would you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_TITLE = re.compile(r"#{1,6}\s+(?P<heading>.*)$|\[(?P<place>[^\[\]]{1,400})\]$|\s*-{32}\s*$")
_URL = re.compile(r"https?://[^\s<>)\]}\"'`]+")
_SOURCE_LINE = re.compile(r"^\W*(?:source|sources|url)\b\W*", re.IGNORECASE)
_TAG_LINE = re.compile(r"^</?documents?\b[^>]*>$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'`(\[])")


def stem(word: str) -> str:
    """A crude stem, enough to match "repositories" with "repository"."""
    for ending, instead in (("ies", "y"), ("ing", ""), ("es", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + instead
    return word


def words(text: str) -> list[str]:
    """The stems of a text's content words, in order, with repeats; names like ``get_item`` also in parts."""
    stems: list[str] = []
    for match in _WORD.findall(text):
        lowered = match.lower()
        if lowered in _STOP:
            continue
        stems.append(stem(lowered))
        parts = re.split(r"[._-]", lowered)
        if len(parts) > 1:
            stems.extend(stem(part) for part in parts if part and part not in _STOP)
    return stems


def overlap(wanted: frozenset[str], text: str) -> float:
    """How many of the wanted words a text holds, with a little credit for repeats; 0 for none."""
    stems = words(text)
    hits = wanted & frozenset(stems)
    repeats = sum(1 for word in stems if word in hits) - len(hits)
    return len(hits) + min(repeats, 10) / 20


def sentences(text: str) -> list[str]:
    """The sentences of running text; line breaks inside a sentence become spaces."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph.split())
        parts.extend(part.strip() for part in _SENTENCE_END.split(joined) if part.strip())
    return parts


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a document: running text, whole code blocks (fences included), its source."""

    title: str = ""
    url: str = ""
    prose: str = ""
    code: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Everything that a question may match."""
        return "\n".join((self.title, self.prose, *self.code))


@dataclass
class _Builder:
    title: str = ""
    url: str = ""
    prose: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    def section(self) -> Section:
        return Section(self.title, self.url, "\n".join(self.prose).strip(), tuple(self.code))


def sections(text: str) -> tuple[Section, ...]:
    """A document cut at its headings, at lines in brackets (a course and lesson) and at lines of exactly 32 dashes,
    never inside a code fence."""
    collected: list[Section] = []
    current = _Builder()
    lines = iter(text.splitlines())
    for line in lines:
        if _FENCE.match(line):
            current.code.append(_fenced(line, lines))
        elif title := _TITLE.match(line):
            collected.append(current.section())
            current = _Builder(title=(title["heading"] or title["place"] or "").rstrip("# "))
        else:
            _add_line(current, line)
    collected.append(current.section())
    return tuple(section for section in collected if section.prose or section.code)


def _fenced(first: str, rest: Iterator[str]) -> str:
    lines = [first]
    opened = _FENCE.match(first)
    mark = opened[1] if opened else "```"
    for line in rest:
        lines.append(line)
        if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            return "\n".join(lines)
    return "\n".join((*lines, mark))


def _add_line(current: _Builder, line: str) -> None:
    if _TAG_LINE.match(line.strip()):
        return
    url = _URL.search(line)
    if url and _SOURCE_LINE.match(line):
        current.url = current.url or url[0].rstrip(".,;")
        return
    current.prose.append(line)
