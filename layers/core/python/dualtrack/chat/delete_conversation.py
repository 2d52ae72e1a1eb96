"""Deletes a conversation of any length, with everything that belongs to it (CONTRACT 4).

    hidden and noted ─► its items, page by page from the end ─► empty ─► checked again ─► crossed out
    one transaction      a query's chat before the query's item            when no late writer is possible

If a step fails, the sweep finds the deletion in the list of deletions; the items left in the partition are the work
left. All kinds of items are deleted, except what existing forks show: the records, tracks and digests of the queries
up to the last shared one, their bodies, and the conversation's item, hidden and without its title. When the last of
these forks is deleted, so is the rest. A late step of a chat can still write until the chat's deadline: after that,
the conversation and its last chats are checked once more.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from dualtrack.chat.cancel_chat import freed, is_paused
from dualtrack.chat.end_chat import TIMED_OUT, ChatFailure, end_chat
from dualtrack.chat_times import INVOCATION_SECONDS
from dualtrack.errors import ApiError, Contended, conversation_busy, not_found
from dualtrack.requests import ChatRef
from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.deletions import Deletion
from dualtrack.storage.digests import digest_number
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.forks import SharedExtent
from dualtrack.storage.history import OF_QUERIES, query_number, sort_key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import DeletionStores

_LATE_SECONDS: Final = 60
WRITERS_SECONDS: Final = INVOCATION_SECONDS + _LATE_SECONDS
"""After this time, every writer that was active when something was hidden has written or is dead: a step that begins
later finds the chat's log closed. What a chat has left is looked at again after its own deadline, which may be
later."""

_REQUEST_SECONDS: Final = 30
"""Time limit of the request that deletes; after that the sweep continues."""

_LEFTOVERS_SECONDS: Final = 5
"""Time that a refused request spends on deleting what it had written."""

_TRIES: Final = 8

_AT_ONCE: Final = 8
"""Chats deleted in parallel: each takes three requests, which only wait for DynamoDB and S3."""


def delete_conversation(
    stores: DeletionStores, user: str, conversation_id: str, has_time: Callable[[], bool] = lambda: True
) -> None:
    """Hide it at once and delete it while there is time; the sweep does the rest. A chat that waits for decisions is
    cancelled; 409 while one runs in it."""
    conversation = stores.conversations.find(user, conversation_id)
    if conversation is None:
        raise not_found("There is no such conversation.")
    continue_deletion(stores, hide(stores, _free(stores, conversation)), has_time)


def note_conversation(stores: DeletionStores, user: str, conversation_id: str) -> None:
    """Note a conversation before it is created: if its creation fails, the sweep deletes what was written for it."""
    now = int(stores.clock())
    stores.deletions.note(Deletion("CONV", user, conversation_id, now, now + WRITERS_SECONDS))


def delete_leftovers(stores: DeletionStores, user: str, conversation_id: str) -> None:
    """Remove what was written for a conversation that does not exist or is being deleted; otherwise do nothing.

    The sweep does what is left when the time is up: such a conversation is in the list of deletions.
    """
    conversation, has_time = stores.conversations.find(user, conversation_id), time_for(_LEFTOVERS_SECONDS)
    if conversation is None:
        _empty(stores, user, conversation_id, has_time)
    elif conversation.is_being_deleted:
        _empty_but_kept(stores, conversation, _kept(stores, conversation), has_time)


def hide(stores: DeletionStores, conversation: Conversation, *, take_over: bool = False) -> Deletion:
    """Hide a conversation and note its deletion. Raises 409 if a chat has started meanwhile."""
    now = int(stores.clock())
    deletion = Deletion("CONV", conversation.user, conversation.conversation_id, now, now + _REQUEST_SECONDS)
    lock = stores.conversations.lock_action(conversation, now + _LATE_SECONDS, take_over=take_over)
    try:
        stores.deletions.note(deletion, [lock])
    except ConditionFailed:
        raise ApiError("conversation_busy", "A chat is running in this conversation.") from None
    return deletion


def _free(stores: DeletionStores, conversation: Conversation) -> Conversation:
    """The conversation when no chat runs in it; ends a dead chat. Raises 409 if a chat is running."""
    if not conversation.lease or conversation.is_being_deleted:
        return conversation
    if is_paused(stores, conversation):
        return freed(stores, conversation) or conversation
    if conversation.lease_until > stores.clock():
        raise conversation_busy(conversation.lease)
    end_chat(stores, ChatRef(conversation.user, conversation.lease, conversation.conversation_id), TIMED_OUT)
    return conversation


def continue_deletion(stores: DeletionStores, deletion: Deletion, has_time: Callable[[], bool]) -> None:
    """Delete what is left while there is time. Idempotent."""
    conversation = stores.conversations.find(deletion.user, deletion.what)
    if conversation and not conversation.is_being_deleted:
        stores.deletions.cross_out(deletion)  # noted before its creation, which succeeded
        return
    if conversation is None:
        if _empty(stores, deletion.user, deletion.what, has_time):
            _conclude(stores, deletion)
        return
    waiting, kept = _release(stores, conversation), _kept(stores, conversation)
    if not _empty_but_kept(stores, conversation, kept, has_time):
        return
    if not kept.through:
        stores.conversations.remove(conversation)
    _conclude(stores, deletion)
    for other in waiting:
        continue_deletion(stores, other, has_time)


def _release(stores: DeletionStores, conversation: Conversation) -> list[Deletion]:
    """Note that a deleted fork no longer shows queries of other conversations. Deletions of those conversations
    restart: they may have less to keep now. Returns these deletions."""
    waiting = []
    for other in conversation.sources:
        if stores.forks.shares(conversation.user, other, conversation.conversation_id):
            waiting += _released(stores, conversation, other)
    return waiting


def _released(stores: DeletionStores, conversation: Conversation, other: str) -> list[Deletion]:
    for _ in range(_TRIES):
        source, now = stores.conversations.find(conversation.user, other), int(stores.clock())
        actions = stores.forks.release_actions(conversation.user, other, conversation.conversation_id, source)
        try:
            if source is None or not source.is_being_deleted:
                stores.forks.commit(actions)
                return []
            restarted = Deletion("CONV", conversation.user, other, now, now + _REQUEST_SECONDS)
            stores.deletions.note(restarted, actions)
        except ConditionFailed:
            continue  # its own deletion has just started, or ended
        return [restarted]
    raise Contended("A conversation that was shared changed too often.")


def _kept(stores: DeletionStores, conversation: Conversation) -> SharedExtent:
    """What existing forks show of a conversation that is being deleted. This can only become less from now on:

    no new fork can be made of it, and a fork of a fork shares no more than that fork does.
    """
    for _ in range(_TRIES):
        if not conversation.forks:
            return SharedExtent()
        kept = stores.forks.kept_of(conversation.user, conversation.conversation_id)
        try:
            stores.forks.commit([stores.forks.keep_action(conversation, kept)])
        except ConditionFailed:
            current = stores.conversations.find(conversation.user, conversation.conversation_id)
            if current is None:
                return SharedExtent()
            conversation = current
        else:
            return kept
    raise Contended("Forks were added every time.")


def _empty_but_kept(
    stores: DeletionStores, conversation: Conversation, kept: SharedExtent, has_time: Callable[[], bool]
) -> bool:
    """Delete the conversation's items except what is kept, and all its chats; returns whether that is done."""
    user, conversation_id = conversation.user, conversation.conversation_id
    if not kept.through:
        return _empty(stores, user, conversation_id, has_time)
    pointers = stores.history.pointers(user, conversation_id, kept.through)
    for items in stores.history.stored(user, conversation_id):
        gone = [
            item for item in items if not (sort_key_of(item) in pointers or _is_kept(sort_key_of(item), kept))
        ]
        shown = [] if conversation.chats_gone else items
        chats = [item["chat"] for item in (*gone, *shown) if "chat" in item]
        if not _delete_chats(stores, user, list(dict.fromkeys(chats)), has_time):
            return False
        stores.history.delete_items(gone)
    stores.conversations.note_chats_gone(conversation)
    stores.bodies.delete_objects(user, conversation_id, pointers)
    return True


def _is_kept(sk: str, kept: SharedExtent) -> bool:
    """Whether an item is a record, track or digest that a fork shows, or what it searches them by."""
    if sk.startswith("D#"):
        return digest_number(sk) <= kept.digests
    return sk.startswith(OF_QUERIES) and query_number(sk) <= kept.through


def _empty(stores: DeletionStores, user: str, conversation_id: str, has_time: Callable[[], bool]) -> bool:
    """Delete the conversation's items, each query's chat before the item that names it; return whether all are gone."""
    while items := stores.history.last_items(user, conversation_id):
        chats = [item["chat"] for item in items if "chat" in item]
        if not _delete_chats(stores, user, chats, has_time):
            return False
        stores.history.delete_items(items)
    stores.bodies.delete_objects(user, conversation_id)
    return True


def _conclude(stores: DeletionStores, deletion: Deletion) -> None:
    """Nothing is left: cross the deletion out if no late writer is possible any more, else check again later."""
    last_write_at = deletion.since + WRITERS_SECONDS
    if stores.clock() < last_write_at:
        stores.deletions.put_off(deletion, last_write_at)
    else:
        stores.deletions.cross_out(deletion)


def continue_chat_deletion(stores: DeletionStores, deletion: Deletion) -> None:
    """The second pass over a chat: delete what late writers have left, and the blank end that kept them out."""
    stores.chats.delete(deletion.user, deletion.what)
    stores.deletions.cross_out(deletion)


def _delete_chats(
    stores: DeletionStores, user: str, chat_ids: list[str], has_time: Callable[[], bool]
) -> bool:
    """Delete chats while there is time; returns whether all are gone."""

    def delete(chat_id: str) -> bool:
        if not has_time():
            return False
        _delete_chat(stores, user, chat_id)
        return True

    if len(chat_ids) < 2:
        return all(map(delete, chat_ids)) and has_time()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return all(pool.map(delete, chat_ids)) and has_time()


def _delete_chat(stores: DeletionStores, user: str, chat_id: str) -> None:
    chat = stores.chats.load(user, chat_id)
    if chat and stores.clock() <= chat.deadline + _LATE_SECONDS:
        now, due = int(stores.clock()), chat.deadline + _LATE_SECONDS
        stores.deletions.note(Deletion("CHAT", user, chat_id, now, due))
    if chat and chat.status == "answered":
        _finish(stores, chat)
    stores.chats.delete(user, chat_id, keep=_blank_end(stores, chat) if chat else "")


def _finish(stores: DeletionStores, chat: Chat) -> None:
    """Close a chat whose summaries are still being written, so that its followers see the end."""
    try:
        end_chat(stores, ChatRef(chat.user, chat.chat_id, chat.conversation_id), ChatFailure("internal", ""))
    except Exception:  # noqa: BLE001 - a chat that cannot be read can still be deleted
        return


def _blank_end(stores: DeletionStores, chat: Chat) -> str:
    """The sort key of the only item that stays of a chat that was just interrupted: the end of its log, blanked.

    A tool or a model call of the chat may still be running. The log stays closed until none can be, so that
    nothing is written into a deleted conversation.
    """
    last_write_at = chat.deadline + _LATE_SECONDS
    if chat.status not in ("failed", "cancelled") or stores.clock() > last_write_at:
        return ""
    return stores.log(chat).blank_end(last_write_at)
