"""The excerpt of a passage that best matches a query. Pure, and linear in the passage's length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.knowledge.words import Terms, located
from dualtrack.text import neutralise

if TYPE_CHECKING:
    from collections.abc import Collection


def excerpt(text: str, wanted: Collection[str], limit: int) -> str:
    """At most ``limit`` characters of the text with as many distinct ``wanted`` terms (`words.asked`) as possible;
    its beginning if it has none. Cut ends are marked with ``…``."""
    start = _start(text, wanted, limit)
    end = min(len(text), start + limit - 2)
    if start:
        blank = text.find(" ", start, end)
        start = blank + 1 if start <= blank < start + 20 else start
    shown = neutralise(text[start:end].strip()).replace("[ID:", "[ ID:")
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _start(text: str, wanted: Collection[str], limit: int) -> int:
    """The start of the best window: the first one with the most distinct terms."""
    if len(text) <= limit - 2:
        return 0
    sought, found = frozenset(wanted), located(text, Terms())
    matches = [
        (position, [term for term in said if term in sought])
        for position, said in found
        if not sought.isdisjoint(said)
    ]
    if not matches:
        return 0
    counts: dict[str, int] = {}
    best, best_start, first = 0, 0, 0
    for position, terms in matches:
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
        while position - matches[first][0] > limit // 2:
            for term in matches[first][1]:
                counts[term] -= 1
                if not counts[term]:
                    del counts[term]
            first += 1
        if len(counts) > best:
            best, best_start = len(counts), matches[first][0]
    return max(0, min(best_start - limit // 4, len(text) - limit + 2))
