"""Which of the passages that a query's tools have found its answer has used. Pure, and linear in the texts.

A source counts if the answer shares enough words with its passages, of those that were not in the question, and at
least half as many as with the best one: a word that few passages have counts more. An answer that shares words with
none, because it is in another language or says little, has the sources that it names. Measured on answers that a model
has written: docs/retrieval.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.words import Terms, words

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARED: Final = 8
"""Words that an answer shares with a passage by no accident."""
OF_ANSWER: Final = 0.75
"""The share of a short answer's words that says the same."""
OF_BEST: Final = 0.5
"""How near a source has to be to the one that was used most."""


def used_sources(
    question: str, answer: str, titles: Sequence[str], passages: Sequence[Sequence[str]]
) -> frozenset[int]:
    """The places of the sources that an answer has used; those without passages always count."""
    known = Terms()
    said = frozenset(words(answer, known)) - frozenset(words(question, known))
    shared = [frozenset(word for text in texts for word in words(text, known)) & said for texts in passages]
    holders: dict[str, int] = {}
    for words_of_one in shared:
        for word in words_of_one:
            holders[word] = holders.get(word, 0) + 1
    weights = [sum(math.log1p(len(passages) / holders[word]) for word in one) for one in shared]
    enough = [len(one) >= SHARED or len(one) >= OF_ANSWER * len(said) > 0 for one in shared]
    most = max((weight for weight, counts in zip(weights, enough, strict=True) if counts), default=0.0)
    if most:
        used = {at for at, counts in enumerate(enough) if counts and weights[at] >= OF_BEST * most}
    else:
        used = {at for at, title in enumerate(titles) if _is_named(title, answer)}
    return frozenset(used | {at for at, texts in enumerate(passages) if not texts})


def _is_named(title: str, answer: str) -> bool:
    """Whether an answer names a source: each part of its title, in any order."""
    said = f" {_plain(answer)} "
    return all(f" {_plain(part)} " in said for part in title.split(" - "))


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
