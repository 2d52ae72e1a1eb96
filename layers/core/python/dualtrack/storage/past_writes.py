"""What is written into a conversation's past without an event. No event log fences such a write off, so each has a
condition of its own (docs/architecture.md, "Late writes to a deleted conversation")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.errors import ChatClosed
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.storage.bodies import StoredBody
from dualtrack.storage.conversations import alive_check, aside_action, held_check, title_action
from dualtrack.storage.dynamo import ConditionFailed, from_wire, put_all, transact
from dualtrack.storage.forks import PARENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.digests import Digest
    from dualtrack.memory.records import QueryTrack, Record
    from dualtrack.models.receipt_data import SideCalls
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import ConversationStores, ToolStores

_HELD: Final = "held"


def write_past(stores: ToolStores, chat: Chat, writes: Sequence[Write], held: Action | None = None) -> None:
    """Write in one transaction, while the chat holds the conversation's lease. ``held``: a change of the conversation
    on that condition, in place of the check.

    The lease fences the items and their bodies in the table. An object in S3 has no condition: before it is written,
    the log is checked (event_log.py). Raises `ChatClosed` if the chat has ended, and `ConditionFailed` if a condition
    of the caller is false.
    """
    history = stores.history
    if any(isinstance(write, StoredBody) and write.is_object for write in writes):
        stores.log(chat).next_slot()
    check = held_check(_HELD, history.table, chat.user, chat.conversation_id, chat.chat_id)
    try:
        transact(history.client, [held or check, *history.bodies.write_objects(writes)])
    except ConditionFailed as lost:
        if _HELD in lost.items:
            raise ChatClosed(chat.chat_id) from lost
        raise


def write_track(stores: ConversationStores, conversation: Conversation, track: QueryTrack) -> None:
    """Write the track of an ended query unless its conversation is being deleted. Raises `ConditionFailed` if it is, or
    if the track exists. The last pass of a deletion removes an object that is written late."""
    history = stores.history
    writes = history.track_writes(conversation.user, conversation.conversation_id, track)
    alive = alive_check(PARENT, history.table, conversation.user, conversation.conversation_id)
    transact(history.client, [alive, *history.bodies.write_objects(writes)])


def import_records(
    stores: ToolStores, user: str, conversation_id: str, queries: Sequence[Sequence[Record]]
) -> None:
    """Write the records of imported queries into a conversation that does not exist yet: nothing reads them before it
    does, and nobody else writes there, so no write has a condition. Equal texts are one body. Bodies come first."""
    history = stores.history
    writes = [
        write
        for records in queries
        for record in records
        for write in history.record_writes(user, conversation_id, record)
    ]
    bodies = {write.pointer: write for write in writes if isinstance(write, StoredBody)}
    items = [action.request["Item"] for action in history.bodies.write_objects([*bodies.values()])]
    items += [write.request["Item"] for write in writes if not isinstance(write, StoredBody)]
    put_all(history.client, history.table, map(from_wire, items))


def write_while_alive(stores: ToolStores, chat: Chat, writes: Sequence[Write]) -> None:
    """Write for a chat that has ended, unless its conversation is being deleted. Raises `ConditionFailed` if it is. The
    last pass of a deletion removes an object that is written late."""
    history = stores.history
    alive = alive_check("alive", history.table, chat.user, chat.conversation_id)
    transact(history.client, [alive, *history.bodies.write_objects(writes)])


def write_ahead(
    stores: ToolStores, chat: Chat, digest: Digest, fold: SideCalls, paid: Sequence[Action] = ()
) -> None:
    """Write a waiting digest and its usage for a chat that has ended, and what is ``paid`` for it; add
    its cost to the conversation. A deletion removes
    the chat before the digests, so no digest can be written after it. Raises `ConditionFailed` if the chat is gone or
    the digest's number is taken."""
    put = stores.digests.put_action(chat.user, chat.conversation_id, digest)
    added = aside_action(stores.history.table, chat.user, chat.conversation_id, side_nanodollars(fold))
    transact(stores.chats.client, [stores.chats.aside_action(chat, "fold", fold), put, added, *paid])


def write_title(
    stores: ToolStores, chat: Chat, title: str, call: SideCalls, paid: Sequence[Action] = ()
) -> None:
    """Write the model's title for the conversation of a chat that has ended, the usage of its ``call``, and what is
    ``paid`` for it. If the user has named the conversation meanwhile, or the call gave no title, the usage alone.
    Raises `ConditionFailed` if the chat is gone or has its call."""
    used = [stores.chats.aside_action(chat, "titling", call), *paid]
    history = stores.history
    named = title_action(history.table, chat.user, chat.conversation_id, chat.query, title)
    try:
        transact(history.client, [named, *used] if title else used)
    except ConditionFailed as lost:
        if named.name not in lost.items:
            raise
        transact(history.client, used)
