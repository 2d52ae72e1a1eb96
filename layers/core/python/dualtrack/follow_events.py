"""Following a chat's events: what is there, then what comes, until the terminal one. Reads only.

A reader polls with eventually consistent queries, half a read unit each: about 8 a second while events
come, 2.5 a second while nothing does.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from dualtrack.chats import chat_of, chat_partition
from dualtrack.dynamo import get
from dualtrack.errors import not_found
from dualtrack.event_log import read_events
from dualtrack.events import TERMINAL
from dualtrack.frozen import dumps
from dualtrack.ids import is_chat_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.chats import Chat
    from dualtrack.clock import Clock
    from dualtrack.events import StoredEvent

KEPT_AFTER_END: Final = 24 * 3600
HEARTBEAT_SECONDS: Final = 15.0
STREAM_SECONDS: Final = 600.0
"""Then the server closes and the client resumes: a reader does not hold a function for ever."""

BUSY_POLL: Final = 0.1
IDLE_POLL: Final = 0.4
BUSY_FOR: Final = 2.0
"""Seconds after an event during which the log is polled quickly."""

HEARTBEAT: Final = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads the chats table, nothing else."""

    client: DynamoDBClient
    table: str
    clock: Clock

    def chat(self, user: str, chat_id: str) -> Chat:
        """The chat whose events may be read: this user's, and not ended for more than 24 hours."""
        key = {"pk": chat_partition(user, chat_id), "sk": "STATE"}
        item = get(self.client, self.table, key) if is_chat_id(chat_id) else None
        chat = chat_of(item) if item else None
        if chat is None or self._is_over(chat):
            raise not_found("There are no events of such a chat.")
        return chat

    def _is_over(self, chat: Chat) -> bool:
        if not chat.ended_at:
            return False
        ended = datetime.fromisoformat(chat.ended_at).timestamp()
        return self.clock() > ended + KEPT_AFTER_END

    async def follow(self, chat: Chat, after: int) -> AsyncIterator[bytes]:
        """Server-sent events from ``after`` + 1 on; ends after the terminal one, or after ten minutes."""
        position, aligned, consistent = after, False, True
        started = last_event = last_sent = time.monotonic()
        while time.monotonic() - started < STREAM_SECONDS:
            events = await asyncio.to_thread(
                self._read, chat, position, aligned=aligned, consistent=consistent
            )
            now = time.monotonic()
            if events:
                position, aligned, last_event, last_sent = events[-1].id, True, now, now
                yield b"".join(encode(event) for event in events)
                if events[-1].event in TERMINAL:
                    return
            elif consistent and chat.status in ("done", "failed", "cancelled"):
                return
            elif now - last_sent >= HEARTBEAT_SECONDS:
                last_sent = now
                yield HEARTBEAT
            consistent = False
            await asyncio.sleep(BUSY_POLL if now - last_event < BUSY_FOR else IDLE_POLL)

    def _read(self, chat: Chat, after: int, *, aligned: bool, consistent: bool) -> list[StoredEvent]:
        events = read_events(
            self.client, self.table, chat.pk, after=after, aligned=aligned, consistent=consistent
        )
        return list(events)


def encode(event: StoredEvent) -> bytes:
    """``id``, ``event`` and one line of JSON ``data``."""
    return f"id: {event.id}\nevent: {event.event}\ndata: {dumps(event.data)}\n\n".encode()
