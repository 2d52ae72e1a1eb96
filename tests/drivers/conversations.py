"""What conversations show, and what the users of a storm know of theirs: queries, forks, deletions (CONTRACT 4)."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.api.conversations import find_conversation, list_records
from dualtrack.frozen import dumps, loads
from dualtrack.ids import query_id
from dualtrack.storage.history import MOST_QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.storage.stores import Stores


def pages(stores: Stores, user: str, conversation_id: str, track: Any) -> list[Any]:
    """All records of a track, as the API lists them."""
    conversation = find_conversation(stores, user, conversation_id)
    records: list[Any] = []
    cursor = ""
    while True:
        page = list_records(stores, conversation, track, cursor)
        records += page.items
        cursor = page.cursor
        if not cursor:
            return records


def number_of(record: dict[str, Any]) -> int:
    """The number of the query that a record belongs to."""
    return int(record["record_id"].partition("-")[0][1:])


def shown(stores: Stores, user: str, conversation_id: str) -> list[str]:
    """What each query shows in both tracks, in order, without digests."""
    queries: dict[int, list[Any]] = {}
    for track in ("full", "summarised"):
        for record in pages(stores, user, conversation_id, track):
            if record["type"] != "digest":
                queries.setdefault(number_of(record), []).append(record)
    return [dumps(queries[number]) for number in sorted(queries)]


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork: its parent, how many queries it shares, and what they showed when it was created."""

    parent: str
    shared: int
    showed: tuple[str, ...]


@dataclass
class Told:
    """What the users know of their conversations. ``doomed``: deletion was requested; the answer may have been lost."""

    queries: dict[str, dict[int, str]] = field(default_factory=dict)
    forks: dict[str, Fork] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_query(self, conversation_id: str, message_id: str, text: str) -> None:
        """A query was admitted."""
        with self.lock:
            self.queries.setdefault(conversation_id, {})[int(message_id[1:])] = text

    def note_fork(self, conversation_id: str, fork: Fork) -> None:
        """A fork was made."""
        with self.lock:
            self.forks[conversation_id] = fork

    def note_deletion(self, conversation_id: str) -> None:
        """A deletion is about to be requested."""
        with self.lock:
            self.doomed.add(conversation_id)

    def count(self, conversation_id: str) -> int:
        """Queries that a conversation has, shared ones included."""
        fork = self.forks.get(conversation_id)
        return max([fork.shared if fork else 0, *self.queries.get(conversation_id, {})])

    def texts(self, conversation_id: str) -> dict[int, str]:
        """The queries that a conversation must show, by number."""
        fork = self.forks.get(conversation_id)
        past = self.texts(fork.parent) if fork else {}
        shared = {number: text for number, text in past.items() if fork and number <= fork.shared}
        return {**shared, **self.queries.get(conversation_id, {})}

    def gone(self, stores: Stores, user: str, conversation_id: str) -> bool:
        """Whether it is deleted."""
        conversation = stores.conversations.find(user, conversation_id)
        return conversation is None or conversation.is_being_deleted

    def faults(self, stores: Stores, user: str, mine: set[str]) -> Iterator[str]:
        """What is wrong with a user's conversations: gone without being deleted, a changed past, a changed text."""
        for conversation_id in sorted(mine):
            if not self.gone(stores, user, conversation_id):
                yield from (
                    f"{conversation_id}: {wrong}" for wrong in self._faults(stores, user, conversation_id)
                )
            elif conversation_id not in self.doomed:
                yield f"{conversation_id} is gone, and nobody deleted it"

    def _faults(self, stores: Stores, user: str, conversation_id: str) -> Iterator[str]:
        try:
            now = shown(stores, user, conversation_id)
        except Exception as error:  # noqa: BLE001 - a past that cannot be read is the worst of faults
            yield f"its records cannot be read: {error!r}"
            return
        fork = self.forks.get(conversation_id)
        if fork and _changed(fork, now) - _left_out(stores, user, conversation_id, fork.shared):
            yield f"it shares {fork.shared} queries of {fork.parent}, and they are not what they were"
        if len(now) != self.count(conversation_id):
            yield f"it shows {len(now)} queries of {self.count(conversation_id)}"
        for number, text in self.texts(conversation_id).items():
            kept = loads(now[number - 1])[0] if number <= len(now) else {}
            if (kept.get("record_id"), kept.get("content")) != (query_id(number), text):
                yield f"{query_id(number)} was {text!r:.80} and is {kept!r:.120}"


def _changed(fork: Fork, now: Sequence[str]) -> set[int]:
    """The shared queries that do not show what they showed."""
    pairs = itertools.zip_longest(fork.showed, now[: fork.shared])
    return {number for number, (before, after) in enumerate(pairs, start=1) if before != after}


def _left_out(stores: Stores, user: str, conversation_id: str, through: int) -> frozenset[int]:
    """The queries up to this one whose results the conversation's later ones have left out: their track shows it."""
    history = stores.across(find_conversation(stores, user, conversation_id).ancestry).history
    return history.withheld(user, conversation_id, range(1, through + 1), MOST_QUERIES)
