"""Parts of a long text in few words: of each part the sentences with the words that are rarest in the text. Pure.

A vector of a whole window says too much for a question about one of its sentences to be near it, and a vector of every
sentence would cost too much.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.words import Terms, words
from dualtrack.memory.passages import line_of

if TYPE_CHECKING:
    from collections.abc import Iterable

CONDENSED_LIMIT: Final = 300
"""Maximum length of a condensed part."""

_SENTENCE: Final = re.compile(r"[^.!?。！？।\n]{1,300}+[.!?。！？।\n]*+")
_SHORTEST: Final = 20
"""Characters: shorter ones, such as headings and code, say little."""


def condensed(text: str, parts: Iterable[tuple[int, int]]) -> list[str]:
    """Parts of a text, by their offsets and ends, condensed, each on one line; empty if a part has no sentence."""
    terms = Terms()
    counts = Counter(words(text, terms))
    return [_condensed(text[start:end], counts, terms) for start, end in parts]


def _condensed(part: str, counts: Counter[str], terms: Terms) -> str:
    sentences = [match[0].strip() for match in _SENTENCE.finditer(part)]
    total = sum(counts.values())

    def rarity(place: int) -> float:
        listed = words(sentences[place], terms)
        return sum(math.log(total / max(counts[word], 1)) for word in listed) / (len(listed) + 2)

    chosen, room = list[int](), CONDENSED_LIMIT
    told = [place for place, sentence in enumerate(sentences) if len(sentence) >= _SHORTEST]
    for place in sorted(told, key=rarity, reverse=True):
        if len(sentences[place]) < room:
            chosen.append(place)
            room -= len(sentences[place]) + 1
    return line_of(" ".join(sentences[place] for place in sorted(chosen)))
