"""What is a word: the one rule of all searches by words (documentation, courses, names in a graph, a conversation's
records, the list of conversations). Pure, and linear in any text.

- A word is a run of letters, digits and ``_`` of any script, with the marks on them; ``-`` and ``.`` within join it. It
  counts whole and in parts: ``setAccessToken`` is itself and set, access, token. Plural and simple verb endings are
  cut, and English stop words are left out.
- Case and accents are folded (`dualtrack.knowledge.folding`). A word that folding changes counts in its exact form
  besides, so that ``resumé`` finds both and itself first.
- Vowel signs of India's scripts are part of their words, which are not divided.
- Chinese, Japanese and Korean count by characters and pairs of them, Thai, Lao, Burmese and Khmer by one to three
  characters in a row, since they have no blanks between words. A question asks for the longest of these alone
  (`asked`).

`RULE` is stored with an index of such words: one that was made by another rule is made anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.folding import JOINING, normalised, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RULE: Final = 2
"""Without a number, texts were divided at everything but ASCII letters, digits and runs of other letters."""

_CHARACTERS: Final = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3100-\u312f\u3130-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_SYLLABLES: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3\u17dc\u17dd"
_SIGNED: Final = (
    "\u0780-\u07bf\u07c0-\u07f5\u0900-\u0963\u0966-\u0970\u0971-\u0df3\u0f00\u0f18-\u0f39\u0f3e-\u0fbc\u1700-\u1734"
    "\u1740-\u1773\u1900-\u193b\u1a00-\u1a1b\u1a20-\u1a7f\u1b00-\u1b4b\u1b80-\u1baf\u1bc0-\u1bf3\u1c00-\u1c37"
    "\ua980-\ua9c0\uaa00-\uaa4d\uabc0-\uabea\uabec\uabed\U00011000-\U00011fff"
)
"""Scripts that write vowels as signs and have blanks: those of India, Sinhala, Thaana, Tibetan, Javanese …"""

_LETTER: Final = rf"[^\W{_CHARACTERS}{_SYLLABLES}{_SIGNED}]"
_TOKEN: Final = re.compile(
    rf"{_LETTER}+(?:[{JOINING}]+{_LETTER}*|[-.]{_LETTER}+)*"
    rf"|[{_CHARACTERS}][{_CHARACTERS}{JOINING}]*"
    rf"|[{_SYLLABLES}][{_SYLLABLES}{JOINING}]*"
    rf"|[{_SIGNED}][{_SIGNED}{JOINING}]*"
)
_OF_ASCII: Final = re.compile(r"\w+(?:[-.]\w+)*", re.ASCII)
_IS_RUN: Final = re.compile(f"[{_CHARACTERS}]")
_IS_SYLLABLES: Final = re.compile(f"[{_SYLLABLES}]")
_IS_SIGNED: Final = re.compile(f"[{_SIGNED}]")

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_JOINTS: Final = re.compile(r"[-._]")
_IDENTIFIER: Final = re.compile(
    r"\b[a-z]+[A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|[A-Za-z0-9_]\(\)"
    r"|\b[a-z]\w{0,60}\.(?!(?:js|com|org|net|io|dev)\b)[a-z_]\w"
)
"""Not ``JavaScript`` or ``Node.js``, which are names of products."""

_STOPWORDS: Final = (
    "a an and are as at be by can do does for from get how i if in into is it its make my need of on or "
    "should so that the their there this to use using want was way what when where which will with would "
    "you your"
)
_STOP: Final = frozenset(_STOPWORDS.split())
_SUFFIXES: Final = (("sses", "ss"), ("ies", "y"), ("ing", ""), ("ed", ""), ("s", ""))

_RUNS: Final = re.compile(f"[{_CHARACTERS}{_SYLLABLES}]+")
_RUN_EFFORT: Final = 12
"""A character of a run has up to three terms, and few come again."""

_CACHED: Final = 64
"""Characters: a longer word or run hardly comes again."""


class Terms(dict[str, tuple[str, ...]]):
    """A cache of each word's search terms, so that a word is split once however often it occurs. ``of``: those of a
    text, or those that a question asks for."""

    def __init__(self, of: Callable[[str], Iterable[str]] | None = None) -> None:
        super().__init__()
        self._of = of or _terms

    def __missing__(self, word: str) -> tuple[str, ...]:
        """Split a new word."""
        terms = tuple(self._of(word))
        if len(word) <= _CACHED:
            self[word] = terms
        return terms


def words(text: str, known: Terms | None = None) -> list[str]:
    """The terms of a text, as often as they occur. ``known``: a cache to share between texts."""
    known = Terms() if known is None else known
    return [term for token in tokens(text) for term in known[token]]


def asked(text: str, *, parts: bool = True) -> list[str]:
    """The distinct terms of a question: of a run without blanks only the longest, as the shorter ones are everywhere.
    ``parts``: words also in parts, or only as they are written."""

    def of(token: str) -> Iterable[str]:
        return _longest(token) or (_terms(token) if parts else (token,))

    return list(dict.fromkeys(words(text, Terms(of))))


def has_identifier(text: str) -> bool:
    """Whether a question holds a name from code: ``setAccessToken``, ``snake_case``, ``server.proxy``, ``run()``."""
    return bool(_IDENTIFIER.search(text))


def effort(text: str) -> int:
    """About how many characters of English take as long to divide as the text."""
    return len(text) if text.isascii() else len(text) + _RUN_EFFORT * sum(map(len, _RUNS.findall(text)))


def tokens(text: str) -> list[str]:
    """The words of a text as they are written, and its runs without blanks."""
    return _OF_ASCII.findall(text) if text.isascii() else _TOKEN.findall(normalised(text))


def located(text: str, known: Terms) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The terms of a text with the positions where they begin, those of a run within it."""
    for match in (_OF_ASCII if text.isascii() else _TOKEN).finditer(text):
        token = match[0]
        if longest := _longest(token):
            yield from ((at, (term,)) for at, term in enumerate(longest, match.start()))
        else:
            yield match.start(), known[token]


def _terms(token: str) -> Iterator[str]:
    """The terms of a word or a run."""
    if token.isascii():
        yield from _split(token)
    elif _IS_RUN.match(token):
        yield from _in_a_row(plain(token), 2)
    elif _IS_SYLLABLES.match(token):
        yield from _in_a_row(plain(token), 3)
    elif _IS_SIGNED.match(token):
        yield plain(token)
    else:
        bare = plain(token)
        yield from _split(bare)
        yield from _exact(normalised(token).casefold(), bare)


def _longest(token: str) -> list[str]:
    """The longest terms of a run; none of a word."""
    length = 0 if token.isascii() else 2 if _IS_RUN.match(token) else 3 if _IS_SYLLABLES.match(token) else 0
    if not length:
        return []
    run = plain(token)
    return _rows(run, length) or [run]


def _in_a_row(run: str, most: int) -> Iterator[str]:
    """So many characters of the run in a row, and fewer."""
    for length in range(1, most + 1):
        yield from _rows(run, length)


def _rows(run: str, length: int) -> list[str]:
    """So many characters in a row, from each position on where there are as many."""
    return list(map("".join, zip(*(run[at:] for at in range(length)), strict=False)))


def _split(word: str) -> tuple[str, ...]:
    """A folded word, but for the case of ASCII, whole and in parts."""
    whole = word.casefold()
    parts = [part.casefold() for part in _PART.findall(word)]
    stems = [_stem(part) for part in (parts or [whole]) if part not in _STOP]
    return (whole, *stems) if len(parts) > 1 else tuple(stems)


def _exact(word: str, bare: str) -> Iterator[str]:
    """The parts of a word, in lower case, that have marks which folding takes away."""
    if word != bare.casefold():
        for part in dict.fromkeys(_JOINTS.split(word)):
            if not part.isascii() and plain(part) != part:
                yield _stem(part)


def _stem(word: str) -> str:
    """A light stem, so that "sessions" matches "session"; never shorter than three letters."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and not word.endswith(("ss", "us", "is")):
            stem = word[: -len(suffix)] + replacement
            return stem if len(stem) >= 3 else word
    return word
