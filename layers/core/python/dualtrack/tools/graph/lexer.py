"""A query's text as tokens: one regular expression, linear in the text, and what words mean where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.engine import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHARACTERS: Final = 4_000
MAX_DEPTH: Final = 24
"""Brackets and CASEs within each other."""

MAX_NAME: Final = 200

_KEYWORDS: Final = (
    "UNION ALL OPTIONAL MATCH UNWIND AS WITH RETURN WHERE DISTINCT ORDER BY ASC ASCENDING DESC DESCENDING SKIP LIMIT "
    "OR XOR AND IN CONTAINS STARTS ENDS NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE END SHORTEST"
)
KEYWORDS: Final = frozenset(_KEYWORDS.split())
QUANTIFIERS: Final = frozenset({"ALL", "ANY", "NONE", "SINGLE"})
SUBQUERIES: Final = frozenset({"EXISTS", "COUNT"})

_TOKEN: Final = re.compile(
    r"""(?P<SPACE> \s+ | //[^\n]* | /\*(?:[^*]|\*(?!/))*+\*/ )
      | (?P<FLOAT> \d++\.\d++(?:[eE][+-]?\d+)?+(?!\w) | \d++[eE][+-]?\d++(?!\w) )
      | (?P<INTEGER> \d++(?!\w) )
      | (?P<STRING> '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" )
      | (?P<ESCAPED> `[^`]++` )
      | (?P<PARAMETER> \$[^\W\d]\w*+ )
      | (?P<WORD> [^\W\d]\w*+ )
      | (?P<SYMBOL> -> | \.\. | =~ | <> | <= | >= | [-+*/%^=<>.,:;|()\[\]{}] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "/": "/",
}
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}", "CASE": "END"}


@dataclass(frozen=True, slots=True)
class Word:
    """One token: its type in the grammar (a symbol is its own), what it says, and where it begins."""

    type: str
    text: str
    at: int


def words(text: str) -> tuple[Word, ...]:
    """The tokens of a query. Raises `QueryFailed` for what is no token, too long or nested too deep."""
    if len(text) > MAX_CHARACTERS:
        raise QueryFailed(f"a query has at most {MAX_CHARACTERS:,} characters.")
    read = tuple(_read(text))
    return _patterns_marked([_in_place(read, place) for place in range(len(read))])


def unescaped(literal: str) -> str:
    """What a string literal with its quotation marks says. Raises `QueryFailed` for an unknown escape."""
    return _ESCAPE.sub(_escape, literal[1:-1])


def _escape(found: re.Match[str]) -> str:
    code, sign = found.groups()
    said = chr(int(code, 16)) if code else _ESCAPED.get(sign)
    if said is None or "\ud800" <= said <= "\udfff":
        raise QueryFailed(f"unknown escape {found[0]!r} in a string.")
    return said


def _read(text: str) -> Iterator[Word]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise QueryFailed(f"unexpected {text[place : place + 20]!r} at character {place + 1}.")
        kind = str(found.lastgroup)
        if kind != "SPACE":
            yield Word(found[0] if kind == "SYMBOL" else kind, found[0], place)
        place = found.end()


def _in_place(read: Sequence[Word], place: int) -> Word:
    """The word with the type that it has here: most keywords are names where a name must stand."""
    word = read[place]
    if word.type == "ESCAPED":
        return Word("NAME", _name(word.text[1:-1], word.at), word.at)
    if word.type != "WORD":
        return word
    before = read[place - 1].type if place else ""
    after = read[place + 1].type if place + 1 < len(read) else ""
    return Word(_type_of(word.text, before, after), _name(word.text, word.at), word.at)


def _type_of(text: str, before: str, after: str) -> str:
    upper = text.upper() if text.isascii() else ""
    if before == ".":
        return "NAME"
    if upper in SUBQUERIES and after == "{":
        return "SUBQUERY"
    if upper in QUANTIFIERS and after == "(":
        return "QUANTIFIER"
    if upper in KEYWORDS:
        return upper
    return "FUNCTION" if after == "(" else "NAME"


def _name(text: str, at: int) -> str:
    if len(text) > MAX_NAME or not text.isprintable():
        raise QueryFailed(f"the name at character {at + 1} is too long or not printable.")
    if "\\" in text:  # a server may read \u0060 in a name as the quote that ends it
        raise QueryFailed(f"the name at character {at + 1} has a backslash.")
    return text


def _patterns_marked(read: list[Word]) -> tuple[Word, ...]:
    """With another type for each bracket that opens a pattern: one whose other end has an arrow behind it.

    ``(a)-[`` and ``(a)--``, ``(a)->``, ``(a)<-`` begin a pattern, ``(a)-(b)`` and ``(a)-1`` are differences. Inside
    an expression the grammar cannot tell them by looking one word ahead; in a MATCH both types begin a node.
    """
    marked = list(read)
    open_: list[int] = []
    for place, word in enumerate(read):
        if word.type in _CLOSED_BY:
            open_.append(place)
            if len(open_) > MAX_DEPTH:
                raise QueryFailed(f"a query is nested at most {MAX_DEPTH} levels deep.")
        elif open_ and word.type == _CLOSED_BY[read[open_[-1]].type]:
            start = open_.pop()
            if word.type == ")" and _is_arrow(read[place + 1 : place + 3]) and not _calls(read, start):
                marked[start] = Word("OPEN_NODE", "(", read[start].at)
    return tuple(marked)


def _is_arrow(next_two: Sequence[Word]) -> bool:
    kinds = tuple(word.type for word in next_two)
    return kinds in {("-", "["), ("-", "-"), ("-", "->"), ("<", "-")}


def _calls(read: Sequence[Word], start: int) -> bool:
    return start > 0 and read[start - 1].type in ("FUNCTION", "QUANTIFIER")
