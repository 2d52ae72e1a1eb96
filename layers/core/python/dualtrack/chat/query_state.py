"""The running query as the model will see it: its view, its turns, its results. Reads only."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.errors import Gone
from dualtrack.memory.policies import POLICIES
from dualtrack.memory.records import block_of
from dualtrack.memory.view import PastTurn, Result, View, stand_in
from dualtrack.storage.chats import Pin
from dualtrack.tools.full_context import read_reference
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.registry import offered_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.memory.records import Attachment, QueryTrack, Record
    from dualtrack.models.turn import Limit
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import Stores
    from dualtrack.tool import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue

T = TypeVar("T")

SUMMARY_WAIT_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class QueryState:
    """Everything a model call of this query is made from."""

    chat: Chat
    """With its view pinned, if there was something to pin."""
    view: View
    offered: Mapping[str, ToolSpec]
    records: tuple[Record, ...]
    """The query's records so far, in order, whole."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the tables say."""

    tracks: tuple[QueryTrack, ...]
    records: tuple[Record, ...]
    catalogue: Catalogue

    def missing(self, before: int) -> tuple[int, ...]:
        """Earlier queries whose summaries are not written yet."""
        written = {track.query for track in self.tracks}
        return tuple(number for number in range(1, before) if number not in written)


def read_query(
    stores: Stores,
    chat: Chat,
    profile: Profile,
    turns: Sequence[RecordedTurn],
    limit: Limit,
    complete: Callable[[RecordedTurn], None],
    sleep: Callable[[float], None],
) -> QueryState:
    """The query with its past pinned. ``complete`` gives the last turn's calls without a record one.

    Raises `Gone` if something that has to be sent is not there any more.
    """
    read = _read(stores, chat, len(turns))
    recorded = {record.record_id for record in read.records}
    if turns and any(call.id not in recorded for call in turns[-1].calls):
        complete(turns[-1])
        read = replace(
            read, records=stores.history.query_records(chat.user, chat.conversation_id, chat.query)
        )
    if chat.pin is None and not turns:
        read, chat = _pin(stores, chat, read, sleep)
    query = _there(next((one for one in read.records if one.type == "message" and one.role == "user"), None))
    view = View(
        tracks=_tracks(stores, chat, profile, read.tracks),
        query=block_of(query),
        attachments=_files(stores, chat, query.attachments),
        turns=tuple(_past_turn(stores, chat, turn, read.records) for turn in turns),
        limit=limit,
        max_turns=profile.max_turns,
        result_limit=profile.result_limit,
        policy=POLICIES[profile.history.policy],
        template=profile.query_template,
    )
    return QueryState(chat, view, offered_tools(profile, read.catalogue), read.records)


def _read(stores: Stores, chat: Chat, turns: int) -> _Read:
    """Three reads that do not need each other, at once. Later turns get the tools that the first pinned."""
    version = chat.pin.catalogue if chat.pin else ("" if turns else None)
    user, conversation_id = chat.user, chat.conversation_id
    with ThreadPoolExecutor(2) as pool:
        tracks = pool.submit(stores.history.tracks, user, conversation_id, chat.query - 1)
        catalogue = pool.submit(load_catalogue, stores.cache, stores.clock(), version=version)
        records = stores.history.query_records(user, conversation_id, chat.query)
        return _Read(tracks.result(), records, catalogue.result())


def _pin(stores: Stores, chat: Chat, read: _Read, sleep: Callable[[float], None]) -> tuple[_Read, Chat]:
    """Fix what of the past is sent. Summaries that are still missing are waited for, at most 3 s.

    Nothing is written where nothing has to be remembered: summaries never change once they are
    there, so a retry finds the same ones.
    """
    deadline = stores.clock() + SUMMARY_WAIT_SECONDS
    while read.missing(chat.query) and stores.clock() < deadline:
        sleep(_POLL_SECONDS)
        tracks = stores.history.tracks(chat.user, chat.conversation_id, chat.query - 1)
        read = replace(read, tracks=tracks)
    missing = read.missing(chat.query)
    if missing or read.catalogue.version:
        return read, stores.chats.pin(chat, Pin(missing, read.catalogue.version))
    return read, chat


def _past_turn(stores: Stores, chat: Chat, turn: RecordedTurn, records: tuple[Record, ...]) -> PastTurn:
    by_id = {record.record_id: record for record in records}
    results = {call.id: _result(stores, chat, _there(by_id.get(call.id))) for call in turn.calls}
    return PastTurn(turn.content, turn.calls, MappingProxyType(results))


def _tracks(
    stores: Stores, chat: Chat, profile: Profile, tracks: tuple[QueryTrack, ...]
) -> tuple[QueryTrack, ...]:
    full = chat.pin.stand_in if chat.pin else ()
    written = {track.query: track for track in tracks}
    return tuple(
        _standing_in(stores, chat, number, profile.result_limit)
        if number in full
        else _there(written.get(number))
        for number in range(1, chat.query)
    )


def _standing_in(stores: Stores, chat: Chat, number: int, limit: int) -> QueryTrack:
    records = stores.history.query_records(chat.user, chat.conversation_id, number)
    _there(next(iter(records), None))
    return stand_in(records, number, limit)


def _there(found: T | None) -> T:
    if found is None:
        raise Gone
    return found


def _result(stores: Stores, chat: Chat, record: Record) -> Result:
    """What a call's record brings to the model; a reference is read anew, it always reads the same."""
    call = record.call
    if call is None:
        raise ValueError(record.record_id)
    text = record.content
    if call.reference:
        text = read_reference(stores, chat.user, chat.conversation_id, call.reference)
    return Result(text, call.is_error, _files(stores, chat, call.media))


def _files(stores: Stores, chat: Chat, attachments: Sequence[Attachment]) -> tuple[Mapping[str, str], ...]:
    load = partial(stores.history.load_file, chat.user, chat.conversation_id)
    return tuple(
        MappingProxyType(
            {
                "media_type": one.media_type,
                "data": base64.b64encode(load(one)).decode(),
            }
        )
        for one in attachments
    )
