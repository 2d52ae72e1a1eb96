"""An answer that goes on where it ended: which one, and what the model is sent of it (CONTRACT 4).

The query that continues it is a record like any other, with a sentence of ours in place of a message. The end of the
answer stands behind it, in the running query alone: the summarised track has a summary of it, with which no text can be
gone on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.errors import ApiError, Gone
from dualtrack.ids import parse_record_id, query_id, response_id

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.history import HistoryStore

END_CHARACTERS: Final = 16_000
"""What is sent of the answer's end: all of one with 4,096 tokens."""

_WORDS: Final = "Continue the answer {id} from where it ends."


def words_of_continuing(answer_id: str) -> str:
    """The text of a query that continues an answer."""
    return _WORDS.format(id=answer_id)


def answer_to_continue(history: HistoryStore, conversation: Conversation, *, is_any: bool) -> str:
    """The id of the conversation's last answer if it can go on: one that reached its limit of tokens, or with
    ``is_any`` whatever ended it. A continuation that came to nothing, or was stopped, is made again. Raises 409.
    """
    number = conversation.queries
    wanted = [query_id(number), response_id(number)] if number else []
    history = history.across(conversation.ancestry)
    records = history.records(conversation.user, conversation.conversation_id, wanted)
    found = {record.record_id: record for record in records}
    query, response = found.get(query_id(number)), found.get(response_id(number))
    if query is None or response is None:
        raise _refused("There is no answer in this conversation.")
    if query.continues and not response.stop:
        return query.continues
    may_go_on = response.stop == "max_tokens" or (query.continues and response.stop == "cancelled")
    if not may_go_on and not (is_any and response.stop not in ("", "refusal")):
        raise _refused(
            "The last answer was not cut off at its limit of length: there is nothing to go on with."
        )
    return response.record_id


def _refused(message: str) -> ApiError:
    return ApiError("nothing_to_continue", message)


def end_of_answer(history: HistoryStore, chat: Chat, answer_id: str) -> str:
    """The last characters of an answer, with those that it continues before it; empty without one. Raises `Gone`."""
    text = ""
    while answer_id and len(text) < END_CHARACTERS:
        parsed = parse_record_id(answer_id)
        asked = query_id(parsed.query) if parsed else ""
        records = history.records(chat.user, chat.conversation_id, [asked, answer_id])
        found = {record.record_id: record for record in records}
        if answer_id not in found or asked not in found:
            raise Gone(answer_id)
        text = found[answer_id].content + text
        answer_id = found[asked].continues
    return text[-END_CHARACTERS:]
