"""A digest of the older part of a conversation: its records by their sentences with most facts, and the standing
instructions of the user by their words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .prose import sentences, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIMIT = 3_500
_RECORD = re.compile(r"^(q\d+(?:-[rt]\d*)?)(?:-sum)?: (.*)$", re.MULTILINE)
_QUERY = re.compile(r"q\d+")
_LISTED = re.compile(r"^(\d+)\. (q\d+): (.*)$", re.MULTILINE)
_STANDING = re.compile(r"\b(?:always|never|from now on|prefer|call me)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\b(?:no longer|not any ?more|any longer|stop|again|forget|instead)\b", re.IGNORECASE
)


def is_asked_for(system: str) -> bool:
    """Whether the request is for a digest."""
    return system.lstrip().startswith("Summarise the older part of a conversation")


def written(source: str, extract: Callable[[str, int], str]) -> str:
    """The answer in the form that the request asks for. ``extract``: the best sentences of a record."""
    head, _, then = source.partition("Then:\n")
    listed = _LISTED.findall(head)
    records = _RECORD.findall(then)
    asked = [(own, said) for own, text in records if _QUERY.fullmatch(own) for said in sentences(text)]
    changes = [*_added(asked, {said for _, _, said in listed}), *_dropped(asked, listed)]
    return "\n".join([*changes, "DIGEST", _summary(records, extract)])


def _added(asked: list[tuple[str, str]], known: set[str]) -> Iterator[str]:
    for own, said in asked:
        if _STANDING.search(said) and not said.endswith("?") and said not in known:
            yield f'ADD {own} "{said}"'


def _dropped(asked: list[tuple[str, str]], listed: list[tuple[str, str, str]]) -> Iterator[str]:
    """Lines of which a later message speaks with the words of an end."""
    for own, said in asked:
        for number, query, line in listed:
            shared = set(words(said)) & set(words(_STANDING.sub(" ", line)))
            if _TAKEN_BACK.search(said) and shared and int(own[1:]) > int(query[1:]) and said != line:
                yield f'DROP {number} {own} "{said}"'


def _summary(records: list[tuple[str, str]], extract: Callable[[str, int], str]) -> str:
    """The newest records that fit, in their order."""
    kept: list[str] = []
    left = _LIMIT
    for own, text in reversed(records):
        piece = f"{own}: {extract(text, 1)}"
        left -= len(piece) + 1
        if left < 0:
            break
        kept.append(piece)
    return " ".join(reversed(kept)) or "Nothing was said."
