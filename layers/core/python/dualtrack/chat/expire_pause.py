"""The end of a pause in which nobody decided. Apart from `dualtrack.chat.decide_calls`, which checks edited arguments:
the sweep has no jsonschema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.chat.record_decisions import record_decisions, start_again
from dualtrack.errors import Superseded
from dualtrack.models.turn import Verdict
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ChatStores

EXPIRED: Final = "Nobody decided in time."


def expire_pause(stores: ChatStores, executions: Executions, chat: Chat) -> Chat | None:
    """End a pause whose time is up: its open calls count as not decided, and the chat goes on. Returns None if the
    chat has moved on. Raises `ApiError` (402) if its key's cap in dollars leaves too little for that."""
    loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    if loaded is None or loaded[0].status != "paused" or stores.clock() < loaded[0].deadline:
        return None
    chat, turn = loaded[0], loaded[1][-1]
    verdict = Verdict("expired", "expired")
    calls = tuple(call.decided(verdict, EXPIRED) if call.is_open else call for call in turn.calls)
    try:
        expired = record_decisions(stores, chat, turn, replace(turn, calls=calls), "expired")
    except (ConditionFailed, Superseded):
        return None
    start_again(executions, expired)
    return expired
