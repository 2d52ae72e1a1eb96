"""POST /v1/chats/{chat_id}/decisions, and the end of a pause in which nobody decided (CONTRACT 4, DESIGN 2.20).

some calls stay open    ─► one transaction { the decisions with their turn }
every call is decided   ─► one transaction { the decisions, credits of what was approved, chat running, `resumed` }
                           ─► the next execution enters where the last one ended; if it is not started, the sweep
                              starts it
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.agent import agent_of
from dualtrack.chat.executions import start_execution
from dualtrack.chat.move_credits import lines_of, move_credits
from dualtrack.chat.pauses import resumed
from dualtrack.chat.pay_calls import Paid, calls_begin, pay_calls
from dualtrack.errors import ApiError, Contended, Superseded, invalid_request, not_found
from dualtrack.events import resumed as resumed_event
from dualtrack.frozen import dumps
from dualtrack.models.turn import Verdict
from dualtrack.requests import ChatRef
from dualtrack.storage.dynamo import Lost
from dualtrack.storage.past_writes import write_past
from dualtrack.text import clean
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.registry import offered_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.chat.agent import Deployed
    from dualtrack.chat.move_credits import Recorded
    from dualtrack.credits.account import Account
    from dualtrack.credits.account import Decision as Credits
    from dualtrack.event_data import DecidedCall
    from dualtrack.models.turn import ToolCall
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import ChatStores, TurnStores
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import DecidedBy

_log: Final = logging.getLogger(__name__)
_TRIES: Final = 40
"""Each round lets one of those through that decide at once; a turn has at most 20 calls."""

EXPIRED: Final = "Nobody decided in time."
DECLINED: Final = "The user declined this call"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A decision on a call as it was asked for: approved, with another ``input`` if there is one, or declined."""

    call_id: str
    approve: bool
    reason: str = ""
    input: Mapping[str, Any] | None = None

    @property
    def mark(self) -> str:
        """A hash of the decision (`dualtrack.models.turn.Verdict`)."""
        said = dumps([self.approve, self.reason, self.input])
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def on(self, call: ToolCall, by: DecidedBy) -> ToolCall:
        """The call with this decision."""
        if not self.approve:
            reason = clean(self.reason).strip()
            refused = f"{DECLINED}: {reason}" if reason else f"{DECLINED}."
            return call.decided(Verdict("declined", by, self.mark), refused)
        if self.input is None:
            return call.decided(Verdict("approved", by, self.mark))
        return replace(call.decided(Verdict("edited", by, self.mark)), input=self.input)


def decide_calls(
    stores: TurnStores,
    executions: Executions,
    chat: Chat,
    wanted: Sequence[Wanted],
    by: DecidedBy,
    deployed: Deployed,
) -> Chat:
    """Decide calls of a paused chat and return its new state; the chat goes on when none is open. The same decisions
    again change nothing. Raises `ApiError`: 400, 404, 409 and 410."""
    for _ in range(_TRIES):
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
        if loaded is None:
            raise not_found("There is no such chat.")
        current, turns = loaded
        todo = _still_open(current, turns, wanted, stores.clock())
        if not todo:
            _start_again(executions, current)
            return current
        turn = turns[-1]
        _check_inputs(stores, current, todo, deployed)
        decided = {decision.call_id: decision.on(call, by) for _, decision, call in todo}
        after = replace(turn, calls=tuple(decided.get(call.id, call) for call in turn.calls))
        try:
            return _record(stores, executions, current, turn, after, by)
        except (Lost, Superseded):
            continue
    raise Contended("Others decided at the same time, again and again.")


def expire_pause(stores: ChatStores, executions: Executions, chat: Chat) -> Chat | None:
    """End a pause whose time is up: its open calls count as not decided, and the chat goes on. Returns None if the
    chat has moved on."""
    loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    if loaded is None or loaded[0].status != "paused" or stores.clock() < loaded[0].deadline:
        return None
    chat, turn = loaded[0], loaded[1][-1]
    verdict = Verdict("expired", "expired")
    calls = tuple(call.decided(verdict, EXPIRED) if call.is_open else call for call in turn.calls)
    try:
        return _record(stores, executions, chat, turn, replace(turn, calls=calls), "expired")
    except (Lost, Superseded):
        return None


_Todo = tuple[int, Wanted, "ToolCall"]
"""A decision with its place in the request, and its call."""


def _still_open(
    chat: Chat, turns: Sequence[RecordedTurn], wanted: Sequence[Wanted], now: float
) -> list[_Todo]:
    """The decisions that are not made yet; none if all were made in just this way. Raises `ApiError`."""
    calls = {call.id: call for turn in turns for call in turn.calls}
    todo = []
    for place, decision in enumerate(wanted):
        call = calls.get(decision.call_id)
        if call is None or not call.asks:
            if chat.status != "paused":
                raise _not_paused(chat)
            raise invalid_request(f"decisions.{place}.id: {decision.call_id!r:.80} waits for no decision")
        if call.verdict is None:
            todo.append((place, decision, call))
        elif call.verdict.outcome == "expired":
            raise ApiError("expired", f"Nobody decided on {call.id} in time, and the chat went on.")
        elif call.verdict.mark != decision.mark:
            raise ApiError("already_decided", f"{call.id} was decided: {call.verdict.outcome}.")
    if todo and (chat.status != "paused" or any(not call.is_open for _, _, call in todo)):
        raise _not_paused(chat)
    if todo and now >= chat.deadline:
        raise ApiError("expired", "Nobody decided in time; the chat goes on without these calls.")
    return todo


def _not_paused(chat: Chat) -> ApiError:
    return ApiError("not_paused", f"This chat waits for no decision: it is {chat.status}.")


def _check_inputs(stores: TurnStores, chat: Chat, todo: Sequence[_Todo], deployed: Deployed) -> None:
    """Edited arguments are checked as the model's are. Raises 400."""
    edited = [(place, decision.input, call) for place, decision, call in todo if decision.input is not None]
    if not edited:
        return
    offered = _offered(stores, chat, deployed)
    for place, arguments, call in edited:
        spec = offered.get(call.tool)
        problem = invalid_arguments(spec, arguments) if spec else "the tool is no longer offered"
        if problem:
            raise invalid_request(f"decisions.{place}.input: {problem}")


def _offered(stores: TurnStores, chat: Chat, deployed: Deployed) -> Mapping[str, ToolSpec]:
    agent = agent_of(stores.agents, chat, deployed)
    pinned = chat.pin.catalogue if chat.pin else ""
    catalogue = load_catalogue(stores.cache, stores.clock(), version=pinned)
    return offered_tools(agent.profile, agent.tools, catalogue)


def _record(
    stores: ChatStores,
    executions: Executions,
    chat: Chat,
    turn: RecordedTurn,
    after: RecordedTurn,
    by: DecidedBy,
) -> Chat:
    """Commit the decisions; the chat goes on if they are the last. Raises `Lost` and `Superseded` if it has moved."""
    if after.waits:
        writes = stores.chats.decide_writes(chat, turn, after)
        write_past(stores, chat, [*writes, stores.chats.same_check(chat)])
        return chat
    resumed_chat = _resume(stores, chat, turn, after, by)
    _start_again(executions, resumed_chat)
    return resumed_chat


def _resume(stores: ChatStores, chat: Chat, turn: RecordedTurn, decided: RecordedTurn, by: DecidedBy) -> Chat:
    now, log = stores.clock(), stores.log(chat)
    approved = [call for call in decided.calls if call.asks and call.may_run]
    classes = [call.price_class for call in approved]

    def hold(account: Account) -> Credits:
        return account.resume(chat.chat_id, classes, chat.documentation_paid, now)

    def paid(credits: Credits) -> tuple[Paid, Chat]:  # noqa: A002
        calls = pay_calls(decided.calls, approved, credits.fits)
        return calls, _goes_on(chat, replace(decided, calls=calls.calls), calls, credits, by, now)

    def recorded(credits: Credits) -> Recorded:  # noqa: A002
        calls, after = paid(credits)
        waited = [call for call in calls.calls if call.asks]
        events = [
            resumed_event(turn.number, by, [_shown(call) for call in waited if call.verdict]),
            calls_begin(turn.number, waited),
            calls.credits_event(after),
        ]
        writes = [
            *stores.chats.decide_writes(chat, turn, replace(decided, calls=calls.calls)),
            stores.chats.change_action(chat, after),
            stores.conversations.hold_action(chat.user, chat.conversation_id, chat.chat_id, after.deadline),
            stores.paused.delete_action(chat.payer, chat),
        ]
        return events, writes

    return paid(move_credits(stores.ledger, log, chat.payer, hold, recorded))[1]


def _goes_on(
    chat: Chat,
    turn: RecordedTurn,
    paid: Paid,
    credits: Credits,  # noqa: A002
    by: DecidedBy,
    now: float,
) -> Chat:
    """The chat after the pause. If no call of the turn ran for lack of credits, the next model call is the last."""
    is_idle, after = not any(call.may_run for call in turn.calls), resumed(chat, turn, by, now)
    return replace(
        after,
        held=chat.held + credits.amount,
        credits_remaining=credits.account.available(now),
        spent=after.spent.moved(lines_of(credits, chat.chat_id)),
        documentation_paid=chat.documentation_paid or paid.has_documentation,
        limit="insufficient_credits" if paid.unpaid and is_idle else chat.limit,
    )


def _shown(call: ToolCall) -> DecidedCall:
    assert call.verdict
    return {"id": call.id, "outcome": call.verdict.outcome}


def _start_again(executions: Executions, chat: Chat) -> None:
    """Start the execution that goes on after the pause, unless the chat has moved on. If that fails, the sweep does it:
    the decision is recorded."""
    if chat.status != "running" or chat.pause is None or chat.turn != chat.pause.turn:
        return
    ref = ChatRef(chat.user, chat.chat_id, chat.conversation_id, chat.entry)
    try:
        start_execution(executions, ref, chat.execution)
    except Exception:  # noqa: BLE001 - whatever it is
        _log.exception("%s goes on with the next sweep", chat.chat_id)
