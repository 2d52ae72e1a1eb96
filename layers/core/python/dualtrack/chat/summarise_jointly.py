"""All summaries of a query by one more call, on the prefix that its last turn has left in the cache (DESIGN 2.15).

The request is exactly that of the last turn, then the assistant's unchanged reply, then one block that asks for the
summaries. Records that the answer omits get an extract: a second call would cost what the first has saved.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.query_state import read_query
from dualtrack.chat.query_view import before_answer
from dualtrack.chat.turn_request import turn_request
from dualtrack.clock import epoch_of
from dualtrack.errors import Gone
from dualtrack.frozen import thaw
from dualtrack.memory.blocks import text_block, user_message
from dualtrack.memory.joint_summaries import LastCall, ask_for_all, is_cheaper_jointly, summaries_in
from dualtrack.memory.summaries import summary_tokens
from dualtrack.memory.view import build
from dualtrack.storage.chats import Pin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.memory.summaries import SummaryRequest, SummarySettings
    from dualtrack.models.turn import ModelReply
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import QueryStores

_NOT_FOLLOWED: Final = ("refusal", "context_window")
"""Stop reasons after which nothing more can be asked: the model has declined, or there is no room."""
_WHOLE: Final = ("end_turn", "stop_sequence")
"""The reasons after which the last summary of an answer is whole."""


def joint_request(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    requests: Sequence[SummaryRequest],
    mark: str,
    settings: SummarySettings,
) -> dict[str, Any] | None:
    """The body of the call to the Messages API; None if the summaries have to be made record by record."""
    try:
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
        turns = loaded[1] if loaded else ()
        if not turns or not _can_be_followed(chat, turns, requests, settings, stores.clock()):
            return None
        ask = ask_for_all(requests, mark, settings.characters)
        room = len(requests) * summary_tokens(settings.characters)
        return _request_after(stores, chat, agent, turns, ask, room)
    except Gone:
        return None


def joint_summaries(reply: ModelReply, mark: str, requests: Sequence[SummaryRequest]) -> dict[str, str]:
    """The summaries of the answer, by record id."""
    text = "".join(block["text"] for block in reply.content if block["type"] == "text")
    record_ids = frozenset(request.record_id for request in requests)
    return summaries_in(text, mark, record_ids, cut=reply.stop_reason not in _WHOLE)


def new_mark() -> str:
    """A random mark with which the parts of an answer begin."""
    return secrets.token_hex(4)


def _can_be_followed(
    chat: Chat,
    turns: Sequence[RecordedTurn],
    requests: Sequence[SummaryRequest],
    settings: SummarySettings,
    now: float,
) -> bool:
    """Whether the answer can be sent back with a question after it, and whether that costs less. A second answer has
    left nothing in the cache: the prefix is that of the first."""
    kinds = [block["type"] for block in turns[-1].content]
    if not chat.model or chat.stop in _NOT_FOLLOWED:
        return False
    if "tool_use" in kinds or kinds[-1:] != ["text"]:
        return False
    cached = turns[-2] if chat.misfit else turns[-1]
    last_call = LastCall(chat.model, cached.usage, now - epoch_of(chat.ended_at))
    return is_cheaper_jointly(last_call, requests, settings.model, settings.characters)


def _answered(chat: Chat, turn: RecordedTurn) -> list[dict[str, Any]]:
    """The answer as it is sent back. Of a second one its text alone: it was thought about behind another request."""
    return [thaw(block) for block in turn.content if not chat.misfit or block["type"] == "text"]


def _request_after(
    stores: QueryStores,
    chat: Chat,
    agent: Agent,
    turns: Sequence[RecordedTurn],
    ask: str,
    room: int,
) -> dict[str, Any]:
    """The last turn's request, its answer, and the question after it; ``room`` for the summaries, in tokens."""
    _, limit = before_answer(chat, turns, agent.profile)
    pinned = replace(chat, pin=chat.pin or Pin())  # no pin: there was nothing to pin when the query started
    state = read_query(stores, pinned, agent, turns[:-1], limit)
    output = stores.chats.output_schema(chat) or agent.profile.output
    sent = replace(state.view, cuts=turns[-1].sending.cuts, output=output, misfit=chat.misfit)
    messages = [
        *build(sent).messages,
        {"role": "assistant", "content": _answered(chat, turns[-1])},
        user_message([text_block(ask)]),
    ]
    return turn_request(agent, state.offered, limit, messages, room)
