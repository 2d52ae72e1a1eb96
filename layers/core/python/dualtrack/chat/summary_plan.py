"""What the step after an answer summarises: the query's own records; where queries wait for their summaries, a batch of
those that stand whole, or nothing (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.chat.keep_whole import Kept, kept
from dualtrack.clock import epoch_of, iso
from dualtrack.errors import Gone
from dualtrack.memory.joint_summaries import LastCall
from dualtrack.memory.records import QueryTrack
from dualtrack.memory.summaries import summary_requests, track_of
from dualtrack.memory.when_they_pay import Summariser, WholeQuery, batch, whole_query
from dualtrack.models.windows import LEAST_WINDOW
from dualtrack.storage.past_writes import write_summaries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.memory.records import Record
    from dualtrack.memory.sending import Sending
    from dualtrack.memory.summaries import SummaryRequest, SummarySettings
    from dualtrack.profiles import Profile
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import QueryStores


OWN_SHARE: Final = 3
"""The part of a call, as its reciprocal, that a query expects for its own results."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The ``requests`` for summaries. ``earlier``: the queries before whose summaries they make, with their tracks so
    far; ``own``: the query as it can be sent whole, if queries wait; ``stays``: whether it stays whole."""

    requests: tuple[SummaryRequest, ...] = ()
    earlier: tuple[tuple[QueryTrack, WholeQuery], ...] = ()
    own: Kept | None = None
    stays: bool = False


def plan_of(
    stores: QueryStores, chat: Chat, agent: Agent, records: tuple[Record, ...], settings: SummarySettings
) -> Plan:
    """What is summarised after this answer."""
    at_once = Plan(summary_requests(records, agent.profile.history.whole_characters))
    if not agent.profile.history.waits:
        return at_once
    try:
        return _waiting(stores.across(chat.ancestry), chat, agent, records, settings, at_once)
    except Gone:
        return at_once


def _waiting(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    records: tuple[Record, ...],
    settings: SummarySettings,
    at_once: Plan,
) -> Plan:
    loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    if loaded is None or not loaded[1]:
        return at_once
    turns, profile = loaded[1], agent.profile
    digest, _ = stores.digests.newest(chat.user, chat.conversation_id)
    after = digest.through if digest else 0
    tracks = stores.history.tracks(chat.user, chat.conversation_id, chat.query - 1, after)
    own = kept(stores, chat, turns, profile, records, tracks)
    if not own.whole.messages:
        return replace(at_once, own=own)
    whole, characters = profile.history.whole_characters, settings.characters
    mine = [track for track in tracks if track.whole_tokens and track.query > chat.ancestry.through]
    earlier = [
        whole_query(_records(stores, chat, track.query), track.whole_tokens, whole, characters)
        for track in mine
    ]
    this = whole_query(records, own.tokens, whole, characters)
    last = LastCall(chat.model, turns[-1].usage, stores.clock() - epoch_of(chat.ended_at))
    chosen = batch(
        [*earlier, this],
        own.pace,
        Summariser(last, settings.model, characters, _scale(turns[-1].sending)),
        is_forced=_is_full(profile, turns[-1].sending.estimated),
    )
    requests = tuple(request for query in chosen for request in query.requests)
    pairs = tuple(zip(mine, earlier, strict=True))[: len(chosen)]
    return Plan(requests, pairs, own, stays=len(chosen) <= len(earlier))


def _scale(sent: Sending) -> float:
    """The service's count of the last call, by our estimate of it."""
    return sent.reported / sent.estimated if sent.reported and sent.estimated else 1.0


def _is_full(profile: Profile, sent: int) -> bool:
    """Whether the last call was so long, in cautious tokens, that it left too little for another query's own part."""
    context = min(profile.context_tokens, LEAST_WINDOW)
    return sent > context - profile.max_tokens - context // OWN_SHARE


def _records(stores: QueryStores, chat: Chat, query: int) -> tuple[Record, ...]:
    return stores.history.query_records(chat.user, chat.conversation_id, query)


def write_batch(
    stores: QueryStores,
    chat: Chat,
    records: tuple[Record, ...],
    plan: Plan,
    summaries: Mapping[str, str],
    whole: int,
) -> tuple[QueryTrack, Sequence[Write]]:
    """Write the summarised tracks of earlier queries, and return the query's own, with what is written beside it.

    If the model made no summary, what stands whole stays so. There are no records if the conversation was deleted
    meanwhile: then the closed log rejects the next write. Raises `Lost`.
    """
    now = iso(stores.clock())
    if not records:
        return QueryTrack(chat.query, ()), ()
    own = track_of(records, summaries, whole, now)
    if plan.own is None:
        return own, ()
    is_made = bool(summaries) or not plan.requests
    if is_made and plan.earlier:
        write_summaries(stores, chat, [_summarised(*pair, summaries, whole, now) for pair in plan.earlier])
    stays = bool(plan.own.whole.messages) and (plan.stays or not is_made)
    return plan.own.on(own, whole=stays), plan.own.writes(stores.history, chat, chat.query) if stays else ()


def _summarised(
    before: QueryTrack, query: WholeQuery, summaries: Mapping[str, str], whole: int, now: str
) -> QueryTrack:
    return replace(track_of(query.records, summaries, whole, now), pace=before.pace)
