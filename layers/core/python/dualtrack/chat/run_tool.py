"""One tool call: run it once and record its result, whatever happens (DESIGN 2.3).

A tool never fails the chat: its errors become an error result for the model. Only errors of our own stores are
raised, because a retry of the step may succeed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.chat.tool_results import OUTCOME_UNKNOWN, record_result
from dualtrack.errors import ChatClosed, Gone, TookTooLong, Transient
from dualtrack.models.metering import Meter
from dualtrack.models.receipt_data import ToolSideCalls
from dualtrack.runtime.time_limit import within
from dualtrack.storage.conversations import allowed_in
from dualtrack.tool_values import ToolResult, failed, reason_of
from dualtrack.tools.running import Running

if TYPE_CHECKING:
    from dualtrack.models.turn import ToolCall
    from dualtrack.requests import ChatRef
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.running import Execute

_log: Final = logging.getLogger(__name__)
_RESERVE_SECONDS: Final = 5.0
TAKEN_BACK: Final = replace(
    failed("the user no longer allows this tool here without being asked. Ask for it again."),
    outcome="declined",
    ran=False,
)
_OF_STORES: Final = (Transient, ClientError, BotoCoreError)
"""What our own stores raise: a retry of the step may succeed."""

OnResult: TypeAlias = Callable[[ToolResult, tuple[ToolSideCalls, ...]], None]
"""Called with a recorded result, and with the model calls that its tool made."""


def run_tool(
    ref: ChatRef,
    call_id: str,
    stores: ToolStores,
    execute: Execute,
    seconds: float,
    recorded: OnResult = lambda *_: None,
) -> dict[str, Any]:
    """Run a call of turn ``ref.turn``, unless it has its record, within ``seconds`` in all.

    Does nothing for a chat that is paused, has ended or was deleted, nor for a call that needs approval and does not
    have it, whoever asks: the input is the recorded one, too. A tool that the conversation no longer allows is not run.
    ``recorded`` is called if this run records the result.
    """
    try:
        _run(ref, call_id, stores, execute, seconds, recorded)
    except (ChatClosed, Gone):
        return {}
    return {}


def _run(
    ref: ChatRef, call_id: str, stores: ToolStores, execute: Execute, seconds: float, recorded: OnResult
) -> None:
    started = time.monotonic()
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status != "running":
        return
    call = _call(stores, chat, ref.turn, call_id)
    if call is None or stores.history.has_record(ref.user, ref.conversation_id, call_id):
        return
    meter = Meter()
    running = Running(ref.user, ref.conversation_id, chat, call)
    if call.needs_leave and not _has_leave(stores, chat, call):
        has_begun = call.is_marked and not stores.chats.forestall(chat, call.id)
        result = OUTCOME_UNKNOWN if has_begun else TAKEN_BACK
    elif (beginning := stores.chats.begin(chat, call.id) if call.is_marked else "first") == "forestalled":
        return
    elif beginning == "again" and not call.repeatable:
        result = OUTCOME_UNKNOWN
    else:
        left = seconds - _RESERVE_SECONDS - (time.monotonic() - started)
        result = _within(execute, running, left, meter)
    asked = meter.side_calls()
    if record_result(stores, chat, ref.turn, call, result, time.monotonic() - started, asked):
        recorded(result, asked)


def _call(stores: ToolStores, chat: Chat, turn: int, call_id: str) -> ToolCall | None:
    recorded = stores.chats.turn(chat, turn)
    calls = recorded.runnable if recorded else ()
    return next((call for call in calls if call.id == call_id), None)


def _has_leave(stores: ToolStores, chat: Chat, call: ToolCall) -> bool:
    """Whether the tool is still allowed as it was when its turn was recorded."""
    history = stores.history
    allowed = allowed_in(history.client, history.table, chat.user, chat.conversation_id)
    return allowed.get(call.tool) == call.allowable


def _within(execute: Execute, running: Running, seconds: float, meter: Meter) -> ToolResult:
    """The tool's result, or an error result if it raises or takes too long.

    It runs in its own thread: a tool that hangs is abandoned, and the step still records a result.
    """

    def metered() -> ToolResult:
        with meter.on():
            return execute(running)

    try:
        return within(max(seconds, 0.1), metered, f"tool-{running.call.id}")
    except TookTooLong as error:
        late = failed(f"it did not answer within {error.seconds:.0f} seconds.")
        return replace(late, outcome="unknown") if running.call.is_marked else late
    except Exception as error:
        # a project's tools have no store of ours
        if isinstance(error, _OF_STORES) and running.call.fn != "own":
            raise
        _log.exception("%s %s failed", running.call.tool, running.chat.chat_id)
        return failed(reason_of(error))
