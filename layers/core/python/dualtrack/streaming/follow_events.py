"""Following a chat's events: the stored ones, then new ones, until the terminal one. Never writes.

A reader polls with eventually consistent queries, half a read unit each (for up to 4 KB): about 9 a
second while events arrive, 2.5 a second otherwise. ``bench/stream_cost.py`` counts them.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.clock import epoch_of
from dualtrack.errors import not_found
from dualtrack.events import TERMINAL
from dualtrack.frozen import dumps
from dualtrack.storage.chats import ENDED, load_chat
from dualtrack.storage.event_log import ReadPosition, find_position, read_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.events import StoredEvent
    from dualtrack.storage.chats import Chat

KEPT_AFTER_END: Final = 24 * 3600
HEARTBEAT: Final = b": keep-alive\n\n"
_LAST: Final = TERMINAL | {"paused"}
"""Events that end a stream if nothing is behind them: a paused chat writes none until somebody has decided."""


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """The intervals of polling, in seconds.

    ``stream``: when the server closes the stream and the client resumes (CONTRACT 5: after 60 to 120 s), so that a
    client that has gone does not occupy a function for long: Lambda does not interrupt a response. ``busy_for``: how
    long after an event the log is polled every ``busy`` instead of every ``idle`` seconds.
    """

    heartbeat: float = 15.0
    stream: float = 90.0
    busy: float = 0.1
    idle: float = 0.4
    busy_for: float = 2.0


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads only the chats table."""

    client: DynamoDBClient
    table: str
    clock: Clock
    pace: PollIntervals = PollIntervals()

    def chat(self, user: str, chat_id: str) -> Chat:
        """The user's chat, if its events can still be read: it is running or ended less than 24 hours ago."""
        chat = self._load(user, chat_id)
        if chat is None or self._is_over(chat):
            raise not_found("There is no such chat, or its events have expired.")
        return chat

    def _load(self, user: str, chat_id: str) -> Chat | None:
        return load_chat(self.client, self.table, user, chat_id)

    def _is_over(self, chat: Chat) -> bool:
        if not chat.ended_at:
            return False
        ended = epoch_of(chat.ended_at)
        return self.clock() > ended + KEPT_AFTER_END

    async def follow(self, chat: Chat, after: int) -> AsyncIterator[bytes]:
        """Server-sent events from ``after`` + 1 on, as `batches` has them."""
        async for events in self.batches(chat, after):
            yield b"".join(encode(event) for event in events) or HEARTBEAT

    async def batches(self, chat: Chat, after: int = 0) -> AsyncIterator[list[StoredEvent]]:
        """Events from ``after`` + 1 on as they come, and an empty list where a heartbeat is due; ends after the
        terminal one, or after `PollIntervals.stream` seconds.

        It also ends when nothing more can come: after the last event of a chat that is paused or ended, or if the chat
        was deleted.
        """
        pace, consistent, is_still = self.pace, True, _is_still(chat)
        position = await asyncio.to_thread(self._position, chat, after)
        started = last_event = last_sent = time.monotonic()
        while time.monotonic() - started < pace.stream:
            events, position = await asyncio.to_thread(self._read, chat, position, consistent=consistent)
            now = time.monotonic()
            nothing_more = consistent and is_still
            consistent = False
            if events:
                last_event = last_sent = now
                yield events
                if events[-1].event in _LAST:
                    return
            elif nothing_more:
                return
            elif now - last_sent >= pace.heartbeat:
                last_sent = now
                yield []
                consistent = is_still = _is_still(
                    await asyncio.to_thread(self._load, chat.user, chat.chat_id)
                )
            await asyncio.sleep(pace.busy if now - last_event < pace.busy_for else pace.idle)

    def _position(self, chat: Chat, after: int) -> ReadPosition:
        """The position in the log of event ``after``. Only a reader that resumes needs a lookup, and only one."""
        return find_position(self.client, self.table, chat.pk, after) if after else ReadPosition()

    def _read(
        self, chat: Chat, position: ReadPosition, *, consistent: bool
    ) -> tuple[list[StoredEvent], ReadPosition]:
        return read_on(self.client, self.table, chat.pk, position, consistent=consistent)


def _is_still(chat: Chat | None) -> bool:
    return chat is None or chat.status == "paused" or chat.status in ENDED


def encode(event: StoredEvent) -> bytes:
    """``id``, ``event`` and one line of JSON ``data``."""
    return f"id: {event.id}\nevent: {event.event}\ndata: {dumps(event.data)}\n\n".encode()
