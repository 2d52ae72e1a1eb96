"""Finding a resent history: each exchange of it (what the user said, what was answered) has a hash (CONTRACT 10). Pure.

A client may drop old messages, so an exchange is looked up by its own hash, from the newest one backwards; which of
several conversations with this exchange is meant, the exchanges before it tell. Everything takes linear time.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.openai.client_tools import ResentCall

TRAIL: Final = 64
"""How many exchanges before an exchange are compared."""
_SHORT: Final = 12
"""Hexadecimal digits of a hash in a trail, which only tells candidates apart."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said, and what was answered: the texts as a client resends them, and the calls that the client
    ran."""

    user: str
    assistant: str
    calls: tuple[ResentCall, ...] = ()

    @property
    def digest(self) -> str:
        """A SHA-256 over roles and texts."""
        said = hashlib.sha256()
        for role, text in (("user", self.user), ("assistant", self.assistant)):
            said.update(f"{role}\n{_folded(text)}\0".encode())
        return said.hexdigest()

    @property
    def chat_id(self) -> str:
        """The chat that the newest of its calls names; empty if none does."""
        return next((call.chat_id for call in reversed(self.calls) if call.chat_id), "")


def asked_digest(user: str) -> str:
    """The digest of what a chat has been asked, until it has an answer."""
    return Exchange(user, "").digest


def is_cut(exchange: Exchange, said: str) -> bool:
    """Whether the exchange's answer is the beginning of what a chat has said: its client has left before the end."""
    begun = _folded(exchange.assistant)
    return bool(begun) and _folded(said).startswith(begun)


@dataclass(frozen=True, slots=True)
class ExchangePlace:
    """Where an exchange stands: a query of a conversation. ``trail``: the exchanges before it, oldest first."""

    conversation_id: str
    query: int
    trail: tuple[str, ...] = ()


def trail_of(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """The short hashes of the newest exchanges, oldest first."""
    return tuple(exchange.digest[:_SHORT] for exchange in exchanges[-TRAIL:])


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
