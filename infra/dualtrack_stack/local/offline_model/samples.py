"""Topics of the sample documents, so that no search for anything else is paid for."""

from __future__ import annotations

import re
from functools import cache

from dualtrack_stack.local.sample_docs.catalogue import libraries

from .prose import words

ENOUGH = 0.6
"""The share of a question's words that a section's title must have, if no library is named."""

DISTINCT = 5
"""Letters of a word that alone identifies a question's topic: "What is OAuth?", but not "Run it!"."""


def titles() -> tuple[str, ...]:
    """The sample libraries' titles."""
    return tuple(library.title for library in libraries())


def cover(question: str) -> bool:
    """Whether a sample library is named, or the title of one of its sections has most of the words."""
    if _names().search(question):
        return True
    wanted = frozenset(words(question))
    if len(wanted) == 1 and len(*wanted) < DISTINCT:
        return False
    hits = max((len(wanted & title) for title in _sections()), default=0)
    return hits >= min(2, len(wanted)) and hits >= ENOUGH * len(wanted) > 0


@cache
def _names() -> re.Pattern[str]:
    names = {
        name.strip().lower()
        for library in libraries()
        for name in (*library.aliases, *re.split(r"[()]", library.title))
        if name.strip()
    }
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)


@cache
def _sections() -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(words(f"{snippet.title} {snippet.page}"))
        for library in libraries()
        for snippet in library.snippets
    )
