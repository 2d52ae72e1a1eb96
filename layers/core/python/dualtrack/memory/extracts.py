"""What stands for a long record of which no model wrote a note or a summary: its beginning, and the passages that share
words with the query and its answer, the rarest words first (CONTRACT 6). Pure.

    Limits of all plans, by tenant.… Marmot may send 7,413 requests a minute.… | Marmot | eu-west | 429 |…

A passage is a sentence or a line; in a text that has neither, what stands around the word. The text is foreign and may
be long: a bounded part of it is read, once, and what is kept of it are counts of the words that are sought, and places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dualtrack.frozen import dumps
from dualtrack.ids import kind_of
from dualtrack.knowledge.words import Terms, asked, located, words
from dualtrack.memory.passages import line_of
from dualtrack.text import LINE_BREAKS, neutralise, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.memory.records import Record

    Said = Mapping[str, frozenset[str]]
    """The words of a query and of its answer, by their ids."""

EXTRACT_LIMIT: Final = 300
"""Maximum characters of the beginning and the passages together; the end of a query has as many."""

LOOKED_AT: Final = 200_000
"""Characters of a record in which passages are looked for: of a longer one three quarters at its beginning, and its
end, where a log says what went wrong."""

LOOKED_AT_IN_ALL: Final = 800_000
"""The same of all records of a query, half a second, which a follow-up may wait."""

_SAID: Final = 50_000
"""Characters of a query and of an answer whose words are sought."""

_BEGINNING: Final = 100
"""Characters of the beginning that stand in any case; more, up to the end of a sentence, if a passage still fits."""

_PASSAGE: Final = 160
"""Maximum characters of a passage."""

_BEFORE: Final = 100
_AROUND: Final = 60
"""Characters before a word in which its passage may begin, and at which it begins where no sentence does."""

_MOST: Final = 4
"""Maximum number of passages."""

_RARE: Final = 8
"""A word that occurs more often tells no passage from another."""

_WORTH: Final = 1_000
"""What a word counts that occurs once; one that occurs twice counts a quarter of it. In whole numbers, since the sum of
others depends on their order, and that of a set is another in each process."""

_RAREST: Final = 200
"""Maximum number of words whose passages are compared."""

_LONG_WORD: Final = 40
"""Characters: a longer run, such as a sentence without blanks, may be cut."""

_GAP: Final = "… "

_END: Final = re.compile(rf"[.!?…][\"'”’)\]]{{0,3}}(?=\s)|[。！？।]|[{LINE_BREAKS}]")
_WORD: Final = re.compile(rf"\S{{1,{EXTRACT_LIMIT}}}+")


@dataclass(slots=True)
class _Word:
    """A word that is sought: how often it occurs, and its first places."""

    count: int = 0
    places: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A piece of the text, on one line as it is shown, and the words that it shares."""

    start: int
    end: int
    line: str
    shared: frozenset[str]

    def is_apart(self, others: Sequence[_Passage]) -> bool:
        """Whether it has nothing in common with the others."""
        return all(self.end <= other.start or other.end <= self.start for other in others)


def extracts_of(long: Sequence[Record], records: Sequence[Record]) -> dict[str, str]:
    """Those of ``long`` records of a query, by id. ``records``: all of the query, with its answer if it has one."""
    said = _words_said(records) if long else {}
    return {each.record_id: extract(each, said, LOOKED_AT_IN_ALL // len(long)) for each in long}


def _words_said(records: Sequence[Record]) -> Said:
    """What stands for a missing answer says nothing."""
    return {
        record.record_id: frozenset(asked(record.content[:_SAID]))
        for record in records
        if (kind := kind_of(record.record_id)) == "query" or (kind == "response" and record.stop)
    }


def extract(record: Record, said: Said, most: int = LOOKED_AT) -> str:
    """A tool's input, the beginning of the record, and the passages that share words with what is ``said`` in the
    query's other messages. Of a query also its end, since the question often follows pasted text. ``most``: characters
    that are looked at, no more than `LOOKED_AT`."""
    head = f"{dumps(record.call.input)[:120]}: " if record.call else ""
    text, tail = neutralise(record.content), ""
    if kind_of(record.record_id) == "query":
        text, tail = text[:-EXTRACT_LIMIT], f" {one_line(text)[-EXTRACT_LIMIT:]}"
    sought = frozenset(word for other, own in said.items() if other != record.record_id for word in own)
    return f"{head}{_shortened(text, sought, min(most, LOOKED_AT))}{tail}"


def _shortened(text: str, sought: frozenset[str], most: int) -> str:
    """The beginning and the passages, with ``…`` for what is left out."""
    chosen = _chosen(text, sought, most)
    room = EXTRACT_LIMIT - sum(len(passage.line) + len(_GAP) for passage in chosen)
    end = min([_reached(text, room), *(passage.start for passage in chosen[:1])])
    shown = one_line(text[:end])
    for passage in chosen:
        between = text[end : passage.start]
        shown += f"{_GAP if between.strip() else ' ' if between else ''}{passage.line}"
        end = passage.end
    return f"{shown}…" if text[end:].strip() else shown


def _chosen(text: str, sought: frozenset[str], most: int) -> list[_Passage]:
    """The passages in their order. Each is the one whose words, as far as they are not shown yet, count most: a word
    counts the more, the rarer it is in the text."""
    begun = _beginning(text)
    found = _found(text, sought, most)
    shown = set(words(text[:begun]))
    passages = list(_passages(text, begun, found))
    room, chosen = EXTRACT_LIMIT - len(one_line(text[:begun])), list[_Passage]()

    def worth(passage: _Passage) -> int:
        return sum(_WORTH // found[word].count ** 2 for word in passage.shared if word not in shown)

    while len(chosen) < _MOST:
        passages = [
            each
            for each in passages
            if len(each.line) + len(_GAP) <= room
            and not shown.issuperset(each.shared)
            and each.is_apart(chosen)
        ]
        if not passages:
            break
        best = max(passages, key=worth)
        chosen.append(best)
        shown |= best.shared
        room -= len(best.line) + len(_GAP)
    return sorted(chosen, key=lambda passage: passage.start)


def _found(text: str, sought: frozenset[str], most: int) -> dict[str, _Word]:
    """The words that are sought, as they occur in the part that is looked at."""
    found: dict[str, _Word] = {}
    head = len(text) if len(text) <= most else most - most // 4
    terms = Terms()
    for start, end in ((0, head), (max(head, len(text) - most // 4), len(text))):
        for at, said in located(text[start:end], terms):
            for word in sought.intersection(said):
                own = found.setdefault(word, _Word())
                own.count += 1
                if own.count <= _RARE:
                    own.places.append(start + at)
    return found


def _passages(text: str, begun: int, found: Mapping[str, _Word]) -> Iterator[_Passage]:
    """Those around the rarest words, behind the beginning, each once."""
    rare = [own for own in found.values() if own.count <= _RARE]
    rare.sort(key=lambda own: (own.count, own.places))
    places = dict.fromkeys(place for own in rare[:_RAREST] for place in own.places if place >= begun)
    terms, sought = Terms(), frozenset(found)
    for start, end in dict.fromkeys(_span(text, place, begun) for place in places):
        line = line_of(text[start:end])
        yield _Passage(start, end, line, sought.intersection(words(line, terms)))


def _span(text: str, place: int, begun: int) -> tuple[int, int]:
    """Where the sentence or line of a word begins and ends, without the blanks around it; at most `_PASSAGE`
    characters of it."""
    low = max(begun, place - _BEFORE)
    ends = [match.end() for match in _END.finditer(text, low, place)]
    if ends or low == begun:
        start = ends[-1] if ends else begun
    else:
        start = place - _AROUND
        start = text.find(" ", start, place) + 1 or start
    until = min(start + _PASSAGE, len(text))
    if end := _END.search(text, place, until):
        until = end.end()
    elif until < len(text) and (blank := text.rfind(" ", place, until)) > 0:
        until = blank
    piece = text[start:until]
    return until - len(piece.lstrip()), start + len(piece.rstrip())


def _beginning(text: str) -> int:
    """Where the beginning ends that stands in any case: with a sentence, if one ends soon."""
    least = _reached(text, _BEGINNING)
    end = _END.search(text, least, least + EXTRACT_LIMIT - len(_GAP) - _PASSAGE - _BEGINNING)
    return end.end() if end else least


def _reached(text: str, most: int) -> int:
    """Where the beginning ends that has at most so many characters on one line."""
    shown = end = 0
    for word in _WORD.finditer(text):
        room = most - shown - (1 if shown else 0)
        if len(word[0]) > room:
            return word.start() + max(room, 0) if len(word[0]) > _LONG_WORD else end
        shown, end = most - room + len(word[0]), word.end()
    return end
