"""The running query, or an ended one, as its records say that it was sent: without its past."""

from __future__ import annotations

import base64
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from dualtrack.chat.continued import end_of_answer
from dualtrack.errors import Gone
from dualtrack.memory.blocks import SentResult
from dualtrack.memory.notes import mark_of
from dualtrack.memory.records import block_of
from dualtrack.memory.sending import Cuts
from dualtrack.memory.view import PastTurn, TextFile, View
from dualtrack.models.stops import limit_from_stop
from dualtrack.tools.full_context import result_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.memory.records import Attachment, Record
    from dualtrack.models.stops import LastCallReason
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import ToolStores

T = TypeVar("T")


def view_of_query(
    stores: ToolStores,
    chat: Chat,
    profile: Profile,
    turns: Sequence[RecordedTurn],
    limit: LastCallReason,
    records: tuple[Record, ...],
) -> View:
    """The query and its turns, without its past."""
    asked = (record for record in records if record.type == "message" and record.role == "user")
    query: Record = required(next(asked, None))
    return View(
        tracks=(),
        query=block_of(query),
        instructions=stores.chats.instructions(chat),
        continued=end_of_answer(stores.history, chat, query.continues),
        attachments=_files(stores, chat, [file for file in query.attachments if not file.record_id]),
        files=tuple(_text_file(file, records) for file in query.attachments if file.record_id),
        turns=tuple(_past_turn(stores, chat, turn, records) for turn in turns),
        asks=tuple(turn.sending.asked for turn in turns),
        mark=mark_of(chat.chat_id),
        limit=limit,
        max_turns=profile.max_turns,
        result_limit=profile.result_limit,
        template=profile.query_template,
        cuts=turns[-1].sending.cuts if turns else Cuts(),
    )


def before_answer(
    chat: Chat, turns: Sequence[RecordedTurn], profile: Profile
) -> tuple[Sequence[RecordedTurn], LastCallReason]:
    """The turns before a chat's answer, and the limit of that call; before the first answer, if it had to be given
    again."""
    place = len(turns) - (2 if chat.misfit else 1)
    is_after_rounds = turns[place].number > profile.max_turns
    return turns[:place], chat.limit or limit_from_stop(chat.stop, is_after_rounds=is_after_rounds)


def _past_turn(stores: ToolStores, chat: Chat, turn: RecordedTurn, records: tuple[Record, ...]) -> PastTurn:
    by_id = {record.record_id: record for record in records}
    results = {call.id: _result(stores, chat, required(by_id.get(call.id))) for call in turn.calls}
    return PastTurn(turn.content, turn.calls, MappingProxyType(results), turn.told)


def required(value: T | None) -> T:
    """The value; raises `Gone` if it is missing."""
    if value is None:
        raise Gone
    return value


def _result(stores: ToolStores, chat: Chat, record: Record) -> SentResult:
    """What the model gets from a call's record."""
    call = record.call
    if call is None:
        raise ValueError(record.record_id)
    text = result_text(stores, chat.user, chat.conversation_id, record)
    return SentResult(text, call.is_error, _files(stores, chat, call.media))


def _text_file(file: Attachment, records: tuple[Record, ...]) -> TextFile:
    of_file = (candidate for candidate in records if candidate.record_id == file.record_id)
    record: Record = required(next(of_file, None))
    return TextFile(record.record_id, file.name, record.content)


def _files(
    stores: ToolStores, chat: Chat, attachments: Sequence[Attachment]
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
