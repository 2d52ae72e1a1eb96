"""POST /v1/conversations/{id}/fork: a new conversation whose past is the first queries of another (CONTRACT 4).

Nothing is copied. One transaction writes the new conversation's item and two small ones for each conversation whose
queries it shares (`dualtrack.memory.ancestry`): the same cost for 3 queries as for 1,000.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.end_chat import TIMED_OUT, end_chat
from dualtrack.chat.latest_queries import asked_up_to
from dualtrack.chat.track_without_model import track_without_model
from dualtrack.clock import iso
from dualtrack.errors import ApiError, Contended, conversation_busy, invalid_request, not_found
from dualtrack.ids import new_conversation_id, query_id, response_id
from dualtrack.memory.ancestry import MAX_PARTS
from dualtrack.memory.full_history import MemorySums
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.profiles import UTILITY, all_profiles
from dualtrack.requests import ChatRef
from dualtrack.storage.api_requests import FirstRequest
from dualtrack.storage.conversations import Conversation, list_position
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.past_writes import write_track

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.new_chat import Repeat
    from dualtrack.memory.ancestry import Ancestry
    from dualtrack.storage.chats import RecordedTurn
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import AdmissionStores

_REMEMBERED_SECONDS: Final = 24 * 3600
_TRIES: Final = 8


def first_fork(stores: AdmissionStores, user: str, repeat: Repeat) -> Conversation | None:
    """The fork that this key made in the last 24 hours, or None. Raises 409 for another request, 404 if it is gone."""
    first = stores.requests.first(user, repeat.key, stores.clock())
    if first is None:
        return None
    if first.fingerprint != repeat.fingerprint:
        raise ApiError("idempotency_conflict", "This Idempotency-Key was used with another request.")
    fork = stores.conversations.find(user, first.chat_id)
    if fork is None or fork.is_being_deleted:
        raise not_found("The fork of this Idempotency-Key was deleted.")
    return fork


def fork_conversation(
    stores: AdmissionStores,
    user: str,
    conversation_id: str,
    before: int,
    repeat: Repeat | None = None,
    key_id: str = "",
) -> Conversation:
    """A new conversation whose past is the queries before number ``before``. ``key_id``: the API key of the request.
    Raises `ApiError`: 400, 404, 409, 503."""
    for _ in range(_TRIES):
        try:
            return _fork(stores, user, conversation_id, before, repeat, key_id)
        except ConditionFailed:
            # the same request may have arrived twice at once: then return the fork of the other
            if repeat and (first := first_fork(stores, user, repeat)):
                return first
    raise Contended("The conversation changed too often.")


def _fork(
    stores: AdmissionStores, user: str, conversation_id: str, before: int, repeat: Repeat | None, key_id: str
) -> Conversation:
    parent = _parent(stores, user, conversation_id, before)
    fork = planned_fork(stores, parent, before - 1, key_id)
    make_final(stores, parent, fork.ancestry)
    actions = [
        stores.conversations.create_action(fork),
        *stores.forks.share_actions(fork),
        *_repeat_actions(stores, fork, repeat),
    ]
    stores.forks.commit(actions)
    return fork


def planned_fork(
    stores: AdmissionStores, parent: Conversation, through: int, key_id: str = ""
) -> Conversation:
    """The fork behind the query ``through`` as it will be; nothing is written. Raises 400 for one of too many forks."""
    own_id, now = new_conversation_id(), iso(stores.clock())
    sums = _inherited(stores, parent, through)
    return Conversation(
        user=parent.user,
        conversation_id=own_id,
        title=parent.title if through else "",
        profile=parent.profile,
        created_at=now,
        updated_at=now,
        latest=list_position(now, own_id),
        queries=through,
        ancestry=_ancestry(stores, parent, through),
        forked_from=parent.conversation_id,
        asked=asked_up_to(stores.history, parent, through),
        key_id=key_id,
        sums=sums,
        aside=sums.aside,
    )


def is_too_deep(parent: Conversation, through: int) -> bool:
    """Whether a fork behind this query would be one of too many forks."""
    return len(parent.ancestry.forked(parent.conversation_id, through)[0].parts) > MAX_PARTS


def _parent(stores: AdmissionStores, user: str, conversation_id: str, before: int) -> Conversation:
    """The conversation, if every query before ``before`` has ended; ends a dead chat among them."""
    parent = stores.conversations.find(user, conversation_id)
    if parent is None or parent.is_being_deleted or parent.profile == UTILITY.name:
        raise not_found("There is no such conversation.")
    if before > parent.queries + 1:
        allowed = "q1" if not parent.queries else f"q1 to {query_id(parent.queries + 1)}"
        raise invalid_request(f"before must be {allowed} in this conversation.")
    if not parent.lease or before <= parent.queries:
        return parent
    if parent.lease_until > stores.clock():
        running = query_id(parent.queries)
        raise conversation_busy(
            parent.lease, f"{running} has no answer yet: fork before it, or wait for its answer."
        )
    end_chat(stores, ChatRef(user, parent.lease, conversation_id), TIMED_OUT)
    return parent


def _ancestry(stores: AdmissionStores, parent: Conversation, through: int) -> Ancestry:
    """What the fork shares. Of the digests, those that the parent's next query sent or would have sent."""
    ancestry, cut = parent.ancestry.forked(parent.conversation_id, through)
    if is_too_deep(parent, through):
        raise invalid_request(
            f"This is a fork of forks already, {MAX_PARTS} deep. Fork one of them, or an earlier query."
        )
    if not cut:
        return ancestry
    return ancestry.with_digests(stores.digests.in_force_at(parent.user, cut, through + 1))


def _inherited(stores: AdmissionStores, parent: Conversation, through: int) -> MemorySums:
    """The conversation's sums as of that query. Those of a chat have its summaries in them; if it was deleted with its
    conversation, those of its response are left."""
    if through in (0, parent.queries):
        return parent.costs_so_far if through else MemorySums()
    history = stores.history.across(parent.ancestry)
    chat_id = history.chat_of_query(parent.user, parent.conversation_id, through)
    chat = stores.chats.load(parent.user, chat_id)
    if chat:
        fold = side_nanodollars(chat.fold) if chat.fold else 0
        return replace(chat.memory.sums, aside=chat.memory.sums.aside + fold)
    response = history.records(parent.user, parent.conversation_id, [response_id(through)])
    return next((record.sums for record in response if record.sums), MemorySums())


def make_final(stores: AdmissionStores, parent: Conversation, ancestry: Ancestry) -> None:
    """Write mechanical tracks for the parent's own queries that have none yet, as a follow-up does.

    So a fork finds the track of every query that it shares. It must never write into another conversation, because
    the deletion of that conversation would not notice.
    """
    user, own = parent.user, parent.conversation_id
    if not ancestry.parts or ancestry.parts[-1].conversation_id != own:
        return
    profile = all_profiles().get(parent.profile)
    is_summarised = profile is not None and profile.history.is_summarised
    digest = stores.digests.across(ancestry).find(user, own, ancestry.digests) if ancestry.digests else None
    after = max(digest.through if digest else 0, parent.ancestry.through)
    after = after if is_summarised else max(after, ancestry.through - 1)
    written = stores.history.written_tracks(user, own, after, ancestry.through)
    for number in range(after + 1, ancestry.through + 1):
        if number not in written:
            records = stores.history.query_records(user, own, number)
            ended = partial(_ended, stores, parent, number)
            track = track_without_model(parent.profile, records, ended, iso(stores.clock()))
            with contextlib.suppress(ConditionFailed):
                write_track(stores, parent, track)


def _ended(stores: AdmissionStores, parent: Conversation, number: int) -> tuple[bool, Sequence[RecordedTurn]]:
    """Whether a query's chat of the parent's calls for summaries, and its turns."""
    chat_id = stores.history.chat_of_query(parent.user, parent.conversation_id, number)
    loaded = stores.chats.load_with_turns(parent.user, chat_id) if chat_id else None
    return (loaded[0].calls_for_summaries, loaded[1]) if loaded else (False, ())


def _repeat_actions(stores: AdmissionStores, fork: Conversation, repeat: Repeat | None) -> list[Action]:
    if repeat is None:
        return []
    first, now = FirstRequest(fork.conversation_id, repeat.fingerprint), int(stores.clock())
    return [stores.requests.remember_action(fork.user, repeat.key, first, now, now + _REMEMBERED_SECONDS)]
