"""The deletion of a conversation with everything that belongs to it, however long it is (CONTRACT 4).

    hidden and noted ─► its items, page by page from the end ─► empty ─► looked at again ─► crossed out
    one transaction      a query's chat before the query's item            when nobody can write any more

What is killed on the way is found in the list of deletions, and the partition itself is what is left to do.
It is deleted whole, whatever kinds of items it holds, but for what living forks show: of the queries up to
the last one that any of them shares the records, tracks and digests stay with their bodies, and the
conversation's item, hidden and without its title. Whoever releases them last has the rest deleted. A step of
a chat that is late may write behind the deletion's back until its chat's deadline: after that the
conversation and its last chats are looked at once more.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from dualtrack.chat.end_chat import TIMED_OUT, Failure, end_chat
from dualtrack.errors import ApiError, Contended, conversation_busy, not_found
from dualtrack.requests import ChatRef
from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.chats import CHAT_SECONDS
from dualtrack.storage.deletions import Deletion
from dualtrack.storage.digests import digest_number
from dualtrack.storage.dynamo import Lost
from dualtrack.storage.forks import Kept
from dualtrack.storage.history import place_of, query_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import Stores

_LATE_SECONDS: Final = 60
WRITERS_SECONDS: Final = CHAT_SECONDS + _LATE_SECONDS
"""Whoever was about to write when something was hidden has written, or is dead: a chat's time and a step's more."""

_REQUEST_SECONDS: Final = 30
"""The request that deletes goes on by itself for at most so long; then the sweep does."""

_LEFTOVERS_SECONDS: Final = 5
"""What a request that was refused spends on what it had written."""

_TRIES: Final = 8

_AT_ONCE: Final = 8
"""Chats that are deleted at the same time: each takes three requests, which are all waiting."""


def delete_conversation(
    stores: Stores, user: str, conversation_id: str, has_time: Callable[[], bool] = lambda: True
) -> None:
    """Hide it at once and delete it while there is time; the sweep does the rest. 409 while a chat runs in it."""
    found = stores.conversations.find(user, conversation_id)
    if found is None:
        raise not_found("There is no such conversation.")
    continue_deletion(stores, hide(stores, _free(stores, found)), has_time)


def note_conversation(stores: Stores, user: str, conversation_id: str) -> None:
    """Note a conversation that is about to be made: if it is not, the sweep deletes what was written for it."""
    now = int(stores.clock())
    stores.deletions.note(Deletion("CONV", user, conversation_id, now, now + WRITERS_SECONDS))


def delete_leftovers(stores: Stores, user: str, conversation_id: str) -> None:
    """Remove what was written for a conversation that is not there, or is being deleted; else nothing.

    What it has no time for is left to the sweep: such a conversation is in the list of deletions.
    """
    found, has_time = stores.conversations.find(user, conversation_id), time_for(_LEFTOVERS_SECONDS)
    if found is None:
        _empty(stores, user, conversation_id, has_time)
    elif found.is_being_deleted:
        _empty_but_kept(stores, found, _kept(stores, found), has_time)


def hide(stores: Stores, found: Conversation, *, whoever_holds_it: bool = False) -> Deletion:
    """Hide a conversation and note its deletion. Raises 409 if a chat was faster."""
    now = int(stores.clock())
    one = Deletion("CONV", found.user, found.conversation_id, now, now + _REQUEST_SECONDS)
    lock = stores.conversations.lock_action(found, now + _LATE_SECONDS, whoever_holds_it=whoever_holds_it)
    try:
        stores.deletions.note(one, [lock])
    except Lost:
        raise ApiError("conversation_busy", "A chat is running in this conversation.") from None
    return one


def _free(stores: Stores, found: Conversation) -> Conversation:
    """The conversation, without a chat in it; a dead one is ended."""
    if not found.lease or found.is_being_deleted:
        return found
    if found.lease_until > stores.clock():
        raise conversation_busy(found.lease)
    end_chat(stores, ChatRef(found.user, found.lease, found.conversation_id), TIMED_OUT)
    return found


def continue_deletion(stores: Stores, one: Deletion, has_time: Callable[[], bool]) -> None:
    """Delete what there is while there is time. Harmless at any time and any number of times."""
    found = stores.conversations.find(one.user, one.what)
    if found and not found.is_being_deleted:
        stores.deletions.cross_out(one)  # noted ahead, and then it was made
        return
    if found is None:
        if _empty(stores, one.user, one.what, has_time):
            _conclude(stores, one)
        return
    waiting, kept = _release(stores, found), _kept(stores, found)
    if not _empty_but_kept(stores, found, kept, has_time):
        return
    if not kept.through:
        stores.conversations.remove(found)
    _conclude(stores, one)
    for other in waiting:
        continue_deletion(stores, other, has_time)


def _release(stores: Stores, found: Conversation) -> list[Deletion]:
    """Note that a deleted fork shows nothing of others any more. The deletions of those that are deleted themselves
    begin anew: there may be less to keep now."""
    waiting = []
    for other in found.sources:
        if stores.forks.shares(found.user, other, found.conversation_id):
            waiting += _released(stores, found, other)
    return waiting


def _released(stores: Stores, found: Conversation, other: str) -> list[Deletion]:
    for _ in range(_TRIES):
        source, now = stores.conversations.find(found.user, other), int(stores.clock())
        actions = stores.forks.release_actions(found.user, other, found.conversation_id, source)
        try:
            if source is None or not source.is_being_deleted:
                stores.commit(actions)
                return []
            anew = Deletion("CONV", found.user, other, now, now + _REQUEST_SECONDS)
            stores.deletions.note(anew, actions)
        except Lost:
            continue  # its own deletion has just begun, or ended
        return [anew]
    raise Contended("A conversation that was shared changed too often.")


def _kept(stores: Stores, found: Conversation) -> Kept:
    """What living forks show of a conversation that is being deleted; from now on nobody can share more of it.

    None can be made of it any more, and one that is made of a fork shares no more than that does.
    """
    for _ in range(_TRIES):
        if not found.forks:
            return Kept()
        kept = stores.forks.kept_of(found.user, found.conversation_id)
        try:
            stores.commit([stores.forks.keep_action(found, kept)])
        except Lost:
            anew = stores.conversations.find(found.user, found.conversation_id)
            if anew is None:
                return Kept()
            found = anew
        else:
            return kept
    raise Contended("Forks were added every time.")


def _empty_but_kept(stores: Stores, found: Conversation, kept: Kept, has_time: Callable[[], bool]) -> bool:
    """Delete the conversation's items but what is kept, its chats all of them; whether that is done."""
    user, conversation_id = found.user, found.conversation_id
    if not kept.through:
        return _empty(stores, user, conversation_id, has_time)
    pointers = stores.history.pointers(user, conversation_id, kept.through)
    for items in stores.history.stored(user, conversation_id):
        gone = [one for one in items if not (place_of(one) in pointers or _is_kept(place_of(one), kept))]
        shown = [] if found.chats_gone else items
        chats = [one["chat"] for one in (*gone, *shown) if "chat" in one]
        if not _delete_chats(stores, user, list(dict.fromkeys(chats)), has_time):
            return False
        stores.history.delete_items(gone)
    stores.conversations.note_chats_gone(found)
    stores.bodies.delete_objects(user, conversation_id, pointers)
    return True


def _is_kept(sk: str, kept: Kept) -> bool:
    """Whether an item is a record, track or digest that a fork shows."""
    if sk.startswith("D#"):
        return digest_number(sk) <= kept.digests
    return sk.startswith(("F#", "S#")) and query_number(sk) <= kept.through


def _empty(stores: Stores, user: str, conversation_id: str, has_time: Callable[[], bool]) -> bool:
    """Delete the conversation's items, each query's chat before the item that names it; whether all are gone."""
    while items := stores.history.last_items(user, conversation_id):
        chats = [item["chat"] for item in items if "chat" in item]
        if not _delete_chats(stores, user, chats, has_time):
            return False
        stores.history.delete_items(items)
    stores.bodies.delete_objects(user, conversation_id)
    return True


def _conclude(stores: Stores, one: Deletion) -> None:
    """Nothing is left: cross it out if nobody can write any more, else look at it again then."""
    nobody_writes_after = one.since + WRITERS_SECONDS
    if stores.clock() < nobody_writes_after:
        stores.deletions.put_off(one, nobody_writes_after)
    else:
        stores.deletions.cross_out(one)


def continue_chat_deletion(stores: Stores, one: Deletion) -> None:
    """The second look at a chat: whatever late writers have left, and the blank end that kept them out."""
    stores.chats.delete(one.user, one.what)
    stores.deletions.cross_out(one)


def _delete_chats(stores: Stores, user: str, chat_ids: list[str], has_time: Callable[[], bool]) -> bool:
    """Delete chats while there is time; whether all are gone."""

    def delete(chat_id: str) -> bool:
        if not has_time():
            return False
        _delete_chat(stores, user, chat_id)
        return True

    if len(chat_ids) < 2:
        return all(map(delete, chat_ids)) and has_time()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return all(pool.map(delete, chat_ids)) and has_time()


def _delete_chat(stores: Stores, user: str, chat_id: str) -> None:
    chat = stores.chats.load(user, chat_id)
    if chat and stores.clock() <= chat.deadline + _LATE_SECONDS:
        now, due = int(stores.clock()), chat.deadline + _LATE_SECONDS
        stores.deletions.note(Deletion("CHAT", user, chat_id, now, due))
    if chat and chat.status == "answered":
        _finish(stores, chat)
    stores.chats.delete(user, chat_id, keep=_blank_end(stores, chat) if chat else "")


def _finish(stores: Stores, chat: Chat) -> None:
    """Its summaries are still being written: close it first, so that whoever follows it sees its end."""
    try:
        end_chat(stores, ChatRef(chat.user, chat.chat_id, chat.conversation_id), Failure("internal", ""))
    except Exception:  # noqa: BLE001 - what cannot be read any more can still be deleted
        return


def _blank_end(stores: Stores, chat: Chat) -> str:
    """The sort key of what stays of a chat that was broken off a moment ago: the end of its log, blank.

    A tool or a model call of it may still be running. Its log stays closed until none can be, so that
    nothing is written into a conversation that is gone.
    """
    nobody_writes_after = chat.deadline + _LATE_SECONDS
    if chat.status not in ("failed", "cancelled") or stores.clock() > nobody_writes_after:
        return ""
    return stores.log(chat).blank_end(nobody_writes_after)
