"""A query as it is sent whole: in its own messages (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.query_view import before_answer, required, view_of_query
from dualtrack.frozen import freeze
from dualtrack.ids import response_id
from dualtrack.memory.blocks import text_block
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.records import Whole, block_of
from dualtrack.memory.view import own_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.memory.records import QueryTrack, Record
    from dualtrack.profiles import Profile
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.history import HistoryStore
    from dualtrack.storage.stores import ToolStores

_NOT_KEPT: Final = ("refusal", "context_window")
"""Stop reasons after which the messages are not sent again: the model has declined them, or they were too long."""


@dataclass(frozen=True, slots=True)
class MeasuredQuery:
    """A query as it is sent whole, and its cautious tokens. Without messages the query cannot be sent whole: files of
    past queries are not sent again."""

    whole: Whole
    tokens: int

    def on(self, track: QueryTrack) -> QueryTrack:
        """The query's track, marked as sent whole."""
        return replace(track, whole_tokens=self.tokens)

    def writes(self, history: HistoryStore, chat: Chat, query: int) -> list[Write]:
        """The messages, to be written with the track."""
        return history.whole_writes(chat.user, chat.conversation_id, query, self.whole)


def kept(
    stores: ToolStores,
    chat: Chat,
    turns: Sequence[RecordedTurn],
    profile: Profile,
    records: tuple[Record, ...],
) -> MeasuredQuery:
    """The query of an answered chat with its recorded turns. Raises `Gone`."""
    messages = _messages(stores, chat, profile, turns, records)
    return MeasuredQuery(Whole(messages, chat.prefix), message_tokens(messages))


def _messages(
    stores: ToolStores,
    chat: Chat,
    profile: Profile,
    turns: Sequence[RecordedTurn],
    records: tuple[Record, ...],
) -> tuple[Mapping[str, Any], ...]:
    has_files = any(record.call.media if record.call else record.attachments for record in records)
    if has_files or chat.stop in _NOT_KEPT:
        return ()
    before, limit = before_answer(chat, turns, profile)
    view = view_of_query(stores, chat, profile, before, limit, records)
    asks = (*view.asks, turns[len(before)].sending.asked)
    said = own_messages(replace(view, instructions="", continued="", cuts=turns[-1].sending.cuts, asks=asks))
    wanted = response_id(chat.query)
    response: Record = required(next((record for record in records if record.record_id == wanted), None))
    answer = {"role": "assistant", "content": [text_block(block_of(response).text)]}
    messages: tuple[Mapping[str, Any], ...] = freeze([*said, answer])
    return messages
