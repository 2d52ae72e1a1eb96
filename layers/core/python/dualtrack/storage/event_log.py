"""The append-only event log of a chat, with a fenced tail (DESIGN 2.4).

A batch of events is one item whose key is the number of its first event. Appending puts the batch at
tail + 1 if this slot is free: a taken slot means that another writer has appended, so the tail is read
again. The batch with the terminal event closes the log, which fences off every zombie; a log without events
belongs to a deleted chat and counts as closed.

Each batch has its writer's token (`writer_token`). A writer that finds the slot taken by its own batch has
committed, including everything else in its transaction.

    slot 1        slot 3   slot 4            slot 9
    [record,turn] [delta]  [delta x 5 …]     [answer, done]  closed

A body has no condition that could fence its writer. So an append checks that the log is still open before it
writes bodies: the chat may have ended, and been deleted with its conversation, since the tail was read.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.clock import iso
from dualtrack.errors import ChatClosed, Contended
from dualtrack.events import TERMINAL, Event, StoredEvent
from dualtrack.frozen import dumps, loads
from dualtrack.storage.bodies import StoredBody
from dualtrack.storage.dynamo import (
    TRANSACT_ACTIONS,
    Action,
    ConditionFailed,
    put,
    put_absent,
    query,
    transact,
    update,
    writer_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.bodies import BodyStore, Write
    from dualtrack.storage.dynamo import Item

APPEND_ATTEMPTS: Final = 40
KEPT_SECONDS: Final = 25 * 3600
"""How long events are kept: 24 hours after the end (CONTRACT 5), plus the time of the chat itself."""
_PACK_OVER: Final = 2_048
_SLOT: Final = "event-slot"


class EventLog:
    """The log of a chat. It remembers the tail between appends, so a single writer needs only one write an append."""

    def __init__(
        self, client: DynamoDBClient, table: str, pk: str, chat_id: str, clock: Clock, bodies: BodyStore
    ) -> None:
        self._client = client
        self._table = table
        self._pk = pk
        self._chat_id = chat_id
        self._clock = clock
        self._bodies = bodies
        self._stored: set[str] = set()
        self._next: int | None = None
        self._until = 0

    def begin(self) -> None:
        """Start a new chat's log: the first slot is free, nothing has to be read."""
        self._next = 1

    def next_slot(self) -> int:
        """The number of the next event; raises `ChatClosed` after the terminal one, or if there is no log."""
        last = self._last_batch()
        self._next = _extent(last)[1] + 1
        return self._next

    def newest(self) -> StoredEvent:
        """The last event, at the tail; raises as `next_slot` does."""
        last = self._last_batch()
        self._next = _extent(last)[1] + 1
        return unpack(last)[-1]

    def events(self) -> list[StoredEvent]:
        """All events, read consistently."""
        return read_events(self._client, self._table, self._pk, consistent=True)

    def keep(self, until: int) -> None:
        """Keep all events so far, and those that this log appends, until then (epoch seconds) at least."""
        self._until = until
        batches = query(self._client, self._table, self._pk, prefix="EV#", only=("ttl",))
        early = [batch["sk"] for batch in batches if batch["ttl"] < until]
        for start in range(0, len(early), TRANSACT_ACTIONS):
            some = early[start : start + TRANSACT_ACTIONS]
            transact(self._client, [self._keep_action(sk, until) for sk in some])

    def _keep_action(self, sk: str, until: int) -> Action:
        key, values, names = {"pk": self._pk, "sk": sk}, {":ttl": until}, {"#ttl": "ttl"}
        return update(sk, self._table, key, "SET #ttl = :ttl", "attribute_exists(pk)", values, names)

    def blank_end(self, until: int) -> str:
        """Remove the text from the last batch, which keeps the log closed until ``until`` (epoch seconds).

        Returns its sort key; empty if there is no log.
        """
        last = self._newest()
        if last is None:
            return ""
        blank = {"pk": self._pk, "sk": last["sk"], "n": last["n"], "data": "[]", "closed": True, "ttl": until}
        transact(self._client, [put("end", self._table, blank)])
        return str(last["sk"])

    def _last_batch(self) -> Item:
        last = self._newest()
        if last is None or last.get("closed"):
            raise ChatClosed(self._chat_id)
        return last

    def _newest(self) -> Item | None:
        newest = query(self._client, self._table, self._pk, prefix="EV#", descending=True, page_size=1)
        return next(newest, None)

    def append(
        self,
        events: Sequence[Event],
        writes: Sequence[Write] = (),
        fence: Callable[[StoredEvent], None] | None = None,
    ) -> None:
        """Append a batch, with the caller's items in the same transaction and their bodies before it.

        If the slot is taken, ``fence`` is called with every event that came in between, and may raise
        `Superseded`. A lost condition of the caller raises `ConditionFailed`; a closed log raises `ChatClosed`.
        """
        self._store([write for write in writes if isinstance(write, StoredBody)])
        actions = [write for write in writes if isinstance(write, Action)]
        token = writer_token()
        for _ in range(APPEND_ATTEMPTS):
            first = self._next or self.next_slot()
            batch = put_absent(_SLOT, self._table, self._batch(first, events, token))
            try:
                transact(self._client, [*actions, batch])
            except ConditionFailed as lost:
                if lost.only_to_itself(_SLOT, token):
                    break
                others = {name: item for name, item in lost.items.items() if name != _SLOT}
                if _SLOT in lost.items:
                    self._catch_up(fence)
                if others:
                    raise ConditionFailed(others) from lost
            else:
                break
        else:
            raise Contended("The event log's tail moved too often.")
        self._next = first + len(events)

    def _store(self, bodies: Sequence[StoredBody]) -> None:
        """Write the bodies that this log has not written yet; first check whether the log is closed by now.

        A known tail is not moved, so that fences still see the events that came in.
        """
        new = [body for body in bodies if body.pointer not in self._stored]
        if new and self._next != 1:
            tail = _extent(self._last_batch())[1] + 1
            self._next = self._next or tail
        for body in new:
            self._bodies.write(body)
            self._stored.add(body.pointer)

    def _catch_up(self, fence: Callable[[StoredEvent], None] | None) -> None:
        """Another writer has appended: pass its events to the fence, and take the tail behind them. What comes behind
        that has the slot again, and so is passed to the fence as well."""
        missed: list[StoredEvent] = []
        if fence and self._next:
            missed = read_events(self._client, self._table, self._pk, after=self._next - 1, consistent=True)
            for event in missed:
                fence(event)
        if not missed or missed[-1].event in TERMINAL:
            self.next_slot()
        else:
            self._next = missed[-1].id + 1

    def _batch(self, first: int, events: Sequence[Event], token: str) -> Item:
        now = self._clock()
        stamp = {"chat_id": self._chat_id, "at": iso(now)}
        listed = [{"event": event.event, "data": {**stamp, **event.data}} for event in events]
        text = dumps(listed)
        item: dict[str, Any] = {"pk": self._pk, "sk": slot_key(first), "n": len(events), "by": token}
        item |= {"z": zlib.compress(text.encode())} if len(text) > _PACK_OVER else {"data": text}
        item["ttl"] = max(int(now) + KEPT_SECONDS, self._until)
        if any(event.event in TERMINAL for event in events):
            item["closed"] = True
        return item


def slot_key(number: int) -> str:
    """``EV#00000042``."""
    return f"EV#{number:08d}"


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """The position of a reader of a log: it has the events up to number ``after``.

    The reader's last event may be in the middle of a batch. Batches that begin at number ``read`` or before have
    nothing new, so queries begin there.
    """

    after: int = 0
    read: int = 0


def find_position(client: DynamoDBClient, table: str, pk: str, after: int) -> ReadPosition:
    """The position of a reader that has the events up to ``after``: one query.

    The query may be eventually consistent: an older batch than the last one only makes the next read longer.
    """
    batches = query(
        client,
        table,
        pk,
        prefix="EV#",
        before=slot_key(after + 1),
        descending=True,
        page_size=1,
        consistent=False,
    )
    last = next(batches, None)
    if last is None:
        return ReadPosition(after)
    first, end = _extent(last)
    return ReadPosition(after, end if end <= after else first - 1)


def read_on(
    client: DynamoDBClient, table: str, pk: str, position: ReadPosition, *, consistent: bool = False
) -> tuple[list[StoredEvent], ReadPosition]:
    """The contiguous events after a position, and the new position: one query (and its pages).

    Reads may be eventually consistent: a batch that is not visible yet ends the run, and the next
    read continues from there.
    """
    events: list[StoredEvent] = []
    after, read = position.after, position.read
    for item in query(client, table, pk, prefix="EV#", after=slot_key(read), consistent=consistent):
        first, end = _extent(item)
        if first > after + 1:
            break
        events += [event for event in unpack(item) if event.id > after]
        after, read = max(after, end), end
    return events, ReadPosition(after, read)


def read_events(
    client: DynamoDBClient, table: str, pk: str, *, after: int = 0, consistent: bool = False
) -> list[StoredEvent]:
    """All events from ``after`` + 1 on, where ``after`` ends a batch (or is 0)."""
    return read_on(client, table, pk, ReadPosition(after, after), consistent=consistent)[0]


def _extent(batch: Item) -> tuple[int, int]:
    """The numbers of a batch's first and last event."""
    first = int(batch["sk"][3:])
    return first, first + int(batch["n"]) - 1


def unpack(item: Item) -> list[StoredEvent]:
    """The events of one batch item."""
    first = int(item["sk"][3:])
    text = zlib.decompress(item["z"]) if "z" in item else item["data"]
    return [
        StoredEvent(first + offset, event["event"], event["data"]) for offset, event in enumerate(loads(text))
    ]
