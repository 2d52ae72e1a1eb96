"""The end of a chat, whatever ended it: idempotent, decided by the status (DESIGN 2.5).

running  ──► failed | cancelled   hold released or settled, response record, terminal event
paused   ──► cancelled            the same
paused   ──► failed               only where what it would go on with is missing: its records, or dollars of its key
answered ──► done                 with the stored track, else with mechanical summaries: a delivered answer
                                  stays delivered
ended    ──► nothing

The response record says that there is no answer. Only a cancelled chat keeps the text that its running turn has
written, if any, with the stop reason `cancelled` (CONTRACT 6).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.memory_figures import lost_nanodollars, with_aside, with_end
from dualtrack.chat.move_credits import cost_of, lines_of, move_credits
from dualtrack.chat.pauses import pause_over
from dualtrack.chat.receipt import model_nanodollars, unknown_summaries
from dualtrack.chat.tell import told
from dualtrack.chat.tool_results import outside_events
from dualtrack.chat.track_without_model import track_without_model
from dualtrack.chat.unfinished_calls import unfinished_calls
from dualtrack.clock import iso
from dualtrack.credits.account import Cost
from dualtrack.errors import ChatClosed, Contended, Gone, Superseded
from dualtrack.events import WRITING, Event, credits_now, done, error, record_stored, text_of_turn
from dualtrack.ids import response_id
from dualtrack.memory.conversation_words import words_of_query
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.memory.query_index import index_of, is_counted_at_once
from dualtrack.memory.records import QueryTrack, Record
from dualtrack.memory.summaries import NO_ANSWER
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.models.failures import OWNERS, words_of
from dualtrack.models.prices import rates_of
from dualtrack.models.receipt_data import at_rates, begun_before, prompt_beside
from dualtrack.models.trouble import BUSY, ErrorDetails, unreachable, without_key
from dualtrack.models.turn import Usage
from dualtrack.profiles import UTILITY, all_profiles
from dualtrack.storage.chats import ENDED, with_summaries, with_usage
from dualtrack.storage.conversation_words import WORDS
from dualtrack.storage.conversations import aside_action
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.history import TRACK, WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.chat.unfinished_calls import UnfinishedCalls
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject
    from dualtrack.models.receipt_data import SideCalls
    from dualtrack.requests import ChatRef
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import ChatStores, PaidStores, ToolStores
    from dualtrack.vocabulary import DecidedBy

_TRIES = 8


@dataclass(frozen=True, slots=True)
class ChatFailure:
    """Why a chat failed, for its `error` event. ``operator``: what an operator should know, if that is more;
    ``is_refused``: the service refused its last call, which has cost nothing."""

    code: str
    message: str
    operator: str = ""
    is_refused: bool = False

    @property
    def is_callers(self) -> bool:
        """Whether it failed by what its request brought."""
        return OWNERS[self.code] == "caller"


_NO_DETAILS: Final = ErrorDetails()

TIMED_OUT: Final = ChatFailure("timeout", "The chat took too long. Nothing was charged.")
"""A chat past its deadline."""


INCOMPLETE: Final = ChatFailure("internal", "A part of this conversation is missing. Nothing was charged.")
"""A chat that cannot continue, because something that it has to send was deleted."""


CUT_OFF: Final = ChatFailure("unavailable", "The model's answer was cut off too often. Nothing was charged.")
"""A chat whose cut calls have cost all that it holds under its key."""


CAP_REACHED: Final = ChatFailure(
    "unavailable",
    "Nobody decided in time, and the API key's cap left too little to go on. Nothing was charged.",
)
"""A paused chat whose time is up while its key's cap in dollars leaves less than it may cost."""


MODEL_BUSY: Final = ChatFailure("model_busy", BUSY, is_refused=True)
"""A chat whose model was busy until its last call was due, or asks for a longer wait."""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The user stopped it."""


OnEnd: TypeAlias = Callable[[str, str], None]
"""Called by the run that committed a chat's end: with ``answered`` and the stop reason, or ``failed`` and the code."""


def end_chat(
    stores: ChatStores,
    ref: ChatRef,
    how: ChatFailure | Cancellation,
    ended: OnEnd = lambda *_: None,
    execution: int | None = None,
) -> Chat | None:
    """End the chat if it has not ended; returns the chat afterwards, or None if there is none.

    ``ended`` is called if this call has ended the chat as failed. ``execution``: the number of the one that has
    failed, which does nothing to a chat that has gone on in another since.
    Raises `Contended` if the chat keeps moving on.
    """
    for left in reversed(range(_TRIES)):
        log = stores.log(ref)
        try:
            # Read the tail before the state: a later commit takes the slot, and so is noticed.
            log.next_slot()
        except ChatClosed:
            return stores.chats.load(ref.user, ref.chat_id)
        chat = stores.chats.load(ref.user, ref.chat_id)
        if chat is None or _too_late(chat, how) or execution not in (None, chat.execution):
            return chat
        try:
            if chat.status == "answered":
                records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
                finish(stores, chat, records, _mechanical(stores, chat, records), None)
            else:
                fence = _retry if left and isinstance(how, Cancellation) else _retry_unless_delta
                _end_running(stores, log, chat, how, fence)
                if isinstance(how, ChatFailure):
                    ended("failed", how.code)
        except (Superseded, ConditionFailed):
            continue
        return stores.chats.load(ref.user, ref.chat_id)
    raise Contended("The chat moved on at each attempt to end it.")


def _too_late(chat: Chat, how: ChatFailure | Cancellation) -> bool:
    """A delivered answer is not cancelled: what later queries are sent of it is being written. A paused chat has no
    steps that may fail, but what it would go on with can be missing."""
    if chat.status == "paused":
        return isinstance(how, ChatFailure) and how not in (INCOMPLETE, CAP_REACHED)
    return chat.status in ENDED or (chat.status == "answered" and isinstance(how, Cancellation))


def finish(
    stores: PaidStores,
    chat: Chat,
    records: tuple[Record, ...],
    track: QueryTrack,
    spent: SideCalls | None,
    also: Sequence[Write] = (),
    kept: int = 0,
) -> None:
    """Answered → done: the query's summarised ``track``, and the terminal event with the chat object.
    ``also`` is written with the track.

    A follow-up may have made the track final before (query_state.py): then the chat closes with that track. It may also
    end in the same moment: then its words are read anew.
    What was ``spent`` on summaries counts either way; None if unknown, because the step that asked for them died. It is
    charged to the chat's key, if it has one, which goes on holding the 10⁻⁹ dollars ``kept``.
    """
    after = replace(with_summaries(chat, spent.usage if spent else Usage()), status="done")
    after = replace(after, spent=replace(after.spent, summaries=spent))
    cost = side_nanodollars(spent) if spent else _unknown_cost(stores, chat)
    after = with_aside(stores, after, cost)
    writes = [*stores.history.track_writes(chat.user, chat.conversation_id, track), *also]
    for _ in range(_TRIES):
        try:
            _close_answered(stores, chat, after, records, track, writes, kept)
        except ConditionFailed as lost:
            if not lost.items.keys() <= {TRACK, WHOLE, WORDS}:
                raise
            if lost.items.keys() == {WORDS}:
                continue
            stored = stores.history.track(chat.user, chat.conversation_id, chat.query)
            if stored is None:
                raise
            track, writes = stored, []
        else:
            return
    raise Contended("Other queries of the conversation ended at each attempt.")


def is_searched(chat: Chat) -> bool:
    """Whether the chat's profile has a tool that searches its conversation."""
    profile = all_profiles().get(chat.profile)
    return profile is not None and SEARCH_TOOL in profile.tools


def _index_writes(
    stores: PaidStores, chat: Chat, records: Sequence[Record], track: QueryTrack
) -> Sequence[Write]:
    """What later searches read of the query: one of all conversations, if it is in their list, and one of this
    conversation, unless nothing searches it, or it is too much to be counted here."""
    if not records:
        return ()
    writes: list[Write] = []
    if chat.profile != UTILITY.name:
        hashes = words_of_query(records, track)
        writes += stores.words.actions(chat.user, chat.conversation_id, chat.ancestry, chat.query, hashes)
    if is_searched(chat) and is_counted_at_once(records):
        index = {chat.query: index_of(records, track)}
        writes += stores.search_index.words_writes(chat.user, chat.conversation_id, index)
    return writes


def _mechanical(stores: PaidStores, chat: Chat, records: tuple[Record, ...]) -> QueryTrack:
    """The track without a model. There are no records if the conversation was deleted meanwhile: then the closed log
    rejects the next write."""
    if not records:
        return QueryTrack(chat.query, ())
    return track_without_model(
        chat.profile, records, lambda: (chat.calls_for_summaries, _turns(stores, chat)), iso(stores.clock())
    )


def _close_answered(
    stores: PaidStores,
    chat: Chat,
    after: Chat,
    records: tuple[Record, ...],
    track: QueryTrack,
    writes: Sequence[Write],
    kept: int,
) -> None:
    log, summaries = stores.log(chat), after.spent.summaries
    events = [*_summary_events(track), done(chat_json(after, records, track))]
    aside, table = after.memory.aside, stores.history.table
    added = [aside_action(table, chat.user, chat.conversation_id, aside)] if aside else []
    writes = [*added, *writes, *_index_writes(stores, chat, records, track), *told(stores, after)]
    if not chat.key_id:
        log.append(events, [stores.chats.change_action(chat, after), *writes])
        return
    nanodollars = side_nanodollars(summaries) if summaries else 0
    now, cost = stores.clock(), Cost(nanodollars, chat.key_id, kept, chat.profile)

    def charge(account: Account) -> AccountChange:
        return account.charge(chat.chat_id, now, cost)

    def recorded(change: AccountChange) -> StepWrites:
        charged = replace(after, spent=after.spent.moved(lines_of(change, chat.chat_id)))
        return events, [stores.chats.change_action(chat, charged), *writes]

    move_credits(stores.ledger, log, chat.payer, charge, recorded)


def _unknown_cost(stores: ToolStores, chat: Chat) -> int:
    """The receipt's estimate for summaries whose step died while it asked for them (10⁻⁹ dollars)."""
    if not chat.calls_for_summaries:
        return 0
    usage = unknown_summaries(_turns(stores, chat))
    return rates_of(chat.model, usage.prompt_tokens, chat.ended_at).nanodollars(usage)


@dataclass(frozen=True, slots=True)
class _End:
    """How a running chat ends: the chat as it was read, with what is known of its unrecorded turn, its query's
    tracks, and the writes of their search index; ``waiting``: the turn whose calls wait, if it is paused;
    ``unfinished``: its calls without a result."""

    chat: Chat
    how: ChatFailure | Cancellation
    now: float
    records: tuple[Record, ...]
    track: QueryTrack
    indexed: Sequence[Write]
    waiting: RecordedTurn | None
    unfinished: UnfinishedCalls

    @property
    def response(self) -> Record:
        """The last record: the text that is kept, or the note that there is no answer."""
        return self.records[-1]


def _end_running(
    stores: ChatStores,
    log: EventLog,
    chat: Chat,
    how: ChatFailure | Cancellation,
    fence: Callable[[StoredEvent], None],
) -> None:
    """Close a running chat in one transaction."""
    now = stores.clock()
    events = log.events()
    response = _response(chat, how, events, iso(now))
    chat = _with_cut_calls(chat, how, events)
    turns = _turns(stores, chat)
    recorded = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    unfinished = unfinished_calls(stores, chat, turns, recorded)
    records = (*recorded, *unfinished.records, response)
    prompt = prompt_beside(chat.spent.lost, turns[-1].usage.prompt_tokens if turns else 0)
    spent = replace(chat.spent, lost=at_rates(chat.spent.lost, chat.model, prompt))
    lost = lost_nanodollars(chat.model, spent.lost, prompt)
    chat = with_end(replace(chat, spent=spent, memory=chat.memory.with_lost(lost)), records)
    cost = cost_of(chat, _cost(chat, turns, records), is_answered=False)
    track = track_without_model(chat.profile, records, lambda: (chat.calls_for_summaries, turns), iso(now))
    waiting = turns[-1] if turns and chat.status == "paused" else None
    indexed = _index_writes(stores, chat, records, track)
    end = _End(chat, how, now, records, track, indexed, waiting, unfinished)

    def decide(account: Account) -> AccountChange:
        return _charged(account, end, cost)

    move_credits(stores.ledger, log, chat.payer, decide, partial(_recorded_end, stores, end), fence)


def _with_cut_calls(chat: Chat, how: ChatFailure | Cancellation, events: Sequence[StoredEvent]) -> Chat:
    """The chat with the calls and waits of its unrecorded turn. A call that was cut after its first byte counts in its
    usage: the prompt as the service reported it, and the text that came. The last call to a busy model was refused, and
    cost nothing, as did one that was refused for what it is."""
    begun = begun_before(events, chat.turn + 1, chat.heard)
    is_refused = isinstance(how, ChatFailure) and how.is_refused and begun.lost and not begun.lost[-1].usage
    lost = begun.lost[:-1] if is_refused else begun.lost
    usage = sum((call.usage for call in lost if call.usage), Usage())
    spent = replace(chat.spent, lost=lost, waited=begun.waited)
    counted = with_usage(chat, usage) if usage.tokens else chat
    return replace(counted, spent=spent, model=chat.model or (chat.heard.model if chat.heard else ""))


def _cost(chat: Chat, turns: Sequence[RecordedTurn], records: Sequence[Record]) -> int:
    """What the model calls of the chat's turns and tools cost (10⁻⁹ dollars), whatever the user is charged. Where that
    is gone, a chat by a key costs what it held."""
    if turns or not chat.turn:
        return model_nanodollars(chat, turns, records)
    return chat.costs.turns if chat.costs else 0


def _turns(stores: ToolStores, chat: Chat) -> tuple[RecordedTurn, ...]:
    """The chat's recorded turns; none if some of them is missing: the conversation is being deleted, or missing data is
    why the chat ends."""
    if not chat.turn:
        return ()
    try:
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    except Gone:
        return ()
    return loaded[1] if loaded else ()


def _response(chat: Chat, how: ChatFailure | Cancellation, events: Sequence[StoredEvent], now: str) -> Record:
    """The text of a cancelled chat's running turn, or the note that there is no answer."""
    turn, is_cancelled = chat.turn + 1, isinstance(how, Cancellation)
    text = text_of_turn(events, turn) if is_cancelled else ""
    stop: Literal["cancelled", ""] = "cancelled"
    if not text.strip():
        text, stop = NO_ANSWER[_status(how)], ""
    return Record(response_id(chat.query), "message", "assistant", text, now, turn, stop=stop)


def _recorded_end(stores: ChatStores, end: _End, change: AccountChange) -> StepWrites:
    chat, now = end.chat, iso(end.now)
    after = _after(end, change)
    events = [
        *(outside_events(end.waiting, end.records) if end.waiting else ()),
        *end.unfinished.events,
        record_stored(end.response.record_id, "assistant", "message"),
        *_summary_events(end.track),
        credits_now(after.credits_used, 0, after.credits_remaining),
        _terminal(after, end),
    ]
    writes = [
        stores.chats.end_action(chat, after),
        *stores.history.record_writes(
            chat.user, chat.conversation_id, replace(end.response, sums=after.memory.sums), "response"
        ),
        *stores.history.track_writes(chat.user, chat.conversation_id, end.track),
        *end.indexed,
        *end.unfinished.writes,
        stores.conversations.free_action(after, now),
        *told(stores, after),
    ]
    if chat.status == "paused":
        writes.append(stores.paused.delete_action(chat.payer, chat))
    if end.waiting:  # put as it was read: no result has come since
        writes += stores.chats.decide_writes(chat, end.waiting, end.waiting)
    return events, writes


def _after(end: _End, change: AccountChange) -> Chat:
    """The chat once it has ended."""
    how, chat = end.how, end.chat
    if chat.status == "paused":  # from now on its deadline is again when its last late writer is dead
        by: DecidedBy | Literal["cancelled"] = "expired" if how == CAP_REACHED else "cancelled"
        chat = replace(pause_over(chat, by, end.now), deadline=int(end.now) + chat.times.chat)
    return replace(
        chat,
        status=_status(how),
        stop="cancelled" if isinstance(how, Cancellation) else "",
        ended_at=iso(end.now),
        spent=chat.spent.moved(lines_of(change, chat.chat_id)),
        unbegun=end.unfinished.never,
        held=0,
        credits_used=change.charged,
        credits_remaining=change.account.available(end.now, end.chat.key_id),
        error=_error_of(how, change.charged) if isinstance(how, ChatFailure) else None,
    )


def _error_of(how: ChatFailure, charged: int) -> dict[str, str]:
    said = {"code": how.code, "message": words_of(how.message, charged)}
    return said | {"operator": how.operator} if how.operator else said


def _status(how: ChatFailure | Cancellation) -> Literal["failed", "cancelled"]:
    return "failed" if isinstance(how, ChatFailure) else "cancelled"


def _retry_unless_delta(event: StoredEvent) -> None:
    """The fence: an event arrived while the end was being written, so the chat is read again."""
    if event.event not in WRITING:
        raise Superseded(event.event)


def _retry(event: StoredEvent) -> None:
    """The same for text as well, so that text that arrived in between is kept."""
    raise Superseded(event.event)


def _charged(account: Account, end: _End, cost: Cost) -> AccountChange:
    """A failure costs nothing, and one that is the caller's own what the account decides; a cancelled chat all that it
    holds, but for calls that never began, once a byte of an answer has come, and before that what the account
    decides."""
    chat, now = end.chat, end.now
    if isinstance(end.how, ChatFailure):
        fail = account.fail_by_caller if end.how.is_callers else account.release
        return fail(chat.chat_id, now, cost)
    if chat.has_begun:
        return account.settle(chat.chat_id, chat.held - end.unfinished.free, now, cost)
    return account.cancel_unanswered(chat.chat_id, now, cost)


def _terminal(after: Chat, end: _End) -> Event:
    if isinstance(end.how, ChatFailure):
        return error(end.how.code, words_of(end.how.message, after.credits_used))
    return done(chat_json(after, end.records, end.track))


def _summary_events(track: QueryTrack) -> list[Event]:
    return [record_stored(block.record_id, block.role, "summary") for block in track.blocks if block.ref]


def failure_of(cause: JsonObject | None, details: ErrorDetails = _NO_DETAILS) -> ChatFailure:
    """The `error` event's code and message, from an error as Step Functions reports it."""
    text = f"{(cause or {}).get('Error', '')} {(cause or {}).get('Cause', '')}"
    if "ModelUnavailable" in text:
        return ChatFailure("unavailable", *unreachable(said_by(cause), details))
    if "MissingKey" in text:
        return ChatFailure("unavailable", *without_key(said_by(cause)))
    if "Timeout" in text or "TIMED_OUT" in text or "timed out" in text:
        return TIMED_OUT
    return ChatFailure("internal", "The chat could not be finished. Nothing was charged.")


def said_by(cause: JsonObject | None) -> str:
    """The message of the exception that a function ended with, without its name; empty if it ended otherwise."""
    try:
        cause_data = json.loads((cause or {}).get("Cause") or "{}")
    except ValueError:
        return ""
    said = str(cause_data.get("errorMessage", "")) if isinstance(cause_data, dict) else ""
    return re.sub(r"\AModel(?:Unavailable|Busy): ", "", said)
