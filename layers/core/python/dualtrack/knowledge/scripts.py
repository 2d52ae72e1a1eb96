"""Whether an embedding model knows the script of a question. Pure."""

from __future__ import annotations

import re
from typing import Final

_OF_ENGLISH: Final = "all-MiniLM-L6-v2"
"""How the names of the local model begin (`dualtrack.knowledge.minilm`), which has learnt English: it knows the letters
of other scripts, and no words of them. Models behind a key are multilingual."""

_LEAST_OF_ENGLISH: Final = 0.22
"""Chosen on the sample courses: no passage that answers a question is below it and has few of its words, and most of
what is found for "Thanks!" and the like is (docs/retrieval.md)."""

_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_SHARE: Final = 0.5
"""Chosen before it was measured: a question of which less than half is in letters that the model knows."""


def least_cosine(model: str) -> float:
    """The cosine below which a text has nothing to do with a question by this model; -1 where it was not measured."""
    return _LEAST_OF_ENGLISH if model.startswith(_OF_ENGLISH) else -1.0


def knows(model: str, question: str) -> bool:
    """Whether the model's ranking of texts for the question counts: at least half of its letters are of scripts that
    the model knows, or it has none."""
    letters = len(_LETTER.findall(question))
    return not model.startswith(_OF_ENGLISH) or len(_LATIN.findall(question)) >= _SHARE * letters
