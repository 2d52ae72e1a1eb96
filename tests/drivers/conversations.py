"""What conversations show, and what the users of a storm were told of theirs: queries, forks, deletions
(CONTRACT 4)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.api.conversations import find_conversation, list_records
from dualtrack.frozen import dumps, loads
from dualtrack.ids import query_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.stores import Stores


def pages(stores: Stores, user: str, conversation_id: str, track: Any) -> list[Any]:
    """All records of a track, as the API lists them."""
    one = find_conversation(stores, user, conversation_id)
    found: list[Any] = []
    cursor = ""
    while True:
        page = list_records(stores, one, track, cursor)
        found += page.items
        cursor = page.cursor
        if not cursor:
            return found


def number_of(record: dict[str, Any]) -> int:
    """Of the query that a record belongs to."""
    return int(record["record_id"].partition("-")[0][1:])


def shown(stores: Stores, user: str, conversation_id: str) -> list[str]:
    """What each query shows in both tracks, in order; digests aside."""
    queries: dict[int, list[Any]] = {}
    for track in ("full", "summarised"):
        for record in pages(stores, user, conversation_id, track):
            if record["type"] != "digest":
                queries.setdefault(number_of(record), []).append(record)
    return [dumps(queries[number]) for number in sorted(queries)]


@dataclass(frozen=True, slots=True)
class Made:
    """A fork: of what, how many queries it shares, and what they showed when it was made."""

    parent: str
    shared: int
    showed: tuple[str, ...]


@dataclass
class Told:
    """What the users know of their conversations. ``doomed``: somebody asked for its deletion; whether it came about
    may have been lost on the way."""

    queries: dict[str, dict[int, str]] = field(default_factory=dict)
    forks: dict[str, Made] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_query(self, conversation_id: str, message_id: str, text: str) -> None:
        """A query was admitted."""
        with self.lock:
            self.queries.setdefault(conversation_id, {})[int(message_id[1:])] = text

    def note_fork(self, conversation_id: str, made: Made) -> None:
        """A fork was made."""
        with self.lock:
            self.forks[conversation_id] = made

    def note_deletion(self, conversation_id: str) -> None:
        """Somebody is about to ask for it."""
        with self.lock:
            self.doomed.add(conversation_id)

    def count(self, conversation_id: str) -> int:
        """Queries that it has at least, those that it shares included."""
        made = self.forks.get(conversation_id)
        return max([made.shared if made else 0, *self.queries.get(conversation_id, {})])

    def texts(self, conversation_id: str) -> dict[int, str]:
        """The queries that it has to show, by number."""
        made = self.forks.get(conversation_id)
        past = self.texts(made.parent) if made else {}
        shared = {number: text for number, text in past.items() if made and number <= made.shared}
        return {**shared, **self.queries.get(conversation_id, {})}

    def gone(self, stores: Stores, user: str, conversation_id: str) -> bool:
        """Whether it is deleted."""
        found = stores.conversations.find(user, conversation_id)
        return found is None or found.is_being_deleted

    def faults(self, stores: Stores, user: str, mine: set[str]) -> Iterator[str]:
        """What is wrong with a user's conversations: gone without a wish, another past, another text."""
        for one in sorted(mine):
            if not self.gone(stores, user, one):
                yield from (f"{one}: {wrong}" for wrong in self._faults(stores, user, one))
            elif one not in self.doomed:
                yield f"{one} is gone, and nobody deleted it"

    def _faults(self, stores: Stores, user: str, one: str) -> Iterator[str]:
        try:
            now = shown(stores, user, one)
        except Exception as error:  # noqa: BLE001 - a past that cannot be read is the worst of faults
            yield f"its records cannot be read: {error!r}"
            return
        made = self.forks.get(one)
        if made and tuple(now[: made.shared]) != made.showed:
            yield f"it shares {made.shared} queries of {made.parent}, and they are not what they were"
        if len(now) != self.count(one):
            yield f"it shows {len(now)} queries of {self.count(one)}"
        for number, text in self.texts(one).items():
            kept = loads(now[number - 1])[0] if number <= len(now) else {}
            if (kept.get("record_id"), kept.get("content")) != (query_id(number), text):
                yield f"{query_id(number)} was {text!r:.80} and is {kept!r:.120}"
