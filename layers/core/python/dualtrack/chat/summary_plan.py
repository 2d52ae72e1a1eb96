"""What the step after an answer summarises: the query's own records; where queries wait for their summaries, a batch of
those that stand whole, or nothing (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.cost_hold import affordable
from dualtrack.chat.keep_whole import MeasuredQuery, kept
from dualtrack.chat.message_before import with_last_sent
from dualtrack.chat.noted_query import noted_query
from dualtrack.clock import epoch_of, iso
from dualtrack.errors import Gone
from dualtrack.memory.joint_summaries import LastCall
from dualtrack.memory.left_out import as_sent
from dualtrack.memory.records import QueryTrack
from dualtrack.memory.summaries import summary_requests, track_of
from dualtrack.memory.when_they_pay import Summariser, WholeQuery, batch, whole_query
from dualtrack.models.windows import LEAST_WINDOW
from dualtrack.storage.dynamo import ConditionFailed
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
class SummaryPlan:
    """The ``requests`` for summaries. ``earlier``: the queries before whose summaries they make, with their tracks so
    far; ``own``: the query as it can be sent whole, if queries wait; ``stays``: whether it stays whole; ``noted``: its
    track and what is written with it, if its notes came with its answer."""

    requests: tuple[SummaryRequest, ...] = ()
    earlier: tuple[tuple[QueryTrack, WholeQuery], ...] = ()
    own: MeasuredQuery | None = None
    stays: bool = False
    noted: tuple[QueryTrack, Sequence[Write]] | None = None


def plan_of(
    stores: QueryStores, chat: Chat, agent: Agent, records: tuple[Record, ...], settings: SummarySettings
) -> SummaryPlan:
    """What is summarised after this answer."""
    at_once = SummaryPlan(summary_requests(records, agent.profile.history.whole_characters))
    if not agent.profile.history.keeps_whole:
        return at_once
    try:
        if agent.profile.history.in_turn:
            return SummaryPlan(noted=_noted(stores.across(chat.ancestry), chat, agent.profile, records))
        return _waiting(stores.across(chat.ancestry), chat, agent, records, settings, at_once)
    except Gone:
        return SummaryPlan() if agent.profile.history.in_turn else at_once


def _noted(
    stores: QueryStores, chat: Chat, profile: Profile, records: tuple[Record, ...]
) -> tuple[QueryTrack, Sequence[Write]] | None:
    loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    if loaded is None or not records:
        return None
    return noted_query(stores, chat, loaded[1], profile, records, iso(stores.clock()))


def _waiting(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    records: tuple[Record, ...],
    settings: SummarySettings,
    at_once: SummaryPlan,
) -> SummaryPlan:
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
    mine = [track for track in as_sent(tracks) if track.whole_tokens]
    if mine and mine[0].query <= chat.ancestry.through:
        return SummaryPlan(
            own=own, stays=True
        )  # a batch takes the oldest, and that is the parent's to summarise
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
        most=partial(_affordable, chat, settings),
    )
    requests = tuple(request for query in chosen for request in query.requests)
    pairs = tuple(zip(mine, earlier, strict=True))[: len(chosen)]
    return SummaryPlan(requests, pairs, own, stays=len(chosen) <= len(earlier))


def _affordable(chat: Chat, settings: SummarySettings, requests: Sequence[SummaryRequest]) -> int:
    """How many of these requests the chat can pay for, from the first on."""
    return len(affordable(requests, settings, chat.costs.summaries) if chat.costs else requests)


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
    plan: SummaryPlan,
    summaries: Mapping[str, str],
    whole: int,
) -> tuple[QueryTrack, Sequence[Write]]:
    """Write the summarised tracks of earlier queries, and return the query's own, with what is written beside it.

    If the model made no summary, what stands whole stays so. There are no records if the conversation was deleted
    meanwhile: then the closed log rejects the next write. Raises `ConditionFailed`.
    """
    now = iso(stores.clock())
    if not records:
        return QueryTrack(chat.query, ()), ()
    if plan.noted is not None:
        return plan.noted
    own = track_of(records, summaries, whole, now)
    if plan.own is None:
        return with_last_sent(own, chat, records), ()
    is_made = any(summaries.values()) or not plan.requests
    if is_made and plan.earlier:
        made = [_summarised(*pair, summaries, whole, now) for pair in plan.earlier]
        try:
            write_summaries(stores, chat, made)
        except (
            ConditionFailed
        ):  # the chat before, which is summarised at the same time, has made some of them
            write_summaries(stores, chat, _still_whole(stores, chat, made))
    stays = bool(plan.own.whole.messages) and (plan.stays or not is_made)
    own = with_last_sent(plan.own.on(own, whole=stays), chat, records)
    return own, plan.own.writes(stores.history, chat, chat.query) if stays else ()


def _still_whole(stores: QueryStores, chat: Chat, made: Sequence[QueryTrack]) -> list[QueryTrack]:
    first, last = made[0].query, made[-1].query
    written = stores.history.tracks(chat.user, chat.conversation_id, last, first - 1)
    whole = {track.query for track in written if track.whole_tokens}
    return [track for track in made if track.query in whole]


def _summarised(
    before: QueryTrack, query: WholeQuery, summaries: Mapping[str, str], whole: int, now: str
) -> QueryTrack:
    return replace(track_of(query.records, summaries, whole, now), pace=before.pace)
