"""What follows from decisions on a paused chat's calls, whoever made them (DESIGN 2.20).

some calls stay open    ─► one transaction { the decisions with their turn, records of results }
every call is decided   ─► one transaction { the same, credits of what was approved, chat running, `resumed` }
                           ─► the next execution enters where the last one ended; if it is not started, the sweep
                              starts it
its API key's cap leaves less dollars than the chat may cost ─► nothing is written
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.chat.executions import start_execution
from dualtrack.chat.move_credits import lines_of, move_credits
from dualtrack.chat.pauses import resumed
from dualtrack.chat.pay_calls import CallPayment, calls_begin, pay_calls
from dualtrack.chat.tool_results import outside_events, result_from_outside
from dualtrack.credits.account import HoldRefusal
from dualtrack.events import resumed as resumed_event
from dualtrack.requests import AFTER_PAUSE_SECONDS
from dualtrack.storage.chats import charged
from dualtrack.storage.past_writes import write_past

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.event_data import DecidedCall
    from dualtrack.memory.records import Record
    from dualtrack.models.turn import ToolCall
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.conversations import Allowing
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import ChatStores
    from dualtrack.tool_values import ToolResult
    from dualtrack.vocabulary import DecidedBy

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Beside:
    """What decisions bring beside themselves: tools that are allowed in the conversation, and results from outside, by
    call."""

    allowing: Allowing | None = None
    results: Mapping[str, ToolResult] = field(default_factory=lambda: MappingProxyType({}))


_NOTHING: Final = Beside()


def record_decisions(
    stores: ChatStores,
    chat: Chat,
    turn: RecordedTurn,
    after: RecordedTurn,
    by: DecidedBy,
    beside: Beside = _NOTHING,
) -> Chat:
    """Commit the decisions. After the last one the chat is running; `start_again` makes it go on. Raises
    `ConditionFailed`, `Superseded` and `ChatClosed` if something has moved, and `ApiError` (402) if its key's cap in
    dollars leaves too little to go on: nothing is decided then."""
    came = {
        call.id: result_from_outside(stores, chat, turn.number, call, beside.results[call.id])
        for call in after.calls
        if call.id in beside.results
    }
    writes = [write for _, written in came.values() for write in written]
    if after.waits:
        decided = [*stores.chats.decide_writes(chat, turn, after), stores.chats.same_check(chat)]
        until, allowing = chat.deadline + AFTER_PAUSE_SECONDS, beside.allowing
        held = _hold(stores, chat, until, allowing) if allowing else None
        write_past(stores, chat, [*decided, *writes], held)
        return chat
    records = [*_earlier(stores, chat, after), *(record for record, _ in came.values())]
    told = outside_events(after, records)
    return _resume(stores, chat, turn, after, by, beside.allowing, (told, writes))


def _earlier(stores: ChatStores, chat: Chat, turn: RecordedTurn) -> Sequence[Record]:
    """The records of results that came before the last decisions."""
    ids = [call.id for call in turn.calls if call.is_answered]
    return stores.history.records(chat.user, chat.conversation_id, ids) if ids else ()


def _hold(stores: ChatStores, chat: Chat, until: int, allowing: Allowing | None) -> Action:
    return stores.conversations.hold_action(chat.user, chat.conversation_id, chat.chat_id, until, allowing)


def _resume(
    stores: ChatStores,
    chat: Chat,
    turn: RecordedTurn,
    decided: RecordedTurn,
    by: DecidedBy,
    allowing: Allowing | None,
    came: StepWrites,
) -> Chat:
    """The chat goes on; ``came``: the events of the results from outside, and the writes of the last of them."""
    now, log = stores.clock(), stores.log(chat)
    approved = [call for call in decided.calls if call.asks and call.may_run]
    classes = [call.price_class for call in approved]

    def hold(account: Account) -> AccountChange | HoldRefusal:
        needed = chat.costs.in_all if chat.costs else 0
        return account.resume(chat.chat_id, classes, chat.paid, now, needed, chat.times.longer)

    def paid(change: AccountChange) -> tuple[CallPayment, Chat]:
        calls = pay_calls(decided.calls, approved, change.fits)
        return calls, _goes_on(chat, replace(decided, calls=calls.calls), calls, change, by, now)

    def recorded(change: AccountChange) -> StepWrites:
        calls, after = paid(change)
        waited = [call for call in calls.calls if call.asks]
        events = [
            resumed_event(turn.number, by, [_shown(call) for call in waited if call.verdict]),
            calls_begin(turn.number, waited),
            calls.credits_event(after),
            *came[0],
        ]
        writes = [
            *came[1],
            *stores.chats.decide_writes(chat, turn, replace(decided, calls=calls.calls)),
            stores.chats.change_action(chat, after),
            _hold(stores, chat, after.deadline, allowing),
            stores.paused.delete_action(chat.payer, chat),
        ]
        return events, writes

    held = move_credits(stores.ledger, log, chat.payer, hold, recorded)
    if isinstance(held, HoldRefusal):
        raise held.error()
    return paid(held)[1]


def _goes_on(
    chat: Chat,
    turn: RecordedTurn,
    paid: CallPayment,
    change: AccountChange,
    by: DecidedBy,
    now: float,
) -> Chat:
    """The chat after the pause. If no call of the turn ran for lack of credits, the next model call is the last."""
    is_idle = not any(call.may_run or call.is_answered for call in turn.calls)
    after = charged(resumed(chat, turn, by, now), paid.charged)
    return replace(
        after,
        held=chat.held + change.amount,
        credits_remaining=change.account.available(now, chat.key_id),
        spent=after.spent.moved(lines_of(change, chat.chat_id)),
        limit="insufficient_credits" if paid.unpaid and is_idle else chat.limit,
    )


def _shown(call: ToolCall) -> DecidedCall:
    assert call.verdict
    return {"id": call.id, "outcome": call.verdict.outcome}


def start_again(executions: Executions, chat: Chat) -> None:
    """Start the execution that goes on after the pause, unless the chat has moved on. If that fails, the sweep does it:
    the decision is recorded."""
    if chat.status != "running" or chat.pause is None or chat.turn != chat.pause.turn:
        return
    try:
        start_execution(executions, chat)
    except Exception:  # noqa: BLE001 - whatever it is
        _log.exception("%s goes on with the next sweep", chat.chat_id)
