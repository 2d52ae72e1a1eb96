"""Finds the course that a name means, by similarity of titles in words or in meaning, if any is similar enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from dualtrack.tools.courses.ranking import comparable, cosines
from dualtrack.tools.courses.settings import DEFAULT

if TYPE_CHECKING:
    from dualtrack.tools.courses.index import Index
    from dualtrack.tools.courses.settings import CourseSettings

_WORD: Final = re.compile(r"\w+")
_SAYS_NOTHING: Final = frozenset(
    {"the", "a", "an", "of", "on", "in", "for", "to", "and", "with", "about", "course", "courses", "class"}
)


def resolve(
    index: Index, name: str, name_vector: bytes | None = None, settings: CourseSettings = DEFAULT
) -> str | None:
    """The exact title that a name means: the same title, else the most similar in words, else in meaning, else None.

    A part of a title, its initials, or a title with a typo is enough.
    ``name_vector``: float32 of the index's model.
    """
    titles = [course.title for course in index.catalogue]
    wanted = _words(name)
    if not wanted:
        return None
    same = [title for title in titles if _words(title) == wanted]
    if same:
        return same[0]
    likeness = [_likeness(wanted, _words(title)) for title in titles]
    best = max(range(len(titles)), key=likeness.__getitem__, default=None)
    if best is not None and likeness[best] >= (settings.like_in_words, 0.0):
        return titles[best]
    if index.title_vectors is not None and name_vector and comparable(index.title_vectors, name_vector):
        close = cosines(index.title_vectors, name_vector)
        if len(close) and close.max() >= settings.like_in_meaning:
            return titles[int(np.argmax(close))]
    return None


def _words(text: str) -> tuple[str, ...]:
    """The words that distinguish courses, in lower case; all words if none does."""
    all_words = _WORD.findall(text.casefold())
    return tuple(word for word in all_words if word not in _SAYS_NOTHING) or tuple(all_words)


def _likeness(name: tuple[str, ...], title: tuple[str, ...]) -> tuple[float, float]:
    """The share of the name that is in the title, and of the title that is in the name, from 0 to 1."""
    if len(name) == 1 and len(name[0]) >= 2 and name[0] in _initials(title):
        return 1.0, 0.0
    of_name, of_title = _groups(name), _groups(title)
    shared = len(of_name & of_title)
    return shared / (len(of_name) or 1), shared / (len(of_title) or 1)


def _initials(words: tuple[str, ...]) -> str:
    return "".join(word[0] for word in words)


def _groups(words: tuple[str, ...]) -> frozenset[str]:
    """The groups of three letters of each word, with a blank before and after the word."""
    return frozenset(
        marked[at : at + 3] for word in words for marked in (f" {word} ",) for at in range(len(marked) - 2)
    )
