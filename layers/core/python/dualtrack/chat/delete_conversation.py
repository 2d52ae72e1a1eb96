"""The deletion of a conversation with everything that belongs to it (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.chat.end_chat import TIMED_OUT, Failure, end_chat
from dualtrack.errors import ApiError, not_found
from dualtrack.requests import ChatRef
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import Stores

_DELETE_SECONDS: Final = 60


def delete_conversation(stores: Stores, user: str, conversation_id: str) -> None:
    """Delete it with every record, event and object; 409 while a chat runs in it.

    It is locked first and its own item goes last: a deletion that was cut short leaves something to
    delete again, never orphans.
    """
    found = stores.conversations.find(user, conversation_id)
    if found is None:
        raise not_found("There is no such conversation.")
    _lock(stores, found)
    for number in range(1, found.queries + 1):
        _delete_chat(stores, user, conversation_id, number)
    stores.history.delete(user, conversation_id)
    stores.conversations.remove(found)


def delete_leftovers(stores: Stores, user: str, conversation_id: str) -> None:
    """Remove what was written for a conversation that is not there, or is being deleted; else nothing."""
    found = stores.conversations.find(user, conversation_id)
    if found is None or found.is_being_deleted:
        stores.history.delete(user, conversation_id)


def _lock(stores: Stores, found: Conversation) -> None:
    now = int(stores.clock())
    if found.lease and not found.is_being_deleted:
        if found.lease_until > now:
            raise ApiError("conversation_busy", "A chat is running in this conversation.")
        dead = ChatRef(found.user, found.lease, found.conversation_id)
        end_chat(stores, dead, TIMED_OUT)
    try:
        stores.conversations.lock(found, now + _DELETE_SECONDS)
    except Lost:
        raise ApiError("conversation_busy", "A chat is running in this conversation.") from None


def _delete_chat(stores: Stores, user: str, conversation_id: str, number: int) -> None:
    chat_id = stores.history.chat_of_query(user, conversation_id, number)
    chat = stores.chats.load(user, chat_id) if chat_id else None
    if chat is None:
        return
    if chat.status == "answered":
        # Its summaries are still being written: close it first, so that nothing is written afterwards.
        end_chat(stores, ChatRef(user, chat.chat_id, conversation_id), Failure("internal", ""))
    stores.chats.delete(chat, keep=_blank_end(stores, chat))


def _blank_end(stores: Stores, chat: Chat) -> str:
    """The sort key of what stays of a chat that was broken off a moment ago: the end of its log, blank.

    A tool or a model call of it may still be running. Its log stays closed until none can be, so that
    nothing is written into a conversation that is gone.
    """
    nobody_writes_after = chat.deadline + _DELETE_SECONDS
    if chat.status not in ("failed", "cancelled") or stores.clock() > nobody_writes_after:
        return ""
    return stores.log(chat).blank_end(nobody_writes_after)
