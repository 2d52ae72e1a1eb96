"""The beginnings of a conversation's latest queries, for the search of conversations (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.errors import Gone
from dualtrack.ids import parse_record_id, query_id
from dualtrack.memory.titles import QUERIES_KEPT, start_of

if TYPE_CHECKING:
    from dualtrack.storage.conversations import Conversation, QueryStarts
    from dualtrack.storage.history import HistoryStore


def asked_up_to(
    history: HistoryStore, conversation: Conversation, through: int, message: str = ""
) -> QueryStarts:
    """The beginnings of the latest queries up to number ``through``, oldest first, then that of ``message``.

    Those that the conversation's item lacks (a fork begins far back) are read.
    """
    last = through + 1 if message else through
    wanted = range(max(1, last - QUERIES_KEPT + 1), through + 1)
    known = dict(conversation.asked)
    if missing := [number for number in wanted if number not in known]:
        known |= _read(history, conversation, missing)
    asked = tuple((number, known[number]) for number in wanted if number in known)
    return (*asked, (last, start_of(message))) if message else asked


def _read(history: HistoryStore, conversation: Conversation, numbers: list[int]) -> dict[int, str]:
    try:
        records = history.across(conversation.ancestry).records(
            conversation.user, conversation.conversation_id, [query_id(number) for number in numbers]
        )
    except Gone:
        return {}  # a search finds less, but the chat must not fail
    return {
        parsed.query: start_of(record.content)
        for record in records
        if (parsed := parse_record_id(record.record_id))
    }
