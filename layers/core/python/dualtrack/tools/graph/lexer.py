"""A query's text as tokens: one regular expression, linear in the text, then each word's type from its neighbours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unicodedata import category

from dualtrack.tools.graph.engine import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHARACTERS: Final = 4_000
MAX_DEPTH: Final = 24
"""Maximum nesting of brackets and CASEs."""

MAX_NAME: Final = 200

_KEYWORDS: Final = (
    "UNION ALL OPTIONAL MATCH UNWIND AS WITH RETURN WHERE DISTINCT ORDER BY ASC ASCENDING DESC DESCENDING SKIP LIMIT "
    "OR XOR AND IN CONTAINS STARTS ENDS NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE END SHORTEST"
)
KEYWORDS: Final = frozenset(_KEYWORDS.split())
QUANTIFIERS: Final = frozenset({"ALL", "ANY", "NONE", "SINGLE"})
SUBQUERIES: Final = frozenset({"EXISTS", "COUNT"})

_MARKS: Final = [sign for sign in map(chr, range(0x300, 0x10000)) if category(sign) in ("Mn", "Mc")]
"""Vowel signs and other marks, which stand in words and are no letters to the regular expressions."""

_TOKEN: Final = re.compile(
    r"""(?P<SPACE> \s+ | //[^\n]* | /\*(?:[^*]|\*(?!/))*+\*/ )
      | (?P<FLOAT> \d++\.\d++(?:[eE][+-]?\d+)?+(?!\w) | \d++[eE][+-]?\d++(?!\w) )
      | (?P<INTEGER> \d++(?!\w) )
      | (?P<STRING> '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" )
      | (?P<ESCAPED> `[^`]++` )
      | (?P<PARAMETER> \$[^\W\d]\w*+ )
      | (?P<WORD> [^\W\d][\wMARKS]*+ )
      | (?P<SYMBOL> -> | \.\. | =~ | <> | <= | >= | [-+*/%^=<>.,:;|()\[\]{}] )
    """.replace("MARKS", "".join(_MARKS)),
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
    """A token: its type in the grammar (a symbol's type is the symbol), its text, and its offset."""

    type: str
    text: str
    at: int


def words(text: str) -> tuple[Word, ...]:
    """The tokens of a query. Raises `QueryFailed` if it is too long, nested too deep, or has an invalid token."""
    if len(text) > MAX_CHARACTERS:
        raise QueryFailed(f"a query has at most {MAX_CHARACTERS:,} characters.")
    read = tuple(_read(text))
    return _patterns_marked([_typed(read, index) for index in range(len(read))])


def unescaped(literal: str) -> str:
    """The value of a quoted string literal. Raises `QueryFailed` for an unknown escape."""
    return _ESCAPE.sub(_escape, literal[1:-1])


def _escape(match: re.Match[str]) -> str:
    code, sign = match.groups()
    character = chr(int(code, 16)) if code else _ESCAPED.get(sign)
    if character is None or "\ud800" <= character <= "\udfff":
        raise QueryFailed(f"unknown escape {match[0]!r} in a string.")
    return character


def _read(text: str) -> Iterator[Word]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise QueryFailed(f"unexpected {text[position : position + 20]!r} at character {position + 1}.")
        kind = str(match.lastgroup)
        if kind != "SPACE":
            yield Word(match[0] if kind == "SYMBOL" else kind, match[0], position)
        position = match.end()


def _typed(read: Sequence[Word], index: int) -> Word:
    """The word with its type in this context: most keywords are names where the grammar wants a name."""
    word = read[index]
    if word.type == "ESCAPED":
        return Word("NAME", _name(word.text[1:-1], word.at), word.at)
    if word.type != "WORD":
        return word
    before = read[index - 1].type if index else ""
    after = read[index + 1].type if index + 1 < len(read) else ""
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
    """Gives each bracket that opens a pattern, with an arrow after its closing bracket, a type of its own.

    ``(a)-[`` and ``(a)--``, ``(a)->``, ``(a)<-`` begin a pattern; ``(a)-(b)`` and ``(a)-1`` are subtractions. In an
    expression the grammar cannot tell them apart with one token of lookahead; in a MATCH both types begin a node.
    """
    marked = list(read)
    open_: list[int] = []
    for index, word in enumerate(read):
        if word.type in _CLOSED_BY:
            open_.append(index)
            if len(open_) > MAX_DEPTH:
                raise QueryFailed(f"a query is nested at most {MAX_DEPTH} levels deep.")
        elif open_ and word.type == _CLOSED_BY[read[open_[-1]].type]:
            start = open_.pop()
            if word.type == ")" and _is_arrow(read[index + 1 : index + 3]) and not _calls(read, start):
                marked[start] = Word("OPEN_NODE", "(", read[start].at)
    return tuple(marked)


def _is_arrow(next_two: Sequence[Word]) -> bool:
    kinds = tuple(word.type for word in next_two)
    return kinds in {("-", "["), ("-", "-"), ("-", "->"), ("<", "-")}


def _calls(read: Sequence[Word], start: int) -> bool:
    return start > 0 and read[start - 1].type in ("FUNCTION", "QUANTIFIER")
