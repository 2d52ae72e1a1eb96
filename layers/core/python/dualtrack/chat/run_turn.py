"""One turn: a model call, what it means, and the one transaction that records it (DESIGN 2.3, 3).

    read the log's tail ─► turn already recorded? return it
      └► an announced wait is not over? return the rest of it
      └► calls of the turn before wait for decisions? pause
      └► complete the results of the turn before ─► `turn` event ─► Claude, text as `delta` events
           └► busy ─► `retrying` event ─► wait: the workflow waits and retries
           └► decide ─► commit { turn, chat, thought, response, credits, events }

Each of these steps may run twice. A run that has been overtaken finds the event of another run in its slot and stops
(`Superseded`).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from dualtrack.chat.agent import agent_of, on_deployed_model
from dualtrack.chat.ask_for_notes import notes_room, with_ask, without_notes
from dualtrack.chat.ask_model import FOR_ITS_CONTENT, ask_model, delta_writer, is_forced_to_fit
from dualtrack.chat.cost_hold import CHAT_DOLLARS, most_of_turn
from dualtrack.chat.end_chat import CUT_OFF, INCOMPLETE, MODEL_BUSY, TIMED_OUT, ChatFailure, end_chat
from dualtrack.chat.leave_out import without_newest
from dualtrack.chat.pause_chat import pause_chat
from dualtrack.chat.query_state import QueryState, pinned_query
from dualtrack.chat.record_turn import call_of, record_turn
from dualtrack.chat.refused_tools import MOST, go_without, refused_tool, with_callers_tool
from dualtrack.chat.tool_results import complete_results
from dualtrack.chat.turn_attempt import (
    TurnAttempt,
    TurnCallbacks,
    TurnSettings,
    WaitTiming,
    no_commit,
    no_other_run,
)
from dualtrack.chat.turn_request import turn_request
from dualtrack.clock import iso
from dualtrack.credits.keys import NANO
from dualtrack.errors import ChatClosed, Contended, Gone, ModelBusy, ModelRefused, Superseded
from dualtrack.events import retrying, turn_begins
from dualtrack.frozen import dumps
from dualtrack.memory.budget import fit, room_for
from dualtrack.memory.sending import Sending
from dualtrack.models.as_wanted import refused_by_client, request_as_wanted, with_call
from dualtrack.models.busy import seconds_to_wait, still_to_wait
from dualtrack.models.cost_cap import asked_dollars, cut_dollars, is_spent, lowest_cap, turn_rates
from dualtrack.models.fit_answer import fitting
from dualtrack.models.forced_output import forced_schema
from dualtrack.models.prices import dollars
from dualtrack.models.receipt_data import EarlierTries, begun_before, has_begun
from dualtrack.models.stops import ROUNDS_DONE, SECOND_ANSWER, LastCallReason
from dualtrack.models.trouble import refusal
from dualtrack.models.turn import ToolCall, TurnDecision, decide
from dualtrack.storage.chats import Chat, RecordedTurn, calls_to_run
from dualtrack.storage.conversations import allowed_in
from dualtrack.text import cautious_tokens
from dualtrack.tools.approval import gate
from dualtrack.tools.arguments import invalid_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chat.agent import Agent, AgentDeployment
    from dualtrack.chat.ask_model import ModelAnswer
    from dualtrack.events import StoredEvent
    from dualtrack.memory.records import Record
    from dualtrack.memory.view import View
    from dualtrack.models.protocol import Model
    from dualtrack.profiles import Profile
    from dualtrack.requests import ChatRef
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import TurnStores

_OVERTAKES: Final = 6

_POLL_SECONDS: Final = 1.0

_STILL_POLLS: Final = 8

_SECOND_ANSWER_SECONDS: Final = 60.0
"""Time left behind a second answer: for its retries, its recording and the summaries."""

_NO_SUCH_MODEL: Final = 404
"""The status with which it rejects a model that it does not serve (any more)."""


class CallToRun(TypedDict):
    """A tool call, and the function that runs it."""

    id: str
    fn: str


class TurnOutcome(TypedDict):
    """What the state machine reads of a turn: what follows, and the calls to run; ``seconds``: how long to wait for a
    busy model."""

    turn: int
    next: str
    calls: list[CallToRun]
    seconds: NotRequired[int]


_NOBODY: Final = TurnCallbacks()

_REAL: Final = WaitTiming()


def run_turn(
    ref: ChatRef,
    stores: TurnStores,
    serve: Callable[[str], Model],
    settings: TurnSettings,
    told: TurnCallbacks = _NOBODY,
    waiting: WaitTiming = _REAL,
) -> TurnOutcome:
    """Run turn ``ref.turn`` + 1 with the model that ``serve`` opens for the agent's provider, and return
    ``{"turn", "next", "calls": [{"id", "fn"}]}``.

    Raises `Transient` if a retry may succeed. ``next`` is ``failed`` if the chat has ended meanwhile or the model's
    service rejects the request. It is ``wait``, with ``seconds`` and the unchanged ``turn``, if the model is busy, and
    ``paused`` if the chat waits for decisions: then this execution ends.
    """
    for _ in range(_OVERTAKES):
        try:
            return _attempt(ref, stores, serve, settings, told, waiting)
        except ChatClosed:
            return _outcome(ref.turn + 1, "failed")
        except Superseded:
            continue
        except ModelBusy:
            end_chat(stores, ref, MODEL_BUSY, told.ended)
            return _outcome(ref.turn + 1, "failed")
        except ModelRefused as error:
            told.refused(error)
            failure = ChatFailure(*refusal(error, settings.details), is_refused=True)
            end_chat(stores, ref, failure, told.ended)
            return _outcome(ref.turn + 1, "failed")
        except Gone:
            end_chat(stores, ref, INCOMPLETE, told.ended)
            return _outcome(ref.turn + 1, "failed")
    raise Contended("Other runs of this turn were faster at each attempt.")


def _attempt(
    ref: ChatRef,
    stores: TurnStores,
    serve: Callable[[str], Model],
    settings: TurnSettings,
    told: TurnCallbacks,
    waiting: WaitTiming,
) -> TurnOutcome:
    """Reads the log's tail before anything else: a later commit moves it, and so is noticed."""
    log = stores.log(ref)
    newest = _newest(log)
    loaded = stores.chats.load_with_turns(ref.user, ref.chat_id)
    if loaded is None:
        return _outcome(ref.turn + 1, "failed")
    chat, turns = loaded
    if outcome := _known(ref, stores, chat, turns, settings.deployed, is_closed=newest is None):
        return outcome
    if newest is None:
        raise ChatClosed(ref.chat_id)
    if stores.clock() >= chat.deadline:
        end_chat(stores, ref, TIMED_OUT, told.ended)
        return _outcome(ref.turn + 1, "failed")
    if seconds := still_to_wait(newest, ref.turn + 1, stores.clock()):
        return _wait_outcome(ref.turn, seconds)
    agent = agent_of(stores.agents, chat, settings.deployed)
    model = serve(agent.provider)
    is_again = has_begun(newest, ref.turn + 1)
    before = begun_before(log.events(), ref.turn + 1, chat.heard) if is_again else EarlierTries()
    cap = lowest_cap(agent.profile.max_cost, settings.max_cost) or (CHAT_DOLLARS if chat.costs else 0.0)
    spent = _spent(stores, chat, agent, turns, before) if cap else ()
    if chat.costs and before.lost and sum(spent) > chat.costs.turns / NANO:
        end_chat(stores, ref, CUT_OFF, told.ended)
        return _outcome(ref.turn + 1, "failed")
    last_call = most_of_turn(agent.model, agent.profile, agent.thinking)
    is_capped = is_spent(cap, spent, last_call)
    limit = limit_of(chat, ref.turn + 1, agent.profile, stores.clock(), is_capped=is_capped)
    wanted_after, wanted = stores.chats.wanted(chat)
    run = TurnAttempt(
        stores,
        serve,
        model,
        settings,
        told,
        waiting,
        chat,
        agent,
        log,
        ref.turn + 1,
        limit,
        turns,
        before,
        output=stores.chats.output_schema(chat) or agent.profile.output,
        wanted=wanted,
        wanted_after=wanted_after,
        spare=cap - sum(spent) - last_call if cap else math.inf,
    )
    try:
        return _call_or_wait(run, turns)
    except ChatClosed:
        raise
    except Superseded:
        _wait_for_other_run(run)
        raise


def _known(
    ref: ChatRef,
    stores: TurnStores,
    chat: Chat,
    turns: Sequence[RecordedTurn],
    deployed: AgentDeployment,
    *,
    is_closed: bool,
) -> TurnOutcome | None:
    """What follows without a model call: the chat is paused, or the turn is recorded, or calls of the turn before wait
    for decisions."""
    if chat.status == "paused":
        return _outcome(ref.turn, "paused")
    if len(turns) > ref.turn:
        recorded = turns[ref.turn]
        if not is_closed:
            complete_results(stores, chat, recorded, dead=False)
        return _after(stores, chat, recorded, deployed)
    if turns and turns[-1].waits and not is_closed:
        return _pause(stores, chat, turns[-1], deployed)
    return None


def limit_of(
    chat: Chat, turn: int, profile: Profile, now: float, *, is_capped: bool = False
) -> LastCallReason:
    """Why a turn that begins ``now`` (epoch seconds) is the chat's last one (CONTRACT 7, 8).

    A retry may begin later and decide differently. The recorded turn counts, whichever run recorded it.
    """
    if chat.misfit:
        return SECOND_ANSWER
    if chat.limit:
        return chat.limit
    if turn > profile.max_turns:
        return "max_turns" if profile.after_max_turns == "limit" else ROUNDS_DONE
    if now >= chat.deadline - chat.times.last_call:
        return "timeout"
    return "max_cost" if is_capped else ""


def _spent(
    stores: TurnStores, chat: Chat, agent: Agent, turns: Sequence[RecordedTurn], before: EarlierTries
) -> tuple[float, ...]:
    """Dollars of each turn so far, its tools and its calls that were cut, and of such calls of the turn to come."""
    model, cut = agent.model, cut_dollars(agent.model, before.lost)
    if not turns:
        return (cut,) if cut else ()
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query, texts=())
    recorded = (
        turn_rates(turn.made, model, turn.usage).dollars(turn.usage)
        + cut_dollars(turn.made.model or model, turn.made.lost)
        + _inside(records, turn.number)
        for turn in turns
    )
    return (*recorded, cut) if cut else tuple(recorded)


def _inside(records: Sequence[Record], turn: int) -> float:
    """Dollars of the model calls that the tools of a turn made."""
    calls = [record.call for record in records if record.call and record.turn == turn]
    return sum(asked_dollars(asked) for call in calls for asked in call.asked)


def _wait_for_other_run(run: TurnAttempt) -> None:
    """Wait until the other run has recorded the turn, or has written no event for a while.

    If both runs continued, they would overtake each other again and again, and each time pay for a model call.
    """
    tail, still = 0, 0
    while still < _STILL_POLLS and run.stores.chats.turn(run.chat, run.number) is None:
        run.waiting.sleep(_POLL_SECONDS)
        slot = run.log.next_slot()
        tail, still = slot, still + 1 if slot == tail else 0


def _newest(log: EventLog) -> StoredEvent | None:
    """The chat's last event; None if the log is closed."""
    try:
        return log.newest()
    except ChatClosed:
        return None


def _call_or_wait(run: TurnAttempt, turns: tuple[RecordedTurn, ...]) -> TurnOutcome:
    """Call the model; if it is busy, return a wait, about until the chat's last call is due (DESIGN 9).

    Text of an interrupted answer becomes void with the turn's next event. Raises `ModelBusy` if there is no time left.
    """
    try:
        return _call_model(run, turns)
    except ModelBusy as busy:
        now, last = run.stores.clock(), run.chat.deadline - run.chat.times.last_call
        tries = run.before.tries + 1
        seconds = seconds_to_wait(busy.seconds, tries, last - now, run.waiting.draw())
        if not seconds:
            raise
        until = iso(max(last, now + seconds))
        run.log.append([retrying(run.number, busy.reason, tries, seconds, until)], fence=no_other_run)
        return _wait_outcome(run.number - 1, seconds)


def _call_model(run: TurnAttempt, turns: tuple[RecordedTurn, ...]) -> TurnOutcome:
    stores = run.stores
    state = pinned_query(stores, run.chat, run.agent, turns, run.limit, run.waiting.sleep)
    run = replace(run, chat=state.chat)
    forced = forced_schema(run.output) if is_forced_to_fit(run) and run.output is not None else None
    frame = request_as_wanted(
        turn_request(run.agent, state.offered, run.limit, (), run.profile.max_tokens, forced), run.wanted
    )
    fixed = cautious_tokens(dumps([frame["system"], frame.get("tools", [])]))
    last = turns[-1].sending if turns else Sending()
    view = replace(state.view, output=run.output, misfit=run.chat.misfit)
    room = room_for(run.profile, run.agent.model, run.agent.thinking, fixed, last)
    view = fit(_without_old_thinking(view, turns, run.agent.model), room)
    view = with_ask(run, view, fixed)
    frame = {**frame, "max_tokens": frame["max_tokens"] + notes_room(run, view)}
    begins = turn_begins(run.number, run.profile.max_turns, final=bool(run.limit), misfit=run.chat.misfit)
    if not run.left_out and run.is_forced:
        run.log.append([begins], fence=no_commit)
    asked_at, clock = iso(run.stores.clock()), time.monotonic()
    try:
        with delta_writer(run) as writer:
            said = ask_model(run, frame, view, writer)
    except ModelRefused as refused:
        if forced and refused.status == FOR_ITS_CONTENT:
            return _call_model(replace(run, is_forced=False), turns)
        return _call_without(run, state, refused, turns)
    if (again := without_newest(run, state, said.reply)) is not None:
        return _call_or_wait(again, turns)  # a further try, which may have to wait like any
    made = call_of(run, said, asked_at, time.monotonic() - clock)
    reply, notes = without_notes(said.reply, said.view)
    decision = decide(
        reply,
        query=run.chat.query,
        calls_before=run.chat.calls,
        offered=state.offered,
        limit=run.limit,
        invalid=lambda spec, given: refused_by_client(run.wanted, spec) or invalid_arguments(spec, given),
        gates=partial(gate, run.profile, cache(partial(_allowed, run))),
        max_tokens=run.max_tokens,
    )
    if run.may_tell:
        decision = with_call(decision, run.wanted, state.offered)
    decision = replace(_fitting(run, said, decision), notes=notes)
    if run.is_held_back and _is_shown(decision):
        with delta_writer(run) as writer:
            writer.write(decision.text)
    said = replace(said, fixed=fixed)
    after, recorded = record_turn(run, state, said, made, decision)
    return _after(stores, after, recorded, run.settings.deployed)


def _allowed(run: TurnAttempt) -> Mapping[str, str]:
    """The tools that the user has allowed in the conversation; none where nobody is beside it."""
    if run.chat.unattended:
        return {}
    history = run.stores.history
    return allowed_in(history.client, history.table, run.chat.user, run.chat.conversation_id)


def _is_shown(decision: TurnDecision) -> bool:
    """Whether what was held back of a turn's text is written: what precedes tools, and an answer that fits."""
    return decision.fits or (decision.next != "answered" and not (decision.misfit or decision.told))


def _fitting(run: TurnAttempt, said: ModelAnswer, decision: TurnDecision) -> TurnDecision:
    """The decision on an answer that has to fit a schema. It is asked for again only while time and dollars are left:
    the chat's deadline and its cap hold for the second answer, too."""
    cost = dollars(run.agent.model, said.reply.usage)
    is_in_time = run.stores.clock() < run.chat.deadline - run.chat.call_seconds - _SECOND_ANSWER_SECONDS
    may_ask_again = is_in_time and cost <= run.spare
    return fitting(decision, run.output, run.limit, run.chat.limit, may_ask_again=may_ask_again)


def _without_old_thinking(view: View, turns: Sequence[RecordedTurn], model: str) -> View:
    """A model takes no other one's thinking."""
    if all(turn.made.model == model for turn in turns):
        return view
    return replace(view, cuts=replace(view.cuts, without_thinking=True))


def _call_without(
    run: TurnAttempt, state: QueryState, refused: ModelRefused, turns: tuple[RecordedTurn, ...]
) -> TurnOutcome:
    """The call without what the service refuses: the tool of a server, or a model that was withdrawn in a pause. Raises
    the refusal if it is neither."""
    if refused.status == _NO_SUCH_MODEL and run.chat.pauses:
        return _call_on_deployed_model(replace(run, chat=state.chat), refused, turns)
    tool = refused_tool(refused, state.offered)
    if tool is None or len(run.left_out) >= MOST:
        raise with_callers_tool(refused, state.offered)
    chat = go_without(run.stores, state.chat, tool, refused, len(run.left_out))
    run.told.tool_refused(tool, refused)
    return _call_model(replace(run, chat=chat, left_out=(*run.left_out, tool.name)), turns)


def _call_on_deployed_model(
    run: TurnAttempt, refused: ModelRefused, turns: tuple[RecordedTurn, ...]
) -> TurnOutcome:
    """The call with the deployment's model, which the chat has from now on. Raises the refusal if it had that one."""
    agent, pin = on_deployed_model(run.agent, run.settings.deployed), run.chat.pin
    if agent is None or pin is None:
        raise refused
    run.told.refused(refused)
    run.stores.agents.keep(agent.version, agent.text)
    chat = run.stores.chats.move_pin(run.chat, replace(pin, agent=agent.version))
    left_out = (*run.left_out, run.agent.model)
    model = run.serve(agent.provider)
    return _call_model(replace(run, chat=chat, agent=agent, model=model, left_out=left_out), turns)


def _after(stores: TurnStores, chat: Chat, turn: RecordedTurn, deployed: AgentDeployment) -> TurnOutcome:
    """What follows a recorded turn: its calls that may run, then a pause for those that wait, then the next turn."""
    if turn.next == "answered":
        return _outcome(turn.number, turn.next)
    if calls := calls_to_run(turn):
        return _outcome(turn.number, "tools", calls)
    return _pause(stores, chat, turn, deployed) if turn.waits else _outcome(turn.number, "turn")


def _pause(stores: TurnStores, chat: Chat, turn: RecordedTurn, deployed: AgentDeployment) -> TurnOutcome:
    pause_chat(stores, chat, turn.number, deployed)
    return _outcome(turn.number, "paused")


def _wait_outcome(turn: int, seconds: int) -> TurnOutcome:
    return {**_outcome(turn, "wait"), "seconds": seconds}


def _outcome(turn: int, following: str, calls: Sequence[ToolCall] = ()) -> TurnOutcome:
    return {"turn": turn, "next": following, "calls": [{"id": call.id, "fn": call.fn} for call in calls]}
