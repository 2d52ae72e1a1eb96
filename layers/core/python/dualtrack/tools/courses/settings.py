"""Every parameter of the search in course materials, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

CourseRanking = Literal["hybrid", "keywords", "meaning"]
RANKINGS: Final[tuple[CourseRanking, ...]] = get_args(CourseRanking)


@dataclass(frozen=True, slots=True)
class CourseSettings:
    """``ranking``: what decides the order; without vectors, keywords do.

    ``limit``: chunks to return. ``k1`` and ``b`` are BM25's; ``rrf_k`` is that of reciprocal rank fusion, in which
    meaning counts ``meaning_weight`` times, over the first ``depth`` chunks of each ranking. A chunk that is further
    from the query in meaning than `dualtrack.knowledge.scripts.least_cosine` is left out if it has less than
    ``least_words`` of the query's words.
    ``like_in_words`` (a share of a name's letter groups) and ``like_in_meaning`` (a cosine): the similarity from which
    a name means a course's title. A word is a course's subject from ``share_of_subject`` of all its chunks on; if no
    title has it, from ``chunks_of_subject`` chunks on. ``nearest``: titles that answer a name which means none.
    ``embed_seconds``: for the query's vector. ``checked_every``: seconds between two checks for a newer index.
    """

    ranking: CourseRanking = "hybrid"
    limit: int = 5
    least_words: float = 0.3
    k1: float = 1.5
    b: float = 0.75
    rrf_k: int = 10
    meaning_weight: int = 2
    depth: int = 50
    like_in_words: float = 0.6
    like_in_meaning: float = 0.45
    share_of_subject: float = 0.75
    chunks_of_subject: int = 3
    nearest: int = 3
    embed_seconds: float = 10.0
    checked_every: float = 3.0


DEFAULT: Final = CourseSettings()


def course_settings(ranking: str) -> CourseSettings:
    """The settings with the ranking of ``DUALTRACK_COURSE_RANKING``; the default if empty or unknown."""
    chosen = next((known for known in RANKINGS if known == ranking), DEFAULT.ranking)
    return replace(DEFAULT, ranking=chosen)
