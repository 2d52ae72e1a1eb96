"""The user's standing instructions and preferences: a part of a digest of its own, in their words (CONTRACT 6). Pure.

    q3   Always answer in French, please.     found by rule, or named by the digest's writer
    q9   You may answer in English again.     with these words the writer may take the line of q3 back

What the user's queries do not say is never a line: who writes a digest only names words, and what is kept is the
sentence of the query in which they stand. Code carries the lines over, whatever the writer forgets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import stored
from dualtrack.ids import parse_record_id, query_id
from dualtrack.text import cautious_tokens, clean, neutralise, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack.memory.records import QueryTrack

STANDING_LIMIT: Final = 1_500
"""Maximum characters of all lines together; beyond it the oldest are left out."""

LINE_LIMIT: Final = 400
"""A longer sentence is no line."""

_MOST: Final = 100
"""Maximum number of lines: more could not fit."""

_BY_RULE: Final = 3
"""Maximum number of sentences of a query that are found by rule."""

_ENDS: Final = 600
"""Characters of a long query, at its beginning and at its end, that are looked at."""

_LEAST: Final = 4
"""Letters and digits that words must have to be looked for."""

_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_PARAGRAPH: Final = re.compile(r"\n[ \t\r]*\n")
_PASTED: Final = re.compile(r"^ {0,3}(`{3}|~{3}).*?(?:^ {0,3}\1|\Z)|^ {0,3}>[^\n]*", re.MULTILINE | re.DOTALL)
_POLITE: Final = r"(?:(?:please|and|also|but|so|oh|ok|okay|one more thing|note|important|remember|btw)\b[\s,:!.–-]{0,4}){0,3}"
_PAST: Final = r"(?:got|had|did|was|were|saw|said|knew|heard|\w{1,30}ed)\b"
_DO: Final = (
    r"(?:answer|reply|respond|write|speak|talk|use|keep|send|show|give|add|put|start|begin|end|format|deploy|run|test|check"
    r"|ask|call|antworte|schreibe?|sprich|verwende|benutze|nutze|réponds|répondez|écris|écrivez|utilise|utilisez"
    r"|responde|responda|escribe|escriba|usa|use|rispondi|scrivi)"
)
_FROM_NOW_ON: Final = (
    r"from now on|from here on|going forward|henceforth|until (?:further notice|i (?:say|tell))"
    r"|for the rest of (?:this|our|the) (?:conversation|chat)"
    r"|in (?:all|each|every one) (?:of )?(?:your|the) (?:\w+ )?(?:answers|replies|responses|messages)"
    r"|ab jetzt|ab sofort|von nun an|désormais|dorénavant|à partir de maintenant|de ahora en adelante"
    r"|a partir de ahora|d'ora in poi|a partir de agora"
)
_STANDING: Final = re.compile(
    rf"^{_POLITE}(?:always|never(?! ?mind)|don'?t ever|do not ever|whenever i|every time i|each time i|by default"
    rf"|in (?:the )?future,|no longer|stop \w{{1,20}}ing)\b"
    rf"|^{_POLITE}(?:i|we) (?:always|never|generally|usually) (?!{_PAST})\w"
    rf"|^{_POLITE}(?:i(?:'d| would)? (?:strongly |much |really )?prefer|my preference is|call me)\b"
    rf"|^{_POLITE}(?:remember|keep in mind|bear in mind)(?: that)? (?:i|we|my|our|to)\b"
    rf"|^{_POLITE}{_DO} (?:[^.!?]{{1,80}} )?(?:always|immer|stets|niemals|toujours|jamais|siempre|nunca|sempre)\b"
    rf"|\b(?:you|we|i) (?:should|must|may|shall) (?:always|never|no longer)\b|\bplease (?:always|never)\b"
    rf"|^(?:bitte )?(?:immer|nie|niemals)\b|^(?:toujours|jamais|siempre|nunca|sempre)\b|\b(?:{_FROM_NOW_ON})\b"
    r"|总是|永远|始终|從現在起|从现在起|从现在开始|以后请|必ず|いつも|今後|これから",
    re.IGNORECASE,
)


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence of the query with this number, word for word."""

    query: int
    words: str


@stored
@dataclass(frozen=True, slots=True)
class Standing:
    """The lines in the order of their queries, and how many older ones were left out for room."""

    lines: tuple[Instruction, ...] = ()
    left_out: int = 0

    @property
    def text(self) -> str:
        """The part of the digest, on one line; empty without lines."""
        if not self.lines:
            return ""
        said = "; ".join(f'{query_id(line.query)}: "{line.words}"' for line in self.lines)
        older = f" ({self.left_out} older ones are left out.)" if self.left_out else ""
        return f"The user's standing instructions, word for word (a later one prevails): {said}.{older}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What a digest's writer says of the lines: what to add; and which listed ones, counted from 1, the user has taken
    back with which words."""

    added: tuple[Instruction, ...] = ()
    taken_back: tuple[tuple[int, Instruction], ...] = ()


def asked_in(tracks: Iterable[QueryTrack]) -> dict[int, tuple[str, ...]]:
    """The user's sentences by query: of a long query those that were found when it was summarised."""
    return {
        track.query: block.instructions if block.ref else tuple(_sentences(block.content))
        for track in tracks
        for block in track.blocks
        if (parsed := parse_record_id(block.record_id)) and parsed.kind == "query"
    }


def found_by_rule(sentences: Iterable[str]) -> tuple[str, ...]:
    """Sentences that plainly ask for something once and for all."""
    asks = (said for said in sentences if not said.endswith(("?", "？")))
    found = [said for said in asks if _STANDING.search(said.replace("’", "'"))]
    return tuple(found[:_BY_RULE])


def found_at_the_ends(query: str) -> tuple[str, ...]:
    """The same of a long query, in its first and its last paragraph: between them stands what was pasted."""
    first, last = query[:_ENDS], query[-_ENDS:]
    opening, closing = _PARAGRAPH.split(first)[0], _PARAGRAPH.split(last)[-1]
    before, after = list(_sentences(opening)), list(_sentences(closing))
    return found_by_rule(
        (*(before[:-1] if opening == first else before), *(after[1:] if closing == last else after))
    )


def listed(base: Standing, asked: Mapping[int, Sequence[str]]) -> tuple[Instruction, ...]:
    """The lines before the writer's changes: those of the digest before, and what is found by rule."""
    found = (Instruction(query, said) for query, of in asked.items() for said in found_by_rule(of))
    return _distinct((*base.lines, *found))


def standing_after(
    base: Standing, asked: Mapping[int, Sequence[str]], changes: Changes, tokens: int
) -> Standing:
    """The lines after it, in at most `STANDING_LIMIT` characters and so many tokens.

    A change counts if its words stand in a query; a line is taken back only by a later query.
    """
    before = listed(base, asked)
    gone = {
        number
        for number, proof in changes.taken_back
        if 0 < number <= len(before) and proof.query > before[number - 1].query and any(_quoted(proof, asked))
    }
    kept = (line for number, line in enumerate(before, start=1) if number not in gone)
    added = (line for wanted in changes.added for line in _quoted(wanted, asked))
    return _within(_distinct((*kept, *added)), base.left_out, tokens)


def _within(lines: tuple[Instruction, ...], left_out: int, tokens: int) -> Standing:
    """The newest lines that fit."""
    first = max(len(lines) - _MOST, 0)
    standing = Standing(lines[first:], left_out + first)
    while standing.lines and not (
        len(standing.text) <= STANDING_LIMIT and cautious_tokens(standing.text) <= tokens
    ):
        standing = Standing(standing.lines[1:], standing.left_out + 1)
    return standing


def _quoted(wanted: Instruction, asked: Mapping[int, Sequence[str]]) -> Iterator[Instruction]:
    """The sentences of the query that have these words, or that they have."""
    words = _letters(wanted.words)
    for said in asked.get(wanted.query, ()) if len(words) >= _LEAST else ():
        letters = _letters(said)
        if words in letters or (len(letters) >= _LEAST and letters in words):
            yield Instruction(wanted.query, said)


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text on one line each, without code, quoted lines, and what is too long for a line."""
    for sentence in _SENTENCE.split(_PASTED.sub("\n", text)):
        said = one_line(neutralise(clean(sentence)))
        if 0 < len(said) <= LINE_LIMIT:
            yield said


def _distinct(lines: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """In the order of their queries; of the same words the newest."""
    ordered = sorted(lines, key=lambda line: line.query)
    newest = {_letters(line.words): line for line in ordered}
    return tuple(sorted(newest.values(), key=lambda line: line.query))


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
