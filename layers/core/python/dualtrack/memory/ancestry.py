"""What a fork shares with other conversations (CONTRACT 4). Pure.

    P:  q1 q2 q3 q4 q5 q6            F = fork of P before q4      shares q1 to q3 of P
    F:           q4 q5 q6            G = fork of F before q6      shares q1 to q3 of P, q4 to q5 of F
    G:                 q6 …          H = fork of G before q3      shares q1 to q2 of P

A record is stored once, in the conversation that wrote it. A fork has a flat list of the conversations that it reads,
so a query is found by its number in one step, however many forks came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dualtrack.codec import stored

MAX_PARTS: Final = 32
"""Maximum number of conversations whose queries a fork shares: each costs two writes when the fork is made."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class SharedPart:
    """The queries after those of the previous part, up to ``through``; likewise the digests, up to ``digests``."""

    conversation_id: str
    through: int
    digests: int = 0


@dataclass(frozen=True, slots=True)
class QueryRange:
    """Queries greater than ``after`` and less than ``before``, all stored in one conversation."""

    conversation_id: str
    after: int
    before: int


@stored
@dataclass(frozen=True, slots=True)
class Ancestry:
    """The parts of a conversation's past that other conversations wrote, oldest first; empty if it is not a fork."""

    parts: tuple[SharedPart, ...] = ()

    @property
    def through(self) -> int:
        """The number of the last shared query."""
        return self.parts[-1].through if self.parts else 0

    @property
    def digests(self) -> int:
        """The number of the last shared digest."""
        return self.parts[-1].digests if self.parts else 0

    def home(self, own: str, query: int) -> str:
        """The conversation in which a query is stored."""
        return next((part.conversation_id for part in self.parts if query <= part.through), own)

    def home_of_digest(self, own: str, number: int) -> str:
        """The conversation in which a digest is stored."""
        return next((part.conversation_id for part in self.parts if number <= part.digests), own)

    def runs(self, own: str, after: int, before: int) -> tuple[QueryRange, ...]:
        """Where the queries between two numbers are stored, in order; a single run if there is no fork."""
        if not self.parts:
            return (QueryRange(own, after, before),)
        runs, done = [], after
        for part in self.parts:
            if part.through > done and done + 1 < before:
                runs.append(QueryRange(part.conversation_id, done, min(part.through + 1, before)))
                done = part.through
        if done + 1 < before:
            runs.append(QueryRange(own, done, before))
        return tuple(runs)

    def forked(self, own: str, through: int) -> tuple[Ancestry, str]:
        """What a fork of the conversation ``own`` shares up to a query, and the conversation whose part is cut short
        by it: the last shared digest has to be looked up there. Empty if all parts are shared in full."""
        if not through:
            return Ancestry(), ""
        whole = Ancestry(tuple(part for part in self.parts if part.through <= through))
        if whole.through == through:
            return whole, ""
        cut = next((part.conversation_id for part in self.parts if part.through > through), own)
        return Ancestry((*whole.parts, SharedPart(cut, through, whole.digests))), cut

    def with_digests(self, digests: int) -> Ancestry:
        """The ancestry with this number of digests in its last part; 0 if that has none of its own."""
        *before, last = self.parts
        return Ancestry((*before, SharedPart(last.conversation_id, last.through, max(digests, last.digests))))
