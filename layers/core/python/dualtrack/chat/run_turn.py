"""One turn: a model call, what it means, and the one transaction that records it (DESIGN 2.3, 3).

    read the log's tail ─► turn already recorded? return it
      └► an announced wait is not over? return the rest of it
      └► calls of the turn before wait for decisions? pause
      └► complete the results of the turn before ─► `turn` event ─► Claude, text as `delta` events
           └► busy ─► `retrying` event ─► wait: the workflow waits and retries
           └► decide ─► commit { turn, chat, thought or response, credits, events }

Each of these steps may run twice. A run that has been overtaken finds the event of another run in its slot and stops
(`Superseded`).
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from dualtrack.chat.agent import AgentDeployment, agent_of, on_deployed_model
from dualtrack.chat.cost_hold import CHAT_DOLLARS, most_of_turn
from dualtrack.chat.end_chat import CUT_OFF, INCOMPLETE, MODEL_BUSY, ChatFailure, OnEnd, end_chat
from dualtrack.chat.memory_figures import with_end, with_turn
from dualtrack.chat.move_credits import cost_of, lines_of, move_credits
from dualtrack.chat.pause_chat import pause_chat
from dualtrack.chat.pay_calls import CallPayment, calls_begin, pay_calls
from dualtrack.chat.query_state import QueryState, pinned_query
from dualtrack.chat.receipt import model_nanodollars
from dualtrack.chat.refused_tools import MOST, go_without, names_a_tool, refused_tool
from dualtrack.chat.tool_results import complete_results
from dualtrack.chat.turn_request import fixed_tokens, turn_request
from dualtrack.clock import iso
from dualtrack.credits.keys import NANO
from dualtrack.errors import (
    ChatClosed,
    Contended,
    Gone,
    ModelBusy,
    ModelRefused,
    Superseded,
)
from dualtrack.events import (
    Event,
    answer,
    credits_now,
    record_stored,
    retrying,
    turn_begins,
)
from dualtrack.frozen import dumps
from dualtrack.ids import response_id, thought_id
from dualtrack.memory.budget import STEPS, fit, room_for, smaller
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.joint_summaries import is_cheaper_cached
from dualtrack.memory.records import Record
from dualtrack.memory.refused_files import without_file, without_files
from dualtrack.memory.sending import Sending
from dualtrack.memory.sources import sources_of
from dualtrack.memory.summaries import SummarySettings, summary_requests
from dualtrack.memory.view import SentRequest, View, build
from dualtrack.models.busy import seconds_to_wait, still_to_wait
from dualtrack.models.cost_cap import asked_dollars, cut_dollars, is_spent, lowest_cap
from dualtrack.models.fit_answer import fitting
from dualtrack.models.forced_output import forced_schema
from dualtrack.models.prices import dollars
from dualtrack.models.protocol import CALL_SECONDS, ignore
from dualtrack.models.receipt_data import EarlierTries, Heard, TurnCall, begun_before, has_begun
from dualtrack.models.refusals import named_file
from dualtrack.models.thinking import without_thinking
from dualtrack.models.trouble import ErrorDetails, refusal
from dualtrack.models.turn import (
    ROUNDS_DONE,
    SECOND_ANSWER,
    LastCallReason,
    ModelReply,
    ToolCall,
    TurnDecision,
    decide,
)
from dualtrack.storage.chats import LAST_CALL_SECONDS, Chat, RecordedTurn, calls_to_run, with_usage
from dualtrack.storage.conversations import allowed_in
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.streaming.delta_writer import DeltaWriter
from dualtrack.text import cautious_tokens
from dualtrack.tools.approval import gate
from dualtrack.tools.arguments import invalid_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject
    from dualtrack.memory.budget import ShorteningStep
    from dualtrack.models.protocol import Model
    from dualtrack.models.turn import FirstByte
    from dualtrack.profiles import Profile
    from dualtrack.requests import ChatRef
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import TurnStores
    from dualtrack.tool_values import ToolSpec

_OVERTAKES: Final = 6
_POLL_SECONDS: Final = 1.0
_STILL_POLLS: Final = 8
_LEAST_SECONDS: Final = 10.0
"""Minimum time left for a second try of a call."""
_SECOND_ANSWER_SECONDS: Final = 60.0
"""Time left behind a second answer: for its retries, its recording and the summaries."""
_FOR_ITS_CONTENT: Final = 400
"""Statuses with which the model's service may reject a file that only it can fully check: the files are left out."""
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


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the deployment sets for turns. ``summaries``: its model is empty for that of the turn; ``max_cost``: the
    cost cap in dollars a chat, 0 for none; ``details``: which parts of a refusal the user sees."""

    deployed: AgentDeployment
    summaries: SummarySettings = field(default_factory=SummarySettings)
    max_cost: float = 0.0
    details: ErrorDetails = field(default_factory=ErrorDetails)


@dataclass(frozen=True, slots=True)
class TurnCallbacks:
    """Who is told of a turn, for metrics and the log."""

    first_text: Callable[[float], None] = ignore
    """Called with the seconds from a request to the first text of its answer, if it has any."""
    recorded: Callable[[RecordedTurn], None] = ignore
    """Called with a recorded turn, by the run that has recorded it."""
    ended: OnEnd = lambda *_: None
    """Called for a chat that this run has answered or ended as failed."""
    refused: Callable[[ModelRefused], None] = ignore
    """Called if the model's service rejects a request."""
    tool_refused: Callable[[ToolSpec, ModelRefused], None] = lambda *_: None
    """Called for a tool of an MCP server for which it does; the turn goes on without that tool."""


@dataclass(frozen=True, slots=True)
class WaitTiming:
    """How a turn waits. ``draw``: a random number from 0 to 1, for the random part of a wait for the model."""

    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random


_NOBODY: Final = TurnCallbacks()
_REAL: Final = WaitTiming()


@dataclass(frozen=True, slots=True)
class _Run:
    """One attempt at one turn."""

    stores: TurnStores
    serve: Callable[[str], Model]
    model: Model
    settings: TurnSettings
    told: TurnCallbacks
    waiting: WaitTiming
    chat: Chat
    agent: Agent
    log: EventLog
    number: int
    limit: LastCallReason
    turns: tuple[RecordedTurn, ...] = ()
    """The turns before it."""
    before: EarlierTries = field(default_factory=EarlierTries)
    """What the turn has behind it."""
    left_out: tuple[str, ...] = ()
    """What this attempt has left out because the service refused it: tools, a model that was withdrawn."""
    output: JsonObject | None = None
    """The JSON Schema that the answer has to fit."""
    is_forced: bool = True
    """Whether a second answer is forced to fit it; not any more once the service has refused that."""
    spare: float = math.inf
    """Dollars that this turn may cost if another call is to follow."""

    @property
    def profile(self) -> Profile:
        """The agent's profile."""
        return self.agent.profile


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
            end_chat(stores, ref, ChatFailure(*refusal(error, settings.details)), told.ended)
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
    run = _Run(
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
    if now >= chat.deadline - LAST_CALL_SECONDS:
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
        dollars(turn.made.model or model, turn.usage)
        + cut_dollars(turn.made.model or model, turn.made.lost)
        + _inside(records, turn.number)
        for turn in turns
    )
    return (*recorded, cut) if cut else tuple(recorded)


def _inside(records: Sequence[Record], turn: int) -> float:
    """Dollars of the model calls that the tools of a turn made."""
    calls = [record.call for record in records if record.call and record.turn == turn]
    return sum(asked_dollars(asked) for call in calls for asked in call.asked)


def _wait_for_other_run(run: _Run) -> None:
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


def _call_or_wait(run: _Run, turns: tuple[RecordedTurn, ...]) -> TurnOutcome:
    """Call the model; if it is busy, return a wait, about until the chat's last call is due (DESIGN 9).

    Text of an interrupted answer becomes void with the turn's next event. Raises `ModelBusy` if there is no time left.
    """
    try:
        return _call_model(run, turns)
    except ModelBusy as busy:
        now, last = run.stores.clock(), run.chat.deadline - LAST_CALL_SECONDS
        tries = run.before.tries + 1
        seconds = seconds_to_wait(busy.seconds, tries, last - now, run.waiting.draw())
        if not seconds:
            raise
        until = iso(max(last, now + seconds))
        run.log.append([retrying(run.number, busy.reason, tries, seconds, until)], fence=_no_other_run)
        return _wait_outcome(run.number - 1, seconds)


def _call_model(run: _Run, turns: tuple[RecordedTurn, ...]) -> TurnOutcome:
    stores = run.stores
    state = pinned_query(stores, run.chat, run.agent, turns, run.limit, run.waiting.sleep)
    forced = forced_schema(run.output) if _forces(run) and run.output is not None else None
    frame = turn_request(run.agent, state.offered, run.limit, (), run.profile.max_tokens, forced)
    fixed = cautious_tokens(dumps([frame["system"], frame.get("tools", [])]))
    last = turns[-1].sending if turns else Sending()
    view = replace(state.view, output=run.output, misfit=run.chat.misfit)
    room = room_for(run.profile, run.agent.model, run.agent.thinking, fixed, last)
    view = fit(_without_old_thinking(view, turns, run.agent.model), room)
    view = replace(view, is_read_again=_is_read_again(run, state, frame, view))
    begins = turn_begins(run.number, run.profile.max_turns, final=bool(run.limit), misfit=run.chat.misfit)
    if not run.left_out and run.is_forced:
        run.log.append([begins], fence=_no_commit)
    asked_at, clock = iso(run.stores.clock()), time.monotonic()
    try:
        with _delta_writer(run) as writer:
            said = _ask_for_less(run, frame, view, writer)
    except ModelRefused as refused:
        if forced and refused.status == _FOR_ITS_CONTENT:
            return _call_model(replace(run, is_forced=False), turns)
        return _call_without(run, state, refused, turns)
    made = _made(run, said, asked_at, time.monotonic() - clock)
    decision = decide(
        said.reply,
        query=run.chat.query,
        calls_before=run.chat.calls,
        offered=state.offered,
        limit="" if said.without_room else run.limit,
        invalid=invalid_arguments,
        gates=partial(gate, run.profile, cache(partial(_allowed, run))),
    )
    decision = _fitting(run, said, decision)
    if run.output is not None and _is_shown(decision):
        with _delta_writer(run) as writer:
            writer.write(decision.text)
    said = replace(said, fixed=fixed)
    return _record(replace(run, chat=state.chat), state, said, made, decision)


def _allowed(run: _Run) -> Mapping[str, str]:
    """The tools that the user has allowed in the conversation; none for a schedule, which has nobody beside it."""
    if run.chat.schedule_id:
        return {}
    history = run.stores.history
    return allowed_in(history.client, history.table, run.chat.user, run.chat.conversation_id)


def _forces(run: _Run) -> bool:
    return run.limit == SECOND_ANSWER and run.is_forced


def _delta_writer(run: _Run) -> DeltaWriter:
    return DeltaWriter(run.log, run.number, _no_other_run, partial(_hear, run))


def _is_shown(decision: TurnDecision) -> bool:
    """Whether what was held back of a turn's text is written: what precedes tools, and an answer that fits."""
    return decision.fits or (decision.next != "answered" and not decision.misfit)


def _fitting(run: _Run, said: _ModelAnswer, decision: TurnDecision) -> TurnDecision:
    """The decision on an answer that has to fit a schema. It is asked for again only while time and dollars are left:
    the chat's deadline and its cap hold for the second answer, too."""
    cost = dollars(run.agent.model, said.reply.usage)
    is_in_time = run.stores.clock() < run.chat.deadline - CALL_SECONDS - _SECOND_ANSWER_SECONDS
    may_ask_again = is_in_time and cost <= run.spare
    return fitting(decision, run.output, run.limit, run.chat.limit, may_ask_again=may_ask_again)


def _without_old_thinking(view: View, turns: Sequence[RecordedTurn], model: str) -> View:
    """A model takes no other one's thinking."""
    if all(turn.made.model == model for turn in turns):
        return view
    return replace(view, cuts=replace(view.cuts, without_thinking=True))


def _call_without(
    run: _Run, state: QueryState, refused: ModelRefused, turns: tuple[RecordedTurn, ...]
) -> TurnOutcome:
    """The call without what the service refuses: the tool of a server, or a model that was withdrawn in a pause. Raises
    the refusal if it is neither."""
    if refused.status == _NO_SUCH_MODEL and run.chat.pauses:
        return _call_on_deployed_model(replace(run, chat=state.chat), refused, turns)
    tool = refused_tool(refused, state.offered)
    if tool is None or len(run.left_out) >= MOST:
        raise refused
    chat = go_without(run.stores, state.chat, tool, refused, len(run.left_out))
    run.told.tool_refused(tool, refused)
    return _call_model(replace(run, chat=chat, left_out=(*run.left_out, tool.name)), turns)


def _call_on_deployed_model(run: _Run, refused: ModelRefused, turns: tuple[RecordedTurn, ...]) -> TurnOutcome:
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


@dataclass(frozen=True, slots=True)
class _ModelAnswer:
    """A request and the model's reply. ``without_room``: there is no reply, because even the smallest request was too
    long; ``refused``: the number of rejected requests; ``fixed``: cautious tokens of tools and system."""

    reply: ModelReply
    view: View
    sent: SentRequest
    cut: Sending
    without_room: bool = False
    refused: int = 0
    fixed: int = 0

    @property
    def sending(self) -> Sending:
        """As it is stored: the estimate is of the whole request."""
        return replace(self.cut, estimated=self.cut.estimated + self.fixed)


def _made(run: _Run, said: _ModelAnswer, asked_at: str, seconds: float) -> TurnCall:
    """Data of the call for the receipt."""
    before, model = run.before, run.agent.model
    calls = 0 if said.without_room else said.reply.calls
    refused = len(run.left_out) + said.refused + (not run.is_forced)
    tries, first = before.tries + refused + calls, said.reply.first_seconds
    return TurnCall(asked_at, round(seconds, 3), first, calls, tries, before.lost, model, before.waited)


def _hear(run: _Run, first: FirstByte) -> None:
    """Note the first byte of the answer, before anything else of it is written."""
    heard = Heard(run.number, run.before.tries + 1, run.agent.model, first.served, first.usage)
    run.stores.chats.hear(run.chat, heard)


def _ask_for_less(run: _Run, frame: Mapping[str, Any], view: View, writer: DeltaWriter) -> _ModelAnswer:
    """The model's answer to the view, or to less of it if the service rejects its size.

    If even the smallest request is too long, we write the answer ourselves (CONTRACT 6, 8).
    """
    steps, refusals = iter(STEPS), 0
    while True:
        sent = build(view)
        sending = Sending(view.cuts, message_tokens(sent.messages))
        try:
            reply = _ask(run, {**frame, "messages": list(sent.messages)}, writer)
        except ModelRefused as refused:
            refusals += 1
            less = None if _forces(run) and not refused.too_long else _reduced(view, sent, refused, steps)
            if less is None and not refused.too_long:
                raise
            if less is None:
                nothing = ModelReply((), "model_context_window_exceeded")
                return _ModelAnswer(nothing, view, sent, sending, without_room=True, refused=refusals)
            view = less
        else:
            sending = replace(sending, reported=reply.prompt_tokens)
            return _ModelAnswer(reply, view, sent, sending, refused=refusals)


def _reduced(
    view: View, sent: SentRequest, refused: ModelRefused, steps: Iterator[ShorteningStep]
) -> View | None:
    """What to send after a rejection: each step is taken once, each file left out once, alone if it is named."""
    if refused.too_long:
        return smaller(view, steps)
    if refused.status != _FOR_ITS_CONTENT or not sent.files or names_a_tool(refused):
        return None
    return without_file(view, sent.messages, named_file(refused.said)) or without_files(view)


def _is_read_again(run: _Run, state: QueryState, frame: Mapping[str, Any], view: View) -> bool:
    """Whether another call may begin with this request. After a chat's last call, only that of the summaries can."""
    if not run.limit:
        return True
    if run.limit == SECOND_ANSWER:
        return False
    if not run.profile.history.is_summarised:
        return False
    model = run.agent.model
    return is_cheaper_cached(
        model,
        fixed_tokens(frame),
        build(view).tokens,
        summary_requests(state.records, run.profile.history.whole_characters),
        run.settings.summaries.model or model,
        run.settings.summaries.characters,
    )


def _ask(run: _Run, request: Mapping[str, Any], writer: DeltaWriter) -> ModelReply:
    """The model's answer. If it was cut off while thinking, ask again without thinking; both calls are counted. What
    has to fit a schema is not written before it is known to."""
    asked_at = time.monotonic()
    write = ignore if run.output is not None else writer.write
    on_text = _reporting_first_text(write, run.told.first_text, asked_at)
    reply = run.model.stream(request, on_text, on_first=writer.begin, on_thought=writer.think)
    again = without_thinking(request, run.profile.max_tokens) if reply.is_thought_alone else None
    left = CALL_SECONDS - (time.monotonic() - asked_at)
    if again is None or left < _LEAST_SECONDS:
        return reply
    try:
        second = run.model.stream(again, on_text, left, writer.begin, writer.think)
    except ModelRefused:
        return reply
    usage = reply.usage + second.usage
    return replace(second, usage=usage, calls=2, first_seconds=reply.first_seconds)


def _reporting_first_text(
    on_text: Callable[[str], None], first_text: Callable[[float], None], asked_at: float
) -> Callable[[str], None]:
    """``on_text``, which also reports the time to the first text."""
    is_first = True

    def timed(text: str) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            first_text(time.monotonic() - asked_at)
        on_text(text)

    return timed


def _no_commit(event: StoredEvent) -> None:
    """The fence while announcing: another run has announced or committed since the tail was read."""
    if event.event in ("turn", "retrying", "credits", "answer"):
        raise Superseded(event.event)


def _no_other_run(event: StoredEvent) -> None:
    """The fence after announcing: a newer run of this turn has begun."""
    if event.event == "turn":
        raise Superseded(event.event)


# ── recording ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn to be recorded: the reply, the decision on it, and the chat without its new credits."""

    run: _Run
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


def _record(
    run: _Run, state: QueryState, said: _ModelAnswer, made: TurnCall, decision: TurnDecision
) -> TurnOutcome:
    """Commit the turn with its credits. If the account has moved, decide again; if the turn is lost, another run has
    recorded it."""
    reply, sending = said.reply, said.sending
    after = with_usage(run.chat, reply.usage)
    after = with_turn(after, said.view, said.sent, sending.estimated, said.fixed, reply, made, decision)
    after = replace(after, turn=run.number, calls=run.chat.calls + len(decision.calls))
    after = replace(after, model=run.agent.model, effort=run.agent.thinking.effort)
    after = replace(after, misfit=decision.misfit or after.misfit, fits=decision.fits)
    if decision.misfit or (decision.stop == "invalid_output" and run.limit != SECOND_ANSWER):
        after = replace(after, limit=run.limit)
    turn = _Turn(run, reply, decision, after, run.stores.clock(), sending, made)
    try:
        if decision.next == "answered":
            _commit_answer(turn, state.records)
        else:
            decision = _commit_tools(turn)
    except ConditionFailed as lost:
        raise Superseded(", ".join(lost.items)) from lost
    recorded = RecordedTurn(
        run.number, reply.content, decision.calls, decision.next, reply.usage, made, sending
    )
    run.told.recorded(recorded)
    if decision.next != "answered":
        complete_results(run.stores, after, recorded, dead=False)
    return _after(run.stores, after, recorded, run.settings.deployed)


def _commit_tools(turn: _Turn) -> TurnDecision:
    """Hold the price of every call that fits, refuse the rest, and record the turn."""
    run, chat = turn.run, turn.run.chat
    classes = [call.price_class for call in turn.wanted]

    def hold(account: Account) -> AccountChange:
        return account.hold_tools(chat.chat_id, classes, chat.documentation_paid, turn.now)

    recorded = partial(_recorded_tools, turn)
    held = move_credits(run.stores.ledger, run.log, chat.payer, hold, recorded, _no_other_run)
    return _with(turn.decision, turn.paid(held.fits))


def _recorded_tools(turn: _Turn, change: AccountChange) -> StepWrites:
    run, chat, stores = turn.run, turn.run.chat, turn.run.stores
    paid = turn.paid(change.fits)
    decision, thought = _with(turn.decision, paid), _thought(turn)
    after = _after_hold(turn, paid, change, thought)
    writes = stores.chats.turn_writes(chat, run.number, turn.reply, decision, after, turn.sending, turn.made)
    if thought:
        writes += stores.history.record_writes(chat.user, chat.conversation_id, thought, "thought")
    return _tools_events(run, paid, thought, after), writes


def _with(decision: TurnDecision, paid: CallPayment) -> TurnDecision:
    runnable = any(call.may_run for call in paid.calls)
    return replace(decision, calls=paid.calls, next="tools" if runnable else "turn")


def _after_hold(turn: _Turn, paid: CallPayment, change: AccountChange, thought: Record | None) -> Chat:
    """The chat after the hold. If no call of the turn could run for lack of credits, the next turn is the last one."""
    after, is_idle = turn.after, not any(call.may_run or call.is_open for call in paid.calls)
    return replace(
        after,
        held=after.held + change.amount,
        credits_remaining=change.account.available(turn.now, after.key_id),
        spent=after.spent.moved(lines_of(change, after.chat_id)),
        thoughts=after.thoughts + (1 if thought else 0),
        documentation_paid=after.documentation_paid or paid.has_documentation,
        limit="insufficient_credits" if paid.unpaid and is_idle else after.limit,
    )


def _thought(turn: _Turn) -> Record | None:
    """What the assistant thought and wrote before its tools; only for the full track."""
    thinking = [block["thinking"] for block in turn.reply.content if block["type"] == "thinking"]
    text = turn.decision.text
    content = "\n\n".join(part for part in (*thinking, text) if part.strip())
    if not content:
        return None
    record_id = thought_id(turn.run.chat.query, turn.run.chat.thoughts + 1)
    said = len(text) if text.strip() and not turn.decision.misfit else 0
    return Record(record_id, "message", "assistant", content, iso(turn.now), turn.run.number, said=said)


def _tools_events(run: _Run, paid: CallPayment, thought: Record | None, after: Chat) -> list[Event]:
    """Calls that wait for a decision begin, if at all, when they are approved."""
    events = [record_stored(thought.record_id, "assistant", "message")] if thought else []
    if begun := [call for call in paid.calls if not call.is_open]:
        events.append(calls_begin(run.number, begun))
    return [*events, paid.credits_event(after)]


def _commit_answer(turn: _Turn, records: Sequence[Record]) -> None:
    """Store the response, settle the credits, and release the conversation."""
    run, chat = turn.run, turn.run.chat

    this = RecordedTurn(run.number, (), (), "answered", usage=turn.reply.usage, made=turn.made)
    cost = cost_of(turn.after, model_nanodollars(turn.after, [*run.turns, this], records))

    def settle(account: Account) -> AccountChange:
        return account.settle(chat.chat_id, chat.held, turn.now, cost)

    recorded = partial(_recorded_answer, turn, records)
    move_credits(run.stores.ledger, run.log, chat.payer, settle, recorded, _no_other_run)
    run.told.ended("answered", turn.decision.stop)


def _recorded_answer(turn: _Turn, records: Sequence[Record], change: AccountChange) -> StepWrites:
    run, chat, stores = turn.run, turn.run.chat, turn.run.stores
    said, now = turn.decision, iso(turn.now)
    record_id = response_id(chat.query)
    response = Record(record_id, "message", "assistant", said.text, now, run.number, stop=said.stop)
    after = with_end(_after_settle(turn, change), [*records, response])
    response = replace(response, sums=after.memory.sums)
    events = [
        record_stored(record_id, "assistant", "message"),
        credits_now(after.credits_used, 0, after.credits_remaining),
        answer(said.text, sources_of(records), said.stop, run.number),
    ]
    writes = [
        *stores.chats.turn_writes(chat, run.number, turn.reply, said, after, turn.sending, turn.made),
        *stores.history.record_writes(chat.user, chat.conversation_id, response, "response"),
        stores.conversations.free_action(after, now),
    ]
    return events, writes


def _after_settle(turn: _Turn, change: AccountChange) -> Chat:
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
