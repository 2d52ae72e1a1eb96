"""One turn: a model call, what it means, and the one transaction that records it (DESIGN 2.3, 3).

    read the log's tail ─► recorded already? return it
      └► results of the turn before complete ─► `turn` event ─► Claude, text as `delta` events
           └► decide ─► commit { turn, chat, thought or response, credits, events }

Every step of it may run twice. A run that has been overtaken finds somebody else's event where its
own should go, and stops (`Superseded`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.end_chat import INCOMPLETE, Failure, end_chat
from dualtrack.chat.query_state import QueryState, read_query
from dualtrack.chat.tool_results import complete_results
from dualtrack.clock import iso
from dualtrack.credits.plans import price_calls
from dualtrack.errors import ChatClosed, Contended, Gone, ModelRefused, Superseded
from dualtrack.events import (
    Event,
    answer,
    credits_now,
    credits_short,
    record_stored,
    tool_calls_start,
    turn_begins,
)
from dualtrack.frozen import thaw
from dualtrack.ids import response_id, thought_id
from dualtrack.memory.records import Record
from dualtrack.memory.sources import sources_of
from dualtrack.memory.view import Sent, build
from dualtrack.models.turn import Decision, Limit, ModelReply, ToolCall, decide
from dualtrack.profiles import all_profiles
from dualtrack.storage.chats import Chat, RecordedTurn, calls_to_run, with_usage
from dualtrack.storage.dynamo import Action, Lost
from dualtrack.storage.ledger import with_account
from dualtrack.streaming.delta_writer import DeltaWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.credits.account import Account
    from dualtrack.credits.account import Decision as Credits
    from dualtrack.events import StoredEvent
    from dualtrack.models.protocol import Model
    from dualtrack.profiles import Profile
    from dualtrack.requests import ChatRef
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import Stores
    from dualtrack.tool import ToolSpec

_OVERTAKES: Final = 6
_POLL_SECONDS: Final = 1.0
_STILL_POLLS: Final = 8
_FOR_ITS_CONTENT: Final = frozenset({400, 413})
"""What the model's service answers to a file that only it can read to the end: then the files are left out."""
_UNPAID: Final = "Tool execution failed: not enough credits, so it was not run."


@dataclass(frozen=True, slots=True)
class TurnDeps:
    """What a turn needs beside the stores. ``model_name``: of a profile that names none of its own;
    ``invalid`` checks a tool's input against its schema."""

    stores: Stores
    model: Model
    model_name: str
    invalid: Callable[[ToolSpec, Mapping[str, Any]], str]
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class _Run:
    """One attempt at one turn."""

    deps: TurnDeps
    chat: Chat
    profile: Profile
    log: EventLog
    number: int
    limit: Limit


def run_turn(ref: ChatRef, deps: TurnDeps) -> dict[str, Any]:
    """Run turn ``ref.turn`` + 1 and return ``{"turn", "next", "calls": [{"id", "fn"}]}``.

    Raises `Transient` for what a retry may mend. ``next`` is ``failed`` when the chat has ended
    meanwhile or when the model's service will not take the request.
    """
    for _ in range(_OVERTAKES):
        try:
            return _attempt(ref, deps)
        except ChatClosed:
            return _outcome(ref.turn + 1, "failed")
        except Superseded:
            continue
        except ModelRefused as error:
            end_chat(deps.stores, ref, Failure("internal", str(error)))
            return _outcome(ref.turn + 1, "failed")
        except Gone:
            end_chat(deps.stores, ref, INCOMPLETE)
            return _outcome(ref.turn + 1, "failed")
    raise Contended("Other runs of this turn were faster every time.")


def _attempt(ref: ChatRef, deps: TurnDeps) -> dict[str, Any]:
    """The log's tail is read before anything else: whoever commits after this moves it, and is noticed."""
    stores = deps.stores
    log = stores.log(ref)
    closed = _is_closed(log)
    found = stores.chats.load_with_turns(ref.user, ref.chat_id)
    if found is None:
        return _outcome(ref.turn + 1, "failed")
    chat, turns = found
    if len(turns) > ref.turn:
        recorded = turns[ref.turn]
        if not closed:
            complete_results(stores, log, chat, recorded, dead=False)
        return _recorded_outcome(recorded)
    if closed:
        raise ChatClosed(ref.chat_id)
    profile = all_profiles()[chat.profile]
    limit: Limit = chat.limit or ("max_turns" if ref.turn + 1 > profile.max_turns else "")
    run = _Run(deps, chat, profile, log, ref.turn + 1, limit)
    try:
        return _call_model(run, turns)
    except ChatClosed:
        raise
    except Superseded:
        _let_the_other_finish(run)
        raise


def _let_the_other_finish(run: _Run) -> None:
    """Wait until the other run has recorded the turn, or its events have stood still for a while.

    Two runs that both went on at once would overtake each other in turns, at a model call each.
    """
    tail, still = 0, 0
    while still < _STILL_POLLS and run.deps.stores.chats.turn(run.chat, run.number) is None:
        run.deps.sleep(_POLL_SECONDS)
        found = run.log.next_slot()
        tail, still = found, still + 1 if found == tail else 0


def _is_closed(log: EventLog) -> bool:
    try:
        log.next_slot()
    except ChatClosed:
        return True
    return False


def _call_model(run: _Run, turns: tuple[RecordedTurn, ...]) -> dict[str, Any]:
    stores = run.deps.stores
    complete = partial(complete_results, stores, run.log, run.chat, dead=True)
    state = read_query(stores, run.chat, run.profile, turns, run.limit, complete, run.deps.sleep)
    sent = build(state.view)
    begins = turn_begins(run.number, run.profile.max_turns, final=bool(run.limit))
    run.log.append([begins], fence=_no_commit)
    with DeltaWriter(run.log, run.number, _no_other_run) as writer:
        try:
            reply = run.deps.model.stream(_request(run, state, sent), writer.write)
        except ModelRefused as refused:
            if refused.status not in _FOR_ITS_CONTENT or not sent.files:
                raise
            sent = build(replace(state.view, without_files=True))
            reply = run.deps.model.stream(_request(run, state, sent), writer.write)
    decision = decide(
        reply,
        query=run.chat.query,
        calls_before=run.chat.calls,
        offered=state.offered,
        limit=run.limit,
        invalid=run.deps.invalid,
    )
    return _record(replace(run, chat=state.chat), state, sent, reply, decision)


def _no_commit(event: StoredEvent) -> None:
    """While announcing: another run has announced or committed since the tail was read."""
    if event.event in ("turn", "credits", "answer"):
        raise Superseded(event.event)


def _no_other_run(event: StoredEvent) -> None:
    """After announcing: a newer run of this turn has begun."""
    if event.event == "turn":
        raise Superseded(event.event)


def _request(run: _Run, state: QueryState, sent: Sent) -> dict[str, Any]:
    """The call to the Messages API. The last one keeps its tools, so that it keeps the cached prefix."""
    system = {"type": "text", "text": run.profile.system, "cache_control": {"type": "ephemeral"}}
    request: dict[str, Any] = {
        "model": run.profile.model or run.deps.model_name,
        "max_tokens": run.profile.max_tokens,
        "system": [system],
        "messages": list(sent.messages),
    }
    if state.offered:
        request["tools"] = [_tool(spec) for spec in state.offered.values()]
        if run.limit:
            request["tool_choice"] = {"type": "none"}
    return request


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": thaw(spec.input_schema)}


# ── recording ─────────────────────────────────────────────────────────────────────────────────────


def _record(
    run: _Run, state: QueryState, sent: Sent, reply: ModelReply, decision: Decision
) -> dict[str, Any]:
    """Commit the turn with its credits; a lost account is decided anew, a lost turn was recorded by another."""
    after = with_usage(run.chat, reply.usage, sent.sent_tokens, sent.full_history_tokens)
    after = replace(after, turn=run.number, calls=run.chat.calls + len(decision.calls))
    try:
        if decision.next == "answered":
            decision = _commit_answer(run, state, reply, decision, after)
        else:
            decision = _commit_tools(run, reply, decision, after)
    except Lost as lost:
        raise Superseded(", ".join(lost.items)) from lost
    recorded = RecordedTurn(run.number, reply.content, decision.calls, decision.next)
    if decision.next != "answered":
        complete_results(run.deps.stores, run.log, after, recorded, dead=False)
    return _recorded_outcome(recorded)


@dataclass(frozen=True, slots=True)
class _Paid:
    """A turn's calls after the ledger has spoken: what could not be paid is refused."""

    decision: Decision
    unpaid: tuple[ToolCall, ...]


def _commit_tools(run: _Run, reply: ModelReply, decision: Decision, after: Chat) -> Decision:
    """Hold the price of every call that fits, refuse the rest, and record all of it."""
    stores, chat = run.deps.stores, run.chat
    wanted = [call for call in decision.calls if not call.refused]
    thought = _thought(run, reply, decision.text)
    now = stores.clock()
    committed = decision

    def hold(account: Account) -> Credits:
        classes = [call.price_class for call in wanted]
        return account.hold_tools(chat.chat_id, classes, chat.documentation_paid, now)

    def commit(account: Account, credits: Credits) -> None:  # noqa: A002
        nonlocal committed
        paid = _with_refusals(decision, wanted, credits.fits)
        available = credits.account.available(now)
        changed = replace(_after_hold(after, paid, credits.amount, thought), credits_remaining=available)

        def actions() -> list[Action]:
            guarded = stores.while_open(run.log)
            recorded = guarded.chats.turn_actions(chat, run.number, reply, paid.decision, changed)
            stored = (
                [guarded.history.record_action(chat.user, chat.conversation_id, thought, "thought")]
                if thought
                else []
            )
            return [*recorded, *stored, *stores.ledger.actions(account, credits)]

        events = _tools_events(run, paid, thought, changed, available)
        run.log.append(events, actions, _no_other_run)
        committed = paid.decision

    with_account(stores.ledger, chat.user, hold, commit)
    return committed


def _with_refusals(decision: Decision, wanted: Sequence[ToolCall], fits: Sequence[bool]) -> _Paid:
    unpaid = tuple(call for call, fit in zip(wanted, fits, strict=True) if not fit)
    ids = {call.id for call in unpaid}
    calls = tuple(replace(call, refused=_UNPAID) if call.id in ids else call for call in decision.calls)
    runnable = any(not call.refused for call in calls)
    return _Paid(replace(decision, calls=calls, next="tools" if runnable else "turn"), unpaid)


def _after_hold(after: Chat, paid: _Paid, held: int, thought: Record | None) -> Chat:
    """If nothing of the turn could run for want of credits, the next call is the last one."""
    documentation = any(
        call.price_class == "documentation" and not call.refused for call in paid.decision.calls
    )
    return replace(
        after,
        held=after.held + held,
        thoughts=after.thoughts + (1 if thought else 0),
        documentation_paid=after.documentation_paid or documentation,
        limit="insufficient_credits" if paid.unpaid and paid.decision.next == "turn" else after.limit,
    )


def _thought(run: _Run, reply: ModelReply, text: str) -> Record | None:
    """What the assistant thought and wrote before its tools: full track only."""
    thinking = [block["thinking"] for block in reply.content if block["type"] == "thinking"]
    content = "\n\n".join(part for part in (*thinking, text) if part.strip())
    if not content:
        return None
    record_id = thought_id(run.chat.query, run.chat.thoughts + 1)
    return Record(record_id, "message", "assistant", content, iso(run.deps.stores.clock()), run.number)


def _tools_events(
    run: _Run, paid: _Paid, thought: Record | None, changed: Chat, available: int
) -> list[Event]:
    events = [record_stored(thought.record_id, "assistant", "message")] if thought else []
    if paid.decision.calls:
        calls = [{"id": call.id, "tool": call.tool, "input": call.input} for call in paid.decision.calls]
        events.append(tool_calls_start(run.number, calls))
    if not paid.unpaid:
        return [*events, credits_now(0, changed.held, available)]
    required = price_calls([paid.unpaid[0].price_class], changed.documentation_paid)[0]
    return [*events, credits_short(0, changed.held, available, required)]


def _commit_answer(
    run: _Run, state: QueryState, reply: ModelReply, decision: Decision, after: Chat
) -> Decision:
    """Store the response, settle, and give the conversation back."""
    stores, chat = run.deps.stores, run.chat
    now = stores.clock()
    response = Record(
        response_id(chat.query),
        "message",
        "assistant",
        decision.text,
        iso(now),
        run.number,
        stop=decision.stop,
    )
    sources = sources_of(state.records)

    def settle(account: Account) -> Credits:
        return account.settle(chat.chat_id, chat.held, now)

    def commit(account: Account, credits: Credits) -> None:  # noqa: A002
        left = credits.account.available(now)
        changed = replace(
            after,
            status="answered",
            stop=decision.stop,
            ended_at=iso(now),
            held=0,
            credits_used=credits.amount,
            credits_remaining=left,
        )
        events = [
            record_stored(response.record_id, "assistant", "message"),
            credits_now(credits.amount, 0, left),
            answer(decision.text, sources, decision.stop, run.number),
        ]

        def actions() -> list[Action]:
            guarded = stores.while_open(run.log)
            return [
                *guarded.chats.turn_actions(chat, run.number, reply, decision, changed),
                guarded.history.record_action(chat.user, chat.conversation_id, response, "response"),
                stores.history.free_action(chat.user, chat.conversation_id, chat.chat_id, iso(now)),
                *stores.ledger.actions(account, credits),
            ]

        run.log.append(events, actions, _no_other_run)

    with_account(stores.ledger, chat.user, settle, commit)
    return decision


def _recorded_outcome(turn: RecordedTurn) -> dict[str, Any]:
    return _outcome(turn.number, turn.next, calls_to_run(turn))


def _outcome(turn: int, following: str, calls: Sequence[ToolCall] = ()) -> dict[str, Any]:
    return {"turn": turn, "next": following, "calls": [{"id": call.id, "fn": call.fn} for call in calls]}
