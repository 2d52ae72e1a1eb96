"""Finds the course that a name means: by title, by subject or in meaning, if any is similar enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.knowledge.folding import folded
from dualtrack.knowledge.scripts import knows
from dualtrack.knowledge.vectors import comparable, cosines
from dualtrack.tools.courses.settings import DEFAULT
from dualtrack.tools.courses.subjects import Subjects, telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.settings import CourseSettings

    Array = NDArray[Any]


def resolve(
    index: CourseIndex, name: str, name_vector: bytes | None = None, settings: CourseSettings = DEFAULT
) -> str | None:
    """The exact title that a name means: the same title, else the most similar in words, else that of the one course
    whose subject it is, else the most similar in meaning, else None.

    A part of a title, its initials, a title with a typo, a lesson's title or a subject is enough.
    ``name_vector``: float32 of the index's model.
    """
    titles = [course.title for course in index.catalogue]
    said = telling(name)
    if not said:
        return None
    likeness = _likenesses(said, titles)
    best = max(range(len(titles)), key=likeness.__getitem__, default=0)
    if titles and likeness[best] == (1.0, 1.0):
        return titles[best]
    subjects = Subjects(index, settings)
    if (
        titles
        and likeness[best] >= (settings.like_in_words, 0.0)
        and not subjects.is_contradicted(said, best)
    ):
        return titles[best]
    if (course := subjects.course_of(said)) is not None:
        return titles[course]
    close = _in_meaning(index, name, name_vector)
    if close is not None and close.max() >= settings.like_in_meaning:
        return titles[int(np.argmax(close))]
    return None


def nearest(
    index: CourseIndex, name: str, name_vector: bytes | None = None, settings: CourseSettings = DEFAULT
) -> tuple[str, ...]:
    """The titles nearest to a name that means none, best first, at most ``settings.nearest``: alike in words or, if
    there are vectors, in meaning, as far as each counts for `resolve`."""
    titles = [course.title for course in index.catalogue]
    in_words = [share / settings.like_in_words for share, _ in _likenesses(telling(name), titles)]
    close = _in_meaning(index, name, name_vector)
    in_meaning = [0.0] * len(titles) if close is None else (close / settings.like_in_meaning).tolist()
    order = sorted(range(len(titles)), key=lambda at: -max(in_words[at], in_meaning[at]))
    return tuple(titles[at] for at in order[: settings.nearest])


def _in_meaning(index: CourseIndex, name: str, name_vector: bytes | None) -> Array | None:
    """The cosine of each title to the name; None without vectors, or if the model does not know its script."""
    known = name_vector if name_vector and knows(index.model, name) else None
    if index.title_vectors is None or not len(index.title_vectors) or known is None:
        return None
    return cosines(index.title_vectors, known) if comparable(index.title_vectors, known) else None


def _likenesses(said: tuple[str, ...], titles: Sequence[str]) -> list[tuple[float, float]]:
    wanted = tuple(map(folded, said))
    return [_likeness(wanted, tuple(map(folded, telling(title)))) for title in titles]


def _likeness(name: tuple[str, ...], title: tuple[str, ...]) -> tuple[float, float]:
    """The share of the name that is in the title, and of the title that is in the name, from 0 to 1."""
    of_name, of_title = _groups(name), _groups(title)
    shared = len(of_name & of_title)
    return shared / (len(of_name) or 1), shared / (len(of_title) or 1)


def _groups(words: tuple[str, ...]) -> frozenset[str]:
    """The groups of three letters of each word, with a blank before and after the word."""
    return frozenset(
        marked[at : at + 3] for word in words for marked in (f" {word} ",) for at in range(len(marked) - 2)
    )
