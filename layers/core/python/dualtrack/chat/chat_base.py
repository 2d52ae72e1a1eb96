"""The conversation that a new chat goes on from: one to be continued or forked, or one that is made with the chat.

Everything here reads, but `free_base`, which runs once it is certain that the chat can be paid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.chat.cancel_chat import cancel_chat, freed, is_paused
from dualtrack.chat.end_chat import TIMED_OUT, end_chat
from dualtrack.chat.fork_conversation import planned_fork
from dualtrack.clock import iso
from dualtrack.errors import conversation_busy, conversation_paused, invalid_request, not_found
from dualtrack.ids import new_conversation_id
from dualtrack.memory.titles import start_of, title_of
from dualtrack.profiles import DEFAULT_PROFILE, UTILITY, profile_named
from dualtrack.requests import ChatRef
from dualtrack.storage.conversations import Conversation, list_position

if TYPE_CHECKING:
    from dualtrack.chat.new_chat import BroughtPast, NewChat
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.stores import AdmissionStores


def base_of(stores: AdmissionStores, new: NewChat) -> Conversation | None:
    """The conversation to be continued or forked; None if neither. Raises 400, 404, and 409 if a chat stands in the way
    that this one may not end."""
    if not new.base_id:
        if not new.is_task:
            profile_named(new.profile or DEFAULT_PROFILE)
        return None
    base = stores.conversations.find(new.user, new.base_id)
    # what was begun by a task has no second query: it would have a task's price
    if base is None or base.is_being_deleted or base.profile == UTILITY.name:
        raise not_found("There is no such conversation.")
    if new.profile and base.profile != new.profile:
        raise invalid_request(f"This conversation's profile is {base.profile}.")
    if in_the_way(new, base) and base.lease != new.leaves:
        _refuse_busy(stores, new, base)
    return base


def in_the_way(new: NewChat, base: Conversation) -> str:
    """The chat that holds the conversation and has to end before the new one; empty if none does. A fork before the
    last query needs none to end."""
    return base.lease if not new.past or new.past.through >= base.queries else ""


def _refuse_busy(stores: AdmissionStores, new: NewChat, base: Conversation) -> None:
    if is_paused(stores, base):
        if not new.cancels_pause:
            raise conversation_paused(base.lease)
    elif base.lease_until > stores.clock():
        raise conversation_busy(base.lease)


def free_base(stores: AdmissionStores, executions: Executions, new: NewChat, base: Conversation) -> None:
    """End the chat that is in the way: one that waits for decisions, one that its client has left, or a dead one."""
    chat = stores.chats.load(base.user, base.lease)
    if chat and chat.chat_id == new.leaves:
        cancel_chat(stores, executions, chat)
    elif chat and chat.status == "paused":
        freed(stores, base)
    else:
        end_chat(stores, ChatRef(base.user, base.lease, base.conversation_id), TIMED_OUT)


def made_with(stores: AdmissionStores, new: NewChat, base: Conversation | None, now: float) -> Conversation:
    """The conversation that will be made with the chat. Raises 400, 404, 409 if it cannot be a fork of ``base``."""
    past = new.past
    if past is None:
        return _begun(new, new.message, 0, now)
    if base is None:
        first = next((record.content for records in past.imported for record in records), new.message)
        return _with_imported(_begun(new, first, len(past.imported), now), past)
    return _with_imported(planned_fork(stores, base, past.through, new.key_id), past)


def _begun(new: NewChat, first: str, imported: int, now: float) -> Conversation:
    conversation_id, at = new_conversation_id(), iso(now)
    return Conversation(
        user=new.user,
        conversation_id=conversation_id,
        title=title_of(first),
        profile=UTILITY.name if new.is_task else new.profile or DEFAULT_PROFILE,
        created_at=at,
        updated_at=at,
        latest="" if new.is_task else list_position(at, conversation_id),
        title_after=0 if new.is_task else imported + 1,
        key_id=new.key_id,
        facets=new.facets,
    )


def _with_imported(conversation: Conversation, past: BroughtPast) -> Conversation:
    """With the imported queries behind its own."""
    starts = [
        (number, start_of(records[0].content))
        for number, records in enumerate(past.imported, start=conversation.queries + 1)
    ]
    queries = conversation.queries + len(past.imported)
    return replace(conversation, queries=queries, asked=(*conversation.asked, *starts))
