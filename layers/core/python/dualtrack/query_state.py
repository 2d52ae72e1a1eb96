"""The running query as the model will see it: its view, its turns, its results. Reads only."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.chats import Pin
from dualtrack.full_context import read_reference
from dualtrack.history import partition
from dualtrack.mcp_tools.catalogue import load_catalogue
from dualtrack.records import block_of
from dualtrack.registry import offered_tools
from dualtrack.view import PastTurn, Result, View, stand_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chats import Chat, RecordedTurn
    from dualtrack.profiles import Profile
    from dualtrack.records import Attachment, QueryTrack, Record
    from dualtrack.stores import Stores
    from dualtrack.tools import ToolSpec
    from dualtrack.turn import Limit

SUMMARY_WAIT_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class QueryState:
    """Everything a model call of this query is made from."""

    view: View
    offered: Mapping[str, ToolSpec]
    records: tuple[Record, ...]
    """The query's records so far, in order, whole."""


def pin_view(stores: Stores, chat: Chat, sleep: Callable[[float], None]) -> Chat:
    """The chat with its view pinned. Summaries that are still missing are waited for, at most 3 s.

    Nothing is written where nothing has to be remembered: summaries never change once they are
    there, so a retry finds the same ones.
    """
    if chat.pin is not None:
        return chat
    missing = _missing(stores, chat)
    deadline = stores.clock() + SUMMARY_WAIT_SECONDS
    while missing and stores.clock() < deadline:
        sleep(_POLL_SECONDS)
        missing = _missing(stores, chat)
    catalogue = load_catalogue(stores.dynamodb, stores.cache_table, stores.clock()).version
    if missing or catalogue:
        return stores.chats.pin(chat, Pin(missing, catalogue))
    return chat


def _missing(stores: Stores, chat: Chat) -> tuple[int, ...]:
    written = {
        track.query for track in stores.history.tracks(chat.user, chat.conversation_id, chat.query - 1)
    }
    return tuple(number for number in range(1, chat.query) if number not in written)


def read_query(
    stores: Stores, chat: Chat, profile: Profile, turns: Sequence[RecordedTurn], limit: Limit
) -> QueryState:
    """The query with its pinned past; every turn's calls must have their records."""
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    by_id = {record.record_id: record for record in records}
    catalogue = load_catalogue(
        stores.dynamodb, stores.cache_table, stores.clock(), version=chat.pin.catalogue if chat.pin else ""
    )
    past = tuple(
        PastTurn(
            turn.content,
            turn.calls,
            MappingProxyType({call.id: _result(stores, chat, by_id[call.id]) for call in turn.calls}),
        )
        for turn in turns
    )
    query = records[0]
    view = View(
        tracks=_tracks(stores, chat, profile),
        query=block_of(query),
        attachments=_files(stores, chat, query.attachments),
        turns=past,
        limit=limit,
        max_turns=profile.max_turns,
        result_limit=profile.result_limit,
    )
    return QueryState(view, offered_tools(profile, catalogue), records)


def _tracks(stores: Stores, chat: Chat, profile: Profile) -> tuple[QueryTrack, ...]:
    full = chat.pin.stand_in if chat.pin else ()
    written = {
        track.query: track for track in stores.history.tracks(chat.user, chat.conversation_id, chat.query - 1)
    }
    return tuple(
        _standing_in(stores, chat, number, profile.result_limit) if number in full else written[number]
        for number in range(1, chat.query)
    )


def _standing_in(stores: Stores, chat: Chat, number: int, limit: int) -> QueryTrack:
    return stand_in(stores.history.query_records(chat.user, chat.conversation_id, number), number, limit)


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
    pk = partition(chat.user, chat.conversation_id)
    return tuple(
        MappingProxyType(
            {
                "media_type": one.media_type,
                "data": base64.b64encode(stores.bodies.load(pk, one.body)).decode(),
            }
        )
        for one in attachments
    )
