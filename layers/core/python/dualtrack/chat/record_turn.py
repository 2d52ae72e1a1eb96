"""What a model's reply becomes: the turn, recorded with its credits in one transaction (DESIGN 2.3, 3).

a turn with tools  { turn, chat, thought, hold of the calls that fit, events }
an answer          { turn, chat, response, credits settled, conversation free, events }
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.ask_for_notes import is_note_due
from dualtrack.chat.memory_figures import with_end, with_turn
from dualtrack.chat.message_before import message_behind
from dualtrack.chat.move_credits import cost_of, lines_of, move_credits
from dualtrack.chat.pay_calls import CallPayment, calls_begin, pay_calls, price_of_free, uncharged
from dualtrack.chat.receipt import model_nanodollars
from dualtrack.chat.tool_results import complete_results
from dualtrack.chat.turn_attempt import no_other_run
from dualtrack.clock import iso
from dualtrack.credits.plans import chat_price
from dualtrack.errors import Superseded
from dualtrack.events import Event, answer, credits_now, record_stored
from dualtrack.ids import query_id, response_id, thought_id
from dualtrack.memory.records import Record
from dualtrack.memory.sources import sources_of, unused_sources
from dualtrack.models.prices import rates_of
from dualtrack.models.receipt_data import TurnCall, at_rates
from dualtrack.models.stops import MOST_CUTS, SECOND_ANSWER, is_known
from dualtrack.storage.chats import Chat, RecordedTurn, charged, notes_of, with_usage
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.ask_model import ModelAnswer
    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.chat.query_state import QueryState
    from dualtrack.chat.turn_attempt import TurnAttempt
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.memory.sending import Sending
    from dualtrack.models.turn import ModelReply, ToolCall, TurnDecision
    from dualtrack.storage.bodies import Write

_REASON: Final = 100
"""Maximum length of an unknown stop reason, as it is stored and logged."""


@dataclass(frozen=True, slots=True)
class _DecidedTurn:
    """A turn to be recorded: the reply, the decision on it, and the chat without its new credits."""

    run: TurnAttempt
    reply: ModelReply
    decision: TurnDecision
    after: Chat
    now: float
    sending: Sending
    made: TurnCall

    @property
    def wanted(self) -> list[ToolCall]:
        """The calls to be paid."""
        return [call for call in self.decision.calls if call.may_run]

    def paid(self, fits: Sequence[bool]) -> CallPayment:
        """All calls, once the ledger has said which of the wanted ones fit."""
        return pay_calls(self.decision.calls, self.wanted, fits)


def record_turn(
    run: TurnAttempt, state: QueryState, said: ModelAnswer, made: TurnCall, decision: TurnDecision
) -> tuple[Chat, RecordedTurn]:
    """Commit the turn with its credits; returns the chat behind it, and the turn. If the account has moved, decide
    again. Raises `Superseded` if another run has recorded the turn."""
    reply, sending = said.reply, said.sending
    after = with_usage(run.chat, reply.usage)
    after = with_turn(after, said.view, said.sent, sending.estimated, said.fixed, reply, made, decision)
    after = replace(after, turn=run.number, calls=run.chat.calls + len(decision.calls))
    after = replace(after, model=run.agent.model, effort=run.agent.thinking.effort)
    after = replace(after, message=message_behind(run.chat, said.view, run.turns, reply.message))
    after = replace(after, misfit=decision.misfit or after.misfit, fits=decision.fits)
    if run.limit != SECOND_ANSWER and (decision.misfit or decision.stop not in ("complete", run.limit)):
        after = replace(after, limit=run.limit)  # its stop does not say it
    after = replace(after, cuts=run.chat.cuts + decision.is_cut, declined=_said_of(reply))
    if decision.is_cut and after.cuts >= MOST_CUTS:
        after = replace(after, limit="cut_calls")
    turn = _DecidedTurn(run, reply, decision, after, run.stores.clock(), sending, made)
    try:
        if decision.next == "answered":
            _commit_answer(turn, state.records)
        else:
            decision = _commit_tools(turn)
    except ConditionFailed as lost:
        raise Superseded(", ".join(lost.items)) from lost
    recorded = RecordedTurn(
        run.number,
        reply.content,
        decision.calls,
        decision.next,
        reply.usage,
        made,
        sending,
        decision.told,
        decision.notes,
    )
    run.told.recorded(recorded)
    if decision.next != "answered":
        complete_results(run.stores, after, recorded, dead=False)
    return after, recorded


def _commit_tools(turn: _DecidedTurn) -> TurnDecision:
    """Hold the price of every call that fits, refuse the rest, and record the turn."""
    run, chat = turn.run, turn.run.chat
    classes = [call.price_class for call in turn.wanted]

    def hold(account: Account) -> AccountChange:
        return account.hold_tools(chat.chat_id, classes, chat.paid, turn.now)

    recorded = partial(_recorded_tools, turn)
    held = move_credits(run.stores.ledger, run.log, chat.payer, hold, recorded, no_other_run)
    return _with(turn.decision, turn.paid(held.fits))


def _recorded_tools(turn: _DecidedTurn, change: AccountChange) -> StepWrites:
    run, chat, stores = turn.run, turn.run.chat, turn.run.stores
    paid = turn.paid(change.fits)
    decision, thought = _with(turn.decision, paid), _thought(turn, turn.decision.text)
    after = _after_hold(turn, paid, change, thought)
    writes = stores.chats.turn_writes(chat, run.number, turn.reply, decision, after, turn.sending, turn.made)
    return _tools_events(run, paid, thought, after), [*writes, *_thought_writes(run, thought)]


def _with(decision: TurnDecision, paid: CallPayment) -> TurnDecision:
    runnable = any(call.may_run for call in paid.calls)
    return replace(decision, calls=paid.calls, next="tools" if runnable else "turn")


def _after_hold(turn: _DecidedTurn, paid: CallPayment, change: AccountChange, thought: Record | None) -> Chat:
    """The chat after the hold. If no call of the turn could run for lack of credits, the next turn is the last one."""
    after = charged(turn.after, paid.charged)
    is_idle = not any(call.may_run or call.is_open for call in paid.calls)
    return replace(
        after,
        held=after.held + change.amount,
        credits_remaining=change.account.available(turn.now, after.key_id),
        spent=after.spent.moved(lines_of(change, after.chat_id)),
        thoughts=after.thoughts + (1 if thought else 0),
        limit="insufficient_credits" if paid.unpaid and is_idle else after.limit,
    )


def _thought(turn: _DecidedTurn, text: str = "") -> Record | None:
    """What the assistant thought and wrote before its tools or, without a text, before its answer; only for the full
    track."""
    thinking = [block["thinking"] for block in turn.reply.content if block["type"] == "thinking"]
    content = "\n\n".join(part for part in (*thinking, text) if part.strip())
    if not content:
        return None
    record_id = thought_id(turn.run.chat.query, turn.run.chat.thoughts + 1)
    is_said = text.strip() and not (turn.decision.misfit or turn.decision.told)
    said = len(text) if is_said else 0
    return Record(record_id, "message", "assistant", content, iso(turn.now), turn.run.number, said=said)


def _thought_writes(run: TurnAttempt, thought: Record | None) -> list[Write]:
    chat = run.chat
    return (
        run.stores.history.record_writes(chat.user, chat.conversation_id, thought, "thought")
        if thought
        else []
    )


def _thought_event(thought: Record | None) -> list[Event]:
    return [record_stored(thought.record_id, "assistant", "message")] if thought else []


def _tools_events(run: TurnAttempt, paid: CallPayment, thought: Record | None, after: Chat) -> list[Event]:
    """Calls that wait for a decision begin, if at all, when they are approved."""
    events = _thought_event(thought)
    if begun := [call for call in paid.calls if not call.is_open]:
        events.append(calls_begin(run.number, begun))
    return [*events, paid.credits_event(after)]


def _commit_answer(turn: _DecidedTurn, records: Sequence[Record]) -> None:
    """Store the response, settle the credits, and release the conversation."""
    run, chat = turn.run, turn.run.chat

    this = RecordedTurn(run.number, (), (), "answered", usage=turn.reply.usage, made=turn.made)
    free = price_of_free(run.turns, uncharged(records))
    cost = cost_of(turn.after, model_nanodollars(turn.after, [*run.turns, this], records))

    def settle(account: Account) -> AccountChange:
        amount = chat_price(chat.profile) if turn.decision.stop == "refusal" else chat.held - free
        return account.settle(chat.chat_id, amount, turn.now, cost)

    recorded = partial(_recorded_answer, turn, records)
    move_credits(run.stores.ledger, run.log, chat.payer, settle, recorded, no_other_run)
    run.told.ended("answered", turn.decision.stop)


def _recorded_answer(turn: _DecidedTurn, records: Sequence[Record], change: AccountChange) -> StepWrites:
    run, chat, stores = turn.run, turn.run.chat, turn.run.stores
    said, now = turn.decision, iso(turn.now)
    record_id = response_id(chat.query)
    helped = after_pin.left_out if (after_pin := turn.after.pin) and said.stop != "refusal" else 0
    response = Record(
        record_id, "message", "assistant", said.text, now, run.number, stop=said.stop, left_out=helped
    )
    question = next((record.content for record in records if record.record_id == query_id(chat.query)), "")
    response = replace(response, unused=unused_sources(records, question, said.text))
    after = with_end(_after_settle(turn, change), [*records, response])
    asked = {*turn.sending.asked, *(one for each in run.turns for one in each.sending.asked)}
    is_due, is_noted = is_note_due(asked, said.text, chat.query), bool(said.notes or notes_of(run.turns))
    after = replace(after, memory=after.memory.heard(due=is_due, noted=is_noted))
    response, thought = replace(response, sums=after.memory.sums), _thought(turn)
    after = replace(after, thoughts=after.thoughts + (1 if thought else 0))
    events = [
        *_thought_event(thought),
        record_stored(record_id, "assistant", "message"),
        credits_now(after.credits_used, 0, after.credits_remaining),
        answer(said.text, sources_of([*records, response]), said.stop, run.number),
    ]
    writes = [
        *stores.chats.turn_writes(chat, run.number, turn.reply, said, after, turn.sending, turn.made),
        *_thought_writes(run, thought),
        *stores.history.record_writes(chat.user, chat.conversation_id, response, "response"),
        stores.conversations.free_action(after, now),
    ]
    return events, writes


def _after_settle(turn: _DecidedTurn, change: AccountChange) -> Chat:
    """The chat after its answer."""
    return replace(
        turn.after,
        status="answered",
        stop=turn.decision.stop,
        ended_at=iso(turn.now),
        spent=turn.after.spent.moved(lines_of(change, turn.after.chat_id)),
        held=0,
        credits_used=change.amount,
        credits_remaining=change.account.available(turn.now, turn.after.key_id),
    )


def _said_of(reply: ModelReply) -> dict[str, str] | None:
    declined = reply.declined
    return {"category": declined.category, "explanation": declined.explanation} if declined else None


def call_of(run: TurnAttempt, said: ModelAnswer, asked_at: str, seconds: float) -> TurnCall:
    """Data of the call for the receipt."""
    before, model = run.before, run.agent.model
    calls = 0 if said.without_room else said.reply.calls
    refused = len(run.left_out) + said.refused + (not run.is_forced)
    tries, first = before.tries + refused + calls, said.reply.first_seconds
    reason = said.reply.stop_reason
    unknown = "" if is_known(reason) else one_line(clean(reason))[:_REASON]
    prompt = said.reply.usage.prompt_tokens // max(calls, 1)
    return TurnCall(
        asked_at,
        round(seconds, 3),
        first,
        calls,
        tries,
        at_rates(before.lost, model, prompt),
        model,
        before.waited,
        unknown,
        rates_of(model, prompt, asked_at),
        said.reply.cache,
    )
