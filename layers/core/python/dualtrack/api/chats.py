"""Finding, showing and waiting for chats (CONTRACT 4)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dualtrack.chat.chat_view import WITH_RESPONSE, chat_json
from dualtrack.errors import ApiError, Gone, not_found
from dualtrack.ids import query_id, response_id
from dualtrack.storage.leases import WAITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.memory.records import Record
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat, ChatStore, RecordedTurn
    from dualtrack.storage.leases import Leases
    from dualtrack.storage.stores import ToolStores

_POLL_SECONDS: Final = 0.25


def find_chat(chats: ChatStore, user: str, chat_id: str) -> Chat:
    """The user's chat; 404 for any other."""
    chat = chats.load(user, chat_id)
    if chat is None:
        raise not_found("There is no such chat.")
    return chat


def show_chat(stores: ToolStores, chat: Chat) -> answers.Chat:
    """The chat object. Reads only the response's text. 404 if records are missing: the chat is being deleted."""
    response, history = response_id(chat.query), stores.history
    records = history.query_records(chat.user, chat.conversation_id, chat.query, texts={response})
    expected = {query_id(chat.query)} | ({response} if chat.status in WITH_RESPONSE else set())
    if not expected <= {record.record_id for record in records}:
        raise not_found("There is no such chat.")
    track = history.track(chat.user, chat.conversation_id, chat.query) if chat.status == "done" else None
    begun = _begun_calls(stores, chat, records) if chat.status == "running" else ()
    return chat_json(chat, records, track, paused_turn(stores.chats, chat), begun)


def _begun_calls(stores: ToolStores, chat: Chat, records: Sequence[Record]) -> list[ToolCall]:
    """The calls of its last turn that have begun and have no result yet."""
    try:
        turn = stores.chats.turn(chat, chat.turn)
    except Gone:
        raise not_found("There is no such chat.") from None
    told = {record.record_id for record in records}
    left = [call for call in (turn.runnable if turn else ()) if call.id not in told]
    marks = stores.chats.marks(chat) if any(call.is_marked for call in left) else {}
    return [call for call in left if marks.get(call.id, not call.is_marked)]


def paused_turn(chats: ChatStore, chat: Chat) -> RecordedTurn | None:
    """The turn whose calls wait for decisions, if the chat is paused."""
    try:
        return chats.turn(chat, chat.pause.turn) if chat.pause and chat.status == "paused" else None
    except Gone:
        raise not_found("There is no such chat.") from None


def started_json(chat: Chat) -> answers.StartedChat:
    """A running chat, and where to follow it."""
    url = f"/v1/chats/{chat.chat_id}"
    return {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "message_id": query_id(chat.query),
        "status": "running",
        "url": url,
        "events_url": f"{url}/events",
    }


def await_answer(chats: ChatStore, leases: Leases, chat: Chat, seconds: float) -> Chat:
    """The chat once it runs no more; its current state if time runs out or too many requests wait already."""
    if chat.status != "running" or not seconds:
        return chat
    try:
        lease = leases.take(chat.user, WAITS)
    except ApiError:
        return chat  # the chat was started, and the response says so
    try:
        return _poll(chats, chat, seconds)
    finally:
        leases.free(lease)


def _poll(chats: ChatStore, chat: Chat, seconds: float) -> Chat:
    deadline = time.monotonic() + seconds
    while chat.status == "running" and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        chat = chats.load(chat.user, chat.chat_id) or chat
    return chat
