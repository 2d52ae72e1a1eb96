"""DELETE /v1/chats/{chat_id}: stop a running or paused chat; an ended one stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.executions import stop_execution
from dualtrack.requests import ChatRef

if TYPE_CHECKING:
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import ChatStores


def is_paused(stores: ChatStores, conversation: Conversation) -> bool:
    """Whether the chat that holds the conversation's lease waits for decisions."""
    chat = stores.chats.load(conversation.user, conversation.lease)
    return chat is not None and chat.status == "paused"


def freed(stores: ChatStores, conversation: Conversation) -> Conversation | None:
    """The conversation after the chat that holds it was cancelled; a paused one has no execution to be stopped."""
    end_chat(
        stores, ChatRef(conversation.user, conversation.lease, conversation.conversation_id), Cancellation()
    )
    return stores.conversations.find(conversation.user, conversation.conversation_id)


def cancel_chat(stores: ChatStores, executions: Executions, chat: Chat) -> Chat:
    """Cancel the chat and return its new state. The log is closed first, which fences off steps that still run."""
    if chat.status not in ("running", "paused"):
        return chat
    ended = end_chat(stores, ChatRef(chat.user, chat.chat_id, chat.conversation_id), Cancellation())
    if ended is not None and ended.status == "cancelled":
        stop_execution(executions, chat.chat_id, chat.execution)
    return ended or chat
