"""The running query as the model will see it: its view, its turns, its results.

A later turn only reads. The first one also fixes what is sent for good: it writes the missing tracks of earlier
queries, folds the past if it is too long, keeps the agent, and pins all of it.
"""

from __future__ import annotations

import base64
import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.chat.past import fix_past, read_past
from dualtrack.chat.replay import read_replay
from dualtrack.chat.tool_results import complete_results
from dualtrack.clock import iso
from dualtrack.errors import Gone, Superseded
from dualtrack.ids import response_id
from dualtrack.memory.blocks import Result
from dualtrack.memory.digests import Past
from dualtrack.memory.full_history import RETRIEVE_FULL_CONTEXT
from dualtrack.memory.records import block_of
from dualtrack.memory.sending import Cuts
from dualtrack.memory.summaries import track_of
from dualtrack.memory.view import PastTurn, Replay, TextFile, View
from dualtrack.storage.chats import Pin
from dualtrack.storage.dynamo import Lost
from dualtrack.storage.past_writes import write_past
from dualtrack.tools.full_context import result_text
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.registry import IN_HOUSE, offered_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.memory.records import Attachment, QueryTrack, Record
    from dualtrack.models.turn import Limit
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import QueryStores
    from dualtrack.tool_values import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue

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
class _Read:
    """What was read from the tables."""

    past: Past
    records: tuple[Record, ...]
    catalogue: Catalogue

    def missing(self, before: int) -> tuple[int, ...]:
        """Earlier queries whose tracks are not written yet."""
        written = {track.query for track in self.past.tracks}
        return tuple(number for number in _sent_one_by_one(self.past, before) if number not in written)


def pinned_query(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    turns: Sequence[RecordedTurn],
    limit: Limit,
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
    stores: QueryStores, chat: Chat, agent: Agent, turns: Sequence[RecordedTurn], limit: Limit
) -> QueryState:
    """The query as it was sent; nothing is written. Raises `Gone`."""
    stores = stores.across(chat.ancestry)
    return _state(stores, chat, agent, turns, limit, _read(stores, chat, agent.profile, turns))


def _state(
    stores: QueryStores, chat: Chat, agent: Agent, turns: Sequence[RecordedTurn], limit: Limit, read: _Read
) -> QueryState:
    profile = agent.profile
    asked = (record for record in read.records if record.type == "message" and record.role == "user")
    query: Record = _required(next(asked, None))
    offered = offered_tools(profile, agent.tools, read.catalogue)
    tracks, replay = _tracks(chat, profile, read.past), _replay(stores, chat, profile, offered)
    if query.attachments or _names_files(read.past, tracks, replay):
        offered = MappingProxyType({**offered, RETRIEVE_FULL_CONTEXT: IN_HOUSE[RETRIEVE_FULL_CONTEXT]})
    view = View(
        digest=read.past.digest,
        tracks=tracks,
        query=block_of(query),
        attachments=_files(stores, chat, [file for file in query.attachments if not file.record_id]),
        files=tuple(_text_file(file, read.records) for file in query.attachments if file.record_id),
        turns=tuple(_past_turn(stores, chat, turn, read.records) for turn in turns),
        limit=limit,
        max_turns=profile.max_turns,
        result_limit=profile.result_limit,
        replay=replay,
        template=profile.query_template,
        cuts=turns[-1].sending.cuts if turns else Cuts(),
    )
    return QueryState(chat, view, offered, read.records)


def _names_files(past: Past, tracks: Sequence[QueryTrack], replay: Replay) -> bool:
    """Whether files of the past are named, or may be in a digest: every agent can then read them again."""
    named = any(block.names_files for track in tracks for block in track.blocks)
    return past.digest is not None or named or replay.names_files


def _is_new(chat: Chat, turns: Sequence[RecordedTurn]) -> bool:
    """Whether nothing of what will be sent is pinned yet."""
    return chat.pin is None and not turns and chat.status == "running"


def _sent_one_by_one(past: Past, before: int) -> range:
    """The earlier queries that are in no digest."""
    return range(past.digest.through + 1 if past.digest else 1, before)


def _replay(stores: QueryStores, chat: Chat, profile: Profile, offered: Mapping[str, ToolSpec]) -> Replay:
    if profile.history.is_summarised:
        return Replay()
    return read_replay(stores, chat.user, chat.conversation_id, chat.query, profile, offered)


def _read(stores: QueryStores, chat: Chat, profile: Profile, turns: Sequence[RecordedTurn]) -> _Read:
    """Three independent reads in parallel. Later turns get the tools that the first turn pinned."""
    version = chat.pin.catalogue if chat.pin else ("" if turns else None)
    user, conversation_id = chat.user, chat.conversation_id
    with ThreadPoolExecutor(2) as pool:
        past = pool.submit(_read_past, stores, chat, profile, is_fixed=not _is_new(chat, turns))
        catalogue = pool.submit(load_catalogue, stores.cache, stores.clock(), version=version)
        records = stores.history.query_records(user, conversation_id, chat.query)
        return _Read(past.result(), records, catalogue.result())


def _read_past(stores: QueryStores, chat: Chat, profile: Profile, *, is_fixed: bool) -> Past:
    return read_past(stores, chat, is_fixed=is_fixed) if profile.history.is_summarised else Past(None, ())


def _pin(
    stores: QueryStores, chat: Chat, agent: Agent, read: _Read, sleep: Callable[[float], None]
) -> tuple[_Read, Chat]:
    """Pin what is sent: the agent, the tools of servers, the digest. Every track of the past is final by then.

    Nothing else has to be pinned: stored tracks and records never change, so a retry reads the same ones. The agent is
    stored before the pin names it; an agent that no pin names does no harm.
    """
    profile = agent.profile
    stores.agents.keep(agent.version, agent.text)
    if profile.history.is_summarised:
        read = _with_every_track(stores, chat, profile, read, sleep)
    wanted = Pin(catalogue=read.catalogue.version, agent=agent.version)
    past, chat = fix_past(stores, chat, read.past, profile, wanted)
    if chat.pin and chat.pin.agent not in ("", agent.version):
        raise Superseded("another deployment's first attempt")
    return replace(read, past=past), chat


def _with_every_track(
    stores: QueryStores, chat: Chat, profile: Profile, read: _Read, sleep: Callable[[float], None]
) -> _Read:
    """Wait briefly for missing tracks; then write the rest of them here, mechanically."""

    def reread() -> _Read:
        return replace(read, past=read_past(stores, chat, is_fixed=False))

    deadline = stores.clock() + _TRACK_WAIT_SECONDS
    while read.missing(chat.query) and stores.clock() < deadline:
        sleep(_POLL_SECONDS)
        read = reread()
    missing = read.missing(chat.query)
    for number in missing:
        _make_final(stores, chat, number, profile.history.whole_characters)
    return reread() if missing else read


def _make_final(stores: QueryStores, chat: Chat, number: int, whole: int) -> None:
    """Write the mechanical track of an earlier query. If another run was first, its track counts.

    The earlier chat may be answered and not yet done: it is then closed with this track.
    """
    user, conversation_id = chat.user, chat.conversation_id
    records = stores.history.query_records(user, conversation_id, number)
    _required(next((record for record in records if record.record_id == response_id(number)), None))
    track = track_of(records, {}, whole, iso(stores.clock()))
    with contextlib.suppress(Lost):
        write_past(stores, chat, stores.history.track_writes(user, conversation_id, track))


def _past_turn(stores: QueryStores, chat: Chat, turn: RecordedTurn, records: tuple[Record, ...]) -> PastTurn:
    by_id = {record.record_id: record for record in records}
    results = {call.id: _result(stores, chat, _required(by_id.get(call.id))) for call in turn.calls}
    return PastTurn(turn.content, turn.calls, MappingProxyType(results))


def _tracks(chat: Chat, profile: Profile, past: Past) -> tuple[QueryTrack, ...]:
    if not profile.history.is_summarised:
        return ()
    written = {track.query: track for track in past.tracks}
    return tuple(_required(written.get(number)) for number in _sent_one_by_one(past, chat.query))


def _required(value: T | None) -> T:
    if value is None:
        raise Gone
    return value


def _result(stores: QueryStores, chat: Chat, record: Record) -> Result:
    """What the model gets from a call's record."""
    call = record.call
    if call is None:
        raise ValueError(record.record_id)
    text = result_text(stores, chat.user, chat.conversation_id, record)
    return Result(text, call.is_error, _files(stores, chat, call.media))


def _text_file(file: Attachment, records: tuple[Record, ...]) -> TextFile:
    of_file = (candidate for candidate in records if candidate.record_id == file.record_id)
    record: Record = _required(next(of_file, None))
    return TextFile(record.record_id, file.name, record.content)


def _files(
    stores: QueryStores, chat: Chat, attachments: Sequence[Attachment]
) -> tuple[Mapping[str, str], ...]:
    load = partial(stores.history.load_file, chat.user, chat.conversation_id, chat.query)
    return tuple(
        MappingProxyType(
            {
                "media_type": file.media_type,
                "data": base64.b64encode(load(file)).decode(),
            }
        )
        for file in attachments
    )
