"""Finding a resent history: each exchange of it (what the user said, what was answered) has a hash (CONTRACT 10). Pure.

A client may drop old messages, so an exchange is looked up by its own hash, from the newest one backwards; which of
several conversations with this exchange is meant, the exchanges before it tell. Everything takes linear time.

A hash proves little: people say the same things, and models answer them alike. Behind one plain key there may be many
people, so there a conversation is joined only if its whole past was resent (nothing in it is news to who asks), or, by
a client that drops old messages, if it is the only one and enough of it was resent (`is_likely`).
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.plugins.openai.client_tools import ResentCall

TRAIL: Final = 64
"""How many exchanges before an exchange are compared."""
SHORT: Final = 12
"""Hexadecimal digits of a hash in a trail, which only tells candidates apart."""
_LIKELY_EXCHANGES: Final = 2
_LIKELY_CHARACTERS: Final = 120
"""More than small talk: a greeting, thanks."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said, and what was answered: the texts as a client resends them, the calls that the client ran, and
    hashes of the files that came with it."""

    user: str
    assistant: str
    calls: tuple[ResentCall, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A SHA-256 over roles, texts and files."""
        said = hashlib.sha256("".join(f"{file}\n" for file in self.files).encode())
        for role, text in (("user", self.user), ("assistant", self.assistant)):
            said.update(f"{role}\n{_folded(text)}\0".encode())
        return said.hexdigest()

    @property
    def chat_id(self) -> str:
        """The chat that the newest of its calls names; empty if none does."""
        return next((call.chat_id for call in reversed(self.calls) if call.chat_id), "")


def asked_digest(exchange: Exchange) -> str:
    """The digest of what a chat has been asked, until it has an answer."""
    return Exchange(exchange.user, "", files=exchange.files).digest


def is_cut(exchange: Exchange, said: str) -> bool:
    """Whether the exchange's answer is the beginning of what a chat has said: its client has left before the end."""
    begun = _folded(exchange.assistant)
    return bool(begun) and _folded(said).startswith(begun)


@dataclass(frozen=True, slots=True)
class ExchangePlace:
    """Where an exchange stands: a query of a conversation. ``trail``: the exchanges before it, oldest first;
    ``before``: how many those are, None for one a query (an answer that went on is one exchange of several)."""

    conversation_id: str
    query: int
    trail: tuple[str, ...] = ()
    before: int | None = None


def trail_of(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """The short hashes of the newest exchanges, oldest first."""
    return tuple(exchange.digest[:SHORT] for exchange in exchanges[-TRAIL:])


def is_whole(place: ExchangePlace, trail: Sequence[str]) -> bool:
    """Whether all that stands before the place was resent, as far as it is compared."""
    before = place.query - 1 if place.before is None else place.before
    return _common_end(place.trail, trail) >= min(before, TRAIL)


def is_likely(place: ExchangePlace, exchanges: Sequence[Exchange]) -> bool:
    """Whether enough was resent up to the place (the last of these exchanges), and nothing that contradicts it, to know
    its conversation by."""
    trail = trail_of(exchanges[:-1])
    alike = _common_end(place.trail, trail)
    if alike < min(len(place.trail), len(trail)):
        return False
    resent = sum(len(each.user) + len(each.assistant) for each in exchanges[-alike - 1 :])
    return alike + 1 >= _LIKELY_EXCHANGES or resent >= _LIKELY_CHARACTERS


def equally_good(places: Sequence[ExchangePlace], trail: Sequence[str]) -> list[ExchangePlace]:
    """Those with as long a common past as the first of these."""
    if not places:
        return []
    lengths = [_common_end(place.trail, trail) for place in places]
    return [place for place, length in zip(places, lengths, strict=True) if length == lengths[0]]


def best_first(places: Iterable[ExchangePlace], trail: Sequence[str]) -> list[ExchangePlace]:
    """Places of one exchange: the one with the longest common past first, of equals the newest. Ids of conversations
    sort by time."""
    return sorted(
        places,
        key=lambda place: (_common_end(place.trail, trail), place.conversation_id, place.query),
        reverse=True,
    )


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        length += 1
    return length


class _Decomposed(dict[int, str]):
    """Each character in its decomposed form. Character by character: marks of a whole text would be put in order, which
    takes quadratic time for hostile ones."""

    def __missing__(self, character: int) -> str:
        return unicodedata.normalize("NFD", chr(character))


def _folded(text: str) -> str:
    """The text with its white space made one, and its letters in one form of Unicode: clients change both."""
    plain = " ".join(text.split())
    return plain if plain.isascii() else plain.translate(_Decomposed())
