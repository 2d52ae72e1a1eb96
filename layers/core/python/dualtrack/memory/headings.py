"""What a long text has, in a few words: the headings of a document, the keys of JSON (CONTRACT 6). Pure.

The text is foreign: what is taken from it is bounded, on one line, and without forged ids.
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import clean, neutralise, one_line, preview

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEADINGS_LIMIT: Final = 200
"""Maximum characters of all headings or keys together."""

LOOKED_AT: Final = 200_000
"""Characters of the text, from its beginning, in which they are looked for."""

_MOST: Final = 10
_ONE: Final = 40
"""Maximum characters of one of them."""

_HEADING: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3}|~{3})|(?P<marks>#{1,6})[ \t]{1,8}(?P<text>[^\n]{1,300}))"
    r"|<h(?P<level>[1-6])(?:\s[^<>]{0,200})?>(?P<html>.{1,300}?)</h(?P=level)>",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[^<>]{0,300}>")
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()]{0,300}\)")
_MARKS: Final = re.compile(r"[*`]++|\s#+\s*$")


def contents_of(text: str) -> str:
    """``(headings: Install; Log in; 12 more)`` or ``(keys: total; items)``; empty for a text that has neither."""
    head = text[:LOOKED_AT]
    if titles := _distinct(_headings(head)):
        return _listed("headings", titles)
    keys = _distinct(_keys(head)) if len(text) <= LOOKED_AT else []
    return _listed("keys", keys) if keys else ""


def _listed(what: str, titles: Sequence[str]) -> str:
    """As many of them as fit, spread over the text."""
    for count in range(min(len(titles), _MOST), 1, -1):
        chosen = [titles[place * len(titles) // count] for place in range(count)]
        if len("; ".join(chosen)) <= HEADINGS_LIMIT:
            break
    else:
        chosen = list(titles[:1])
    more = [f"{len(titles) - len(chosen)} more"] if len(titles) > len(chosen) else []
    return f"({what}: {'; '.join([*chosen, *more])})"


def _headings(text: str) -> list[str]:
    """The headings of the upper levels, in order: of Markdown outside code, and of HTML. Deeper levels are left out
    while the others are as many as are shown."""
    found: list[tuple[int, str]] = []
    is_code = False
    for match in _HEADING.finditer(text):
        if match["fence"]:
            is_code = not is_code
        elif not is_code:
            found.append((len(match["marks"] or "") or int(match["level"]), match["text"] or match["html"]))
    levels = sorted(level for level, _ in found)
    deepest = levels[min(len(levels), _MOST) - 1] if levels else 0
    return [title for level, title in found if level <= deepest]


def _keys(text: str) -> Iterator[str]:
    """The keys of a JSON object, or of the first object of a JSON array."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict):
        yield from first


def _distinct(titles: Sequence[str] | Iterator[str]) -> list[str]:
    return list(dict.fromkeys(title for raw in titles if (title := _plain(raw))))


def _plain(raw: str) -> str:
    """A title without markup, on one line."""
    plain = _MARKS.sub("", _LINK.sub(r"\1", html.unescape(_TAG.sub(" ", raw[:300]))))
    return preview(one_line(neutralise(clean(plain))).replace("[ID:", "[ ID:"), _ONE)
