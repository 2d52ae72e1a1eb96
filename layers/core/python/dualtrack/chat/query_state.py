"""The running query as the model will see it: its view, its turns, its results.

A later turn only reads. The first one also fixes what is sent for good: it writes the missing tracks of earlier
queries, folds the past if it is too long, keeps the agent, and pins all of it.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.chat.noted_query import noted_query
from dualtrack.chat.past import fix_past, read_past
from dualtrack.chat.query_view import required, view_of_query
from dualtrack.chat.replay import read_replay
from dualtrack.chat.tool_results import complete_results
from dualtrack.clock import iso
from dualtrack.errors import Superseded
from dualtrack.ids import response_id
from dualtrack.memory.digests import Past
from dualtrack.memory.recall import RETRIEVE_FULL_CONTEXT
from dualtrack.memory.summaries import track_of
from dualtrack.memory.view import Replay, View
from dualtrack.storage.chats import Pin
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.past_writes import write_past
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.registry import IN_HOUSE, offered_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.memory.records import QueryTrack, Record, Whole
    from dualtrack.models.stops import LastCallReason
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import QueryStores
    from dualtrack.tool_values import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue

    _Answered = tuple[Chat, tuple[RecordedTurn, ...]]

T = TypeVar("T")

_TRACK_WAIT_SECONDS: Final = 0.2
"""Summaries delay a follow-up by at most half a second (CONTRACT 6), including its own work after the wait."""
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class QueryState:
    """All data for a model call of this query."""

    chat: Chat
    """Has its pin, if there was something to pin."""
    view: View
    offered: Mapping[str, ToolSpec]
    records: tuple[Record, ...]
    """The query's records so far, in order and in full."""


@dataclass(frozen=True, slots=True)
class _StoredState:
    """What was read from the tables."""

    past: Past
    records: tuple[Record, ...]
    catalogue: Catalogue
    client: tuple[ToolSpec, ...]
    """The tools that the chat's client runs."""

    def missing(self, before: int) -> tuple[int, ...]:
        """Earlier queries whose tracks are not written yet."""
        written = {track.query for track in self.past.tracks}
        return tuple(number for number in _sent_one_by_one(self.past, before) if number not in written)


def pinned_query(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    turns: Sequence[RecordedTurn],
    limit: LastCallReason,
    sleep: Callable[[float], None],
) -> QueryState:
    """The query with its past pinned, and with a record of every call of its last turn.

    Raises `Gone` if something that has to be sent was deleted, and `Superseded` if another first attempt has pinned
    another agent.
    """
    stores = stores.across(chat.ancestry)
    read = _read(stores, chat, agent.profile, turns)
    recorded = {record.record_id for record in read.records}
    if turns and any(call.id not in recorded for call in turns[-1].calls):
        complete_results(stores, chat, turns[-1], dead=True)
        read = replace(
            read, records=stores.history.query_records(chat.user, chat.conversation_id, chat.query)
        )
    if _is_new(chat, turns):
        read, chat = _pin(stores, chat, agent, read, sleep)
    return _state(stores, chat, agent, turns, limit, read)


def read_query(
    stores: QueryStores, chat: Chat, agent: Agent, turns: Sequence[RecordedTurn], limit: LastCallReason
) -> QueryState:
    """The query as it was sent; nothing is written. Raises `Gone`."""
    stores = stores.across(chat.ancestry)
    return _state(stores, chat, agent, turns, limit, _read(stores, chat, agent.profile, turns))


def _state(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    turns: Sequence[RecordedTurn],
    limit: LastCallReason,
    read: _StoredState,
) -> QueryState:
    profile = agent.profile
    offered = offered_tools(profile, agent.tools, read.catalogue)
    own = view_of_query(stores, chat, profile, turns, limit, read.records)
    tracks, replay = _tracks(chat, profile, read.past), _replay(stores, chat, profile, offered)
    if own.attachments or own.files or _names_files(read.past, tracks, replay):
        offered = {**offered, RETRIEVE_FULL_CONTEXT: IN_HOUSE[RETRIEVE_FULL_CONTEXT]}
    offered = MappingProxyType({**offered, **{spec.name: spec for spec in read.client}})
    view = replace(
        own,
        digest=read.past.digest,
        tracks=tracks,
        whole=_whole(chat, offered, read.past),
        replay=replay,
    )
    return QueryState(chat, view, offered, read.records)


def _names_files(past: Past, tracks: Sequence[QueryTrack], replay: Replay) -> bool:
    """Whether files of the past are named, or may be in a digest: every agent can then read them again."""
    named = any(block.names_files for track in tracks for block in track.blocks)
    return past.digest is not None or named or replay.names_files


def _whole(chat: Chat, offered: Mapping[str, ToolSpec], past: Past) -> Mapping[int, Whole]:
    """The past queries that are sent whole: those that call tools only if there still are tools."""
    before = chat.prefix
    sent = {number: whole.sent_after(before) for number, whole in past.whole.items()}
    return MappingProxyType(
        {number: whole for number, whole in sent.items() if offered or not whole.uses_tools}
    )


def _is_new(chat: Chat, turns: Sequence[RecordedTurn]) -> bool:
    """Whether nothing of what will be sent is pinned yet."""
    return chat.pin is None and not turns and chat.status == "running"


def _sent_one_by_one(past: Past, before: int) -> range:
    """The earlier queries that are in no digest."""
    return range(past.digest.through + 1 if past.digest else 1, before)


def _replay(stores: QueryStores, chat: Chat, profile: Profile, offered: Mapping[str, ToolSpec]) -> Replay:
    if profile.history.is_summarised:
        return Replay()
    left_out = chat.pin.left_out if chat.pin else 0
    return read_replay(stores, chat.user, chat.conversation_id, chat.query, profile, offered, left_out)


def _read(stores: QueryStores, chat: Chat, profile: Profile, turns: Sequence[RecordedTurn]) -> _StoredState:
    """Three independent reads in parallel. Later turns get the tools that the first turn pinned."""
    version = chat.pin.catalogue if chat.pin else ("" if turns else None)
    user, conversation_id = chat.user, chat.conversation_id
    with ThreadPoolExecutor(2) as pool:
        past = pool.submit(_read_past, stores, chat, profile, is_fixed=not _is_new(chat, turns))
        catalogue = pool.submit(load_catalogue, stores.cache, stores.clock(), version=version)
        records = stores.history.query_records(user, conversation_id, chat.query)
        return _StoredState(past.result(), records, catalogue.result(), stores.chats.client_tools(chat))


def _read_past(stores: QueryStores, chat: Chat, profile: Profile, *, is_fixed: bool) -> Past:
    if not profile.history.is_summarised:
        return Past(None, ())
    return read_past(stores, chat, profile, is_fixed=is_fixed)


def _pin(
    stores: QueryStores, chat: Chat, agent: Agent, read: _StoredState, sleep: Callable[[float], None]
) -> tuple[_StoredState, Chat]:
    """Pin what is sent: the agent, the tools of servers, the digest. Every track of the past is final by then.

    Nothing else has to be pinned: stored tracks and records never change, so a retry reads the same ones. The agent is
    stored before the pin names it; an agent that no pin names does no harm.
    """
    profile = agent.profile
    stores.agents.keep(agent.version, agent.text)
    if profile.history.is_summarised:
        read = _with_every_track(stores, chat, profile, read, sleep)
    wanted = Pin(
        catalogue=read.catalogue.version,
        agent=agent.version,
        summarised=profile.history.calls_for_summaries,
    )
    past, chat = fix_past(stores, chat, read.past, profile, wanted)
    if chat.pin and chat.pin.agent not in ("", agent.version):
        raise Superseded("another deployment's first attempt")
    return replace(read, past=past), chat


def _with_every_track(
    stores: QueryStores, chat: Chat, profile: Profile, read: _StoredState, sleep: Callable[[float], None]
) -> _StoredState:
    """Wait briefly for missing tracks; then write the rest of them here, without a model. Where notes came with the
    answer, there is nothing to wait for. How an earlier query becomes short was decided as it began."""

    def reread() -> _StoredState:
        return replace(read, past=read_past(stores, chat, profile, is_fixed=False))

    missing = read.missing(chat.query)
    earlier = {number: _answered(stores, chat, number) for number in missing}
    is_called_for = any(found and found[0].calls_for_summaries for found in earlier.values())
    deadline = stores.clock() + (_TRACK_WAIT_SECONDS if is_called_for else 0.0)
    while read.missing(chat.query) and stores.clock() < deadline:
        sleep(_POLL_SECONDS)
        read = reread()
    missing = read.missing(chat.query)
    for number in missing:
        _make_final(stores, chat, profile, number, earlier.get(number))
    return reread() if missing else read


def _make_final(
    stores: QueryStores, chat: Chat, profile: Profile, number: int, earlier: _Answered | None
) -> None:
    """Write the track of an earlier query without a model. If another run was first, its track counts.

    The ``earlier`` chat may be answered and not yet done: it is then closed with this track.
    """
    user, conversation_id = chat.user, chat.conversation_id
    records = stores.history.query_records(user, conversation_id, number)
    required(next((record for record in records if record.record_id == response_id(number)), None))
    if earlier and not earlier[0].calls_for_summaries:
        track, also = noted_query(stores, *earlier, profile, records, iso(stores.clock()))
    else:
        track, also = track_of(records, {}, profile.history.whole_characters, iso(stores.clock())), []
    with contextlib.suppress(ConditionFailed):
        write_past(stores, chat, [*stores.history.track_writes(user, conversation_id, track), *also])


def _answered(stores: QueryStores, chat: Chat, number: int) -> _Answered | None:
    """The chat of an earlier query with its turns, if it has an answer."""
    chat_id = stores.history.chat_of_query(chat.user, chat.conversation_id, number)
    loaded = stores.chats.load_with_turns(chat.user, chat_id) if chat_id else None
    return loaded if loaded and loaded[1] and loaded[0].status in ("answered", "done") else None


def _tracks(chat: Chat, profile: Profile, past: Past) -> tuple[QueryTrack, ...]:
    if not profile.history.is_summarised:
        return ()
    written = {track.query: track for track in past.tracks}
    return tuple(required(written.get(number)) for number in _sent_one_by_one(past, chat.query))
