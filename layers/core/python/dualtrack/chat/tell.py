"""What listeners are told of a chat, written by the transaction that ends or pauses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.clock import iso
from dualtrack.notices import Notice

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import PaidStores


def notice_of(chat: Chat, now: float) -> Notice | None:
    """What its owner's listeners are told of the state that a chat comes into; None if nobody is told: of a chat that
    was cancelled, and where there was no listener when it was admitted."""
    if not chat.tells or chat.status not in ("done", "failed", "paused"):
        return None
    number = str(chat.pauses) if chat.status == "paused" else ""
    data: dict[str, str | None] = {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "profile": chat.profile,
        "status": chat.status,
        "stop": chat.stop or None,
        "error": chat.error["code"] if chat.error else None,
        "expires_at": iso(chat.deadline) if chat.status == "paused" else None,
        "key_id": chat.key_id or None,
        "user_id": chat.user,
    }
    message = f"msg_{chat.chat_id.removeprefix('ch_')}_{chat.status}{number}"
    return Notice(message, f"chat.{chat.status}", int(now * 1000), data, chat.profile)


def told(stores: PaidStores, after: Chat) -> list[Action]:
    """The note of the state that a chat comes into; none if nobody is told."""
    notice = notice_of(after, stores.clock())
    return [stores.outbox.notice_action(after.payer, notice)] if notice else []
