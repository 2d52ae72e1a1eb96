"""The course whose subject a name is: by its title, its lessons' titles, initials, and words of its text."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualtrack.knowledge.folding import folded, plain
from dualtrack.knowledge.words import asked, tokens, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.settings import CourseSettings
    from dualtrack.tools.courses.values import Course

    Array = NDArray[Any]
    CourseNumbers = frozenset[int]

_JOINT: Final = re.compile(r"[-.]")
_SAYS_NOTHING: Final = frozenset(
    {"the", "a", "an", "of", "on", "in", "for", "to", "and", "with", "about", "course", "courses", "class"}
)
_MAX_WORDS: Final = 12
_WRITTEN_OUT: Final = {"rag": "retrieval", "db": "database", "js": "javascript", "k8s": "kubernetes"}
"""Short forms of subjects that texts write out."""

_SHORTEST_MISSPELT: Final = 5
_ALIKE: Final = 0.85
"""From this ratio of `difflib` on, an unknown word is a known one with a typing error."""


@dataclass
class Subjects:
    """What the words of a name say about the courses of an index, by their positions in the catalogue.

    A course owns the words of its title. A word of no title is owned by the course that has nearly all chunks with it
    (``share_of_subject``), if it has ``chunks_of_subject`` of them, or the word is in a lesson's title or is initials
    of the course's title.
    """

    index: CourseIndex
    settings: CourseSettings

    def course_of(self, name: Sequence[str]) -> int | None:
        """The one course to which all words belong; None if none or several fit.

        At least one word is owned by it, and none by others alone; the rest is in its text. Or the title of one of its
        lessons has all the words.
        """
        if not 0 < len(name) <= _MAX_WORDS:
            return None
        wanted = [self._spelt(word) for word in name]
        owned = [self._owners(word) for word in wanted]
        courses = self._with_lesson(wanted) if len(wanted) > 1 else frozenset()
        if any(owned):
            texts = [own or self._in_text(word) for own, word in zip(owned, wanted, strict=True)]
            courses |= frozenset.intersection(*texts)
        return next(iter(courses)) if len(courses) == 1 else None

    def is_contradicted(self, name: Sequence[str], course: int) -> bool:
        """Whether a word of the name is owned by other courses alone."""
        owned = (self._owners(word) for word in name[:_MAX_WORDS])
        return any(courses and course not in courses for courses in owned)

    def _owners(self, word: str) -> CourseNumbers:
        terms = _terms(word)
        if titled := self._titled(terms):
            return titled
        counts = self._counts(word)
        if not counts.any():
            return self._where(lambda at: word.isupper() and word in self._initials[at])
        most = int(counts.argmax())
        is_subject = counts[most] >= self.settings.share_of_subject * counts.sum() and (
            counts[most] >= self.settings.chunks_of_subject
            or word.upper() in self._initials[most]
            or any(terms <= lesson for lesson in self._lessons[most])
        )
        return frozenset({most}) if is_subject else frozenset()

    def _titled(self, terms: frozenset[str]) -> CourseNumbers:
        return self._where(lambda at: bool(terms) and terms <= self._titles[at])

    def _with_lesson(self, name: Sequence[str]) -> CourseNumbers:
        terms = frozenset[str]().union(*map(_terms, name))
        return self._where(lambda at: any(terms <= lesson for lesson in self._lessons[at]))

    def _in_text(self, word: str) -> CourseNumbers:
        return frozenset(np.flatnonzero(self._counts(word)).tolist())

    def _where(self, fits: Callable[[int], bool]) -> CourseNumbers:
        return frozenset(at for at in range(len(self.index.catalogue)) if fits(at))

    def _counts(self, word: str) -> Array:
        """How many chunks of each course have the word, in any of its forms; of a compound, the whole; of a run
        without blanks, all that a search asks for."""
        whole, stems = asked(plain(word), parts=False), words(plain(word))
        if len(whole) > 1:
            rows = reduce(np.intersect1d, map(self._rows, whole))
        else:
            forms = {folded(word), *(() if len(stems) > 1 else (*stems, *_terms(word)))}
            rows = np.unique(np.concatenate([*map(self._rows, forms)]))
        return np.bincount(self.index.courses[rows], minlength=len(self.index.catalogue))

    def _rows(self, term: str) -> Array:
        """The chunks with a search term."""
        postings, number = self.index.postings, self.index.postings.find(term)
        if number is None:
            return np.empty(0, np.uint32)
        return postings.chunks[postings.firsts[number] : postings.firsts[number + 1]]

    def _spelt(self, word: str) -> str:
        """The word; its long form; or, if no course knows it, the word of a title that it is with a typing error."""
        long = _WRITTEN_OUT.get(folded(word), word)
        if long != word or len(word) < _SHORTEST_MISSPELT or self._owners(word) or self._counts(word).any():
            return long
        near = [known for known in self._vocabulary if abs(len(known) - len(word)) <= 1]
        return next(iter(difflib.get_close_matches(folded(word), near, 1, _ALIKE)), word)

    @cached_property
    def _titles(self) -> list[frozenset[str]]:
        return [_terms(course.title) for course in self.index.catalogue]

    @cached_property
    def _initials(self) -> list[str]:
        titles = (telling(course.title) for course in self.index.catalogue)
        return ["".join(word[0] for word in title).upper() for title in titles]

    @cached_property
    def _lessons(self) -> list[list[frozenset[str]]]:
        return [[_terms(lesson.title) for lesson in course.lessons] for course in self.index.catalogue]

    @cached_property
    def _vocabulary(self) -> list[str]:
        """The words of all titles, in lower case."""
        titles = (title for course in self.index.catalogue for title in _titles_of(course))
        return list({folded(word) for title in titles for word in telling(title)})


def telling(text: str) -> tuple[str, ...]:
    """The words that distinguish courses; all words if none does."""
    all_words = [part for token in tokens(text) for part in _JOINT.split(token)]
    return tuple(word for word in all_words if folded(word) not in _SAYS_NOTHING) or tuple(all_words)


def _titles_of(course: Course) -> Iterator[str]:
    yield course.title
    yield from (lesson.title for lesson in course.lessons)


@lru_cache(maxsize=4_096)
def _terms(text: str) -> frozenset[str]:
    """The folded search terms of a text, stemmed twice: ``embeddings`` and ``embedding`` are the same."""
    return frozenset(words(" ".join(words(plain(text)))))
