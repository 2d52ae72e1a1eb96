"""Turns a chat's events into output: pure steps from events to blocks. `step` folds one event into the frozen
`ChatTranscript` (the current state, redrawn by a live view) and returns the blocks that it makes final (shown
once, never changed). A turn's text is final only when the turn is over, because a repeated ``turn`` event
discards its deltas (CONTRACT 5).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dualtrack.frozen import thaw
from dualtrack.visible import on_a_line, visible

from dualtrack_stack.cli.cjk import PUNCTUATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dualtrack import answers
    from dualtrack.answers import OpenCall
    from dualtrack.event_data import (
        AnswerEvent,
        CreditsEvent,
        DeltaEvent,
        DoneEvent,
        ErrorEvent,
        LeftOutEvent,
        PausedEvent,
        ResumedEvent,
        RetryingEvent,
        StartedCall,
        ToolCallsStartEvent,
        ToolResultEvent,
        TurnEvent,
    )
    from dualtrack.frozen import JsonObject

    from dualtrack_stack.cli.client import ChatEvent


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A tool call without a result yet; ``since`` is the watcher's clock in seconds."""

    id: str
    tool: str
    detail: str
    since: float


@dataclass(frozen=True, slots=True)
class ChatTranscript:
    """The current state: the turn, its text so far, its running tools."""

    turn: int = 0
    max_turns: int = 0
    final: bool = False
    text: str = ""
    since: float = 0.0
    running: tuple[RunningCall, ...] = ()
    answered: bool = False
    asking: tuple[RunningCall, ...] = ()
    """Calls that wait for somebody: the chat is paused."""
    waiting: Retrying | None = None
    """The model is busy: the turn is about to be retried, or just being so."""


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A model call begins; ``again`` if the same turn is retried."""

    turn: int
    max_turns: int
    final: bool
    again: bool
    misfit: bool = False
    """The answer before it did not fit its schema."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """The model is busy. After so many ``tries`` the turn is retried after ``seconds``, 0 while it is; ``until`` is the
    reader's time of the day at which the chat gives up, empty if unknown."""

    tries: int
    seconds: int
    until: str

    @property
    def is_shown_as_line(self) -> bool:
        """Whether it gets a line of its own where lines cannot be updated: with the tries 1, 2, 4, 8 and so on."""
        return self.tries & (self.tries - 1) == 0


@dataclass(frozen=True, slots=True)
class InterimText:
    """The model's text before its tool calls."""

    text: str


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A finished tool call; ``seconds`` is None if its result was never seen."""

    tool: str
    detail: str
    seconds: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PausedCalls:
    """The chat pauses for these calls."""

    calls: tuple[RunningCall, ...]


@dataclass(frozen=True, slots=True)
class DecidedLine:
    """What became of a call that waited; ``is_refused`` if it will have no result of its own."""

    tool: str
    detail: str
    outcome: str
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Unpaid:
    """Tools for which the credits were not enough."""

    required: int | None
    available: int | None


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The authoritative answer, or the text that a cancelled chat keeps; Markdown."""

    response: str


@dataclass(frozen=True, slots=True)
class ChatDone:
    """The terminal ``done``: the chat object."""

    chat: answers.Chat


@dataclass(frozen=True, slots=True)
class ChatError:
    """The terminal ``error``."""

    code: str
    message: str


TranscriptBlock: TypeAlias = (
    TurnBegan
    | Retrying
    | InterimText
    | FinishedCall
    | PausedCalls
    | DecidedLine
    | Unpaid
    | FinalAnswer
    | ChatDone
    | ChatError
)
TranscriptStep: TypeAlias = tuple[ChatTranscript, tuple[TranscriptBlock, ...]]

OUTCOMES: Final[Mapping[str, str]] = {
    "approved": "approved",
    "edited": "approved with another input",
    "answered": "answered",
    "declined": "declined",
    "expired": "nobody decided in time",
}
"""What became of a call that waited, in words."""

LEFT: Final = "left"
"""Not an event of the API: the user stops watching, and unfinished blocks are shown as they are."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_URL: Final = re.compile(rf"https?://[^\s<>()\[\]\"'`{PUNCTUATION}]+")
_DETAIL_LENGTH: Final = 90


def step(before: ChatTranscript, event: ChatEvent, now: float) -> TranscriptStep:
    """The transcript after one event, and the blocks that it makes final. Unknown events change nothing."""
    known = _STEPS.get(event.kind)
    return known(before, event.data, now) if known else (before, ())


def _turn(before: ChatTranscript, data: TurnEvent, now: float) -> TranscriptStep:
    number, limit, final = int(data["turn"]), int(data.get("max_turns", 0)), bool(data.get("final"))
    again = number == before.turn
    settled = () if again else (*_said(before.text), *_unseen(before))
    after = ChatTranscript(turn=number, max_turns=limit, final=final, since=now)
    if again and before.waiting and final == before.final:  # as was announced
        waiting = replace(before.waiting, tries=before.waiting.tries + 1, seconds=0)
        return replace(after, waiting=waiting), ()
    return after, (*settled, TurnBegan(number, limit, final, again, bool(data.get("misfit"))))


def _retrying(before: ChatTranscript, data: RetryingEvent, now: float) -> TranscriptStep:
    tries, seconds = int(data.get("try") or 1), int(data.get("seconds") or 0)
    waiting = Retrying(tries, seconds, _time_of_day(data.get("until")))
    return replace(before, waiting=waiting, since=now), (waiting,)


def _left_out(before: ChatTranscript, data: LeftOutEvent, now: float) -> TranscriptStep:
    query = one_line(data["query"], 20)
    told = f"The model's service declined again: asked once more without what {query} had found and answered."
    return replace(before, text="", since=now), (InterimText(told),)


def _time_of_day(at: object) -> str:
    """``12:34:56`` where the reader is; empty if it is no time."""
    try:
        return f"{datetime.fromisoformat(str(at)).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def wait_line(waiting: Retrying, passed: float = 0.0) -> str:
    """``The model is busy: try 4, again in 32 s, until 12:34:56 at the latest``; ``passed``: the seconds of the wait
    that are over."""
    left = max(0, round(waiting.seconds - passed))
    now = f"again in {left} s" if waiting.seconds else "asking again"
    ends = f", until {waiting.until} at the latest" if waiting.until else ""
    return f"The model is busy: try {waiting.tries}, {now}{ends}"


def _delta(before: ChatTranscript, data: DeltaEvent, _now: float) -> TranscriptStep:
    if data["turn"] != before.turn:
        return before, ()
    return replace(before, text=before.text + str(data["text"]), waiting=None), ()


def _calls_of(listed: Iterable[OpenCall | StartedCall], now: float) -> tuple[RunningCall, ...]:
    return tuple(
        RunningCall(str(call["id"]), visible(call["tool"]), describe(call.get("input") or {}), now)
        for call in listed
    )


def _paused(before: ChatTranscript, data: PausedEvent, now: float) -> TranscriptStep:
    calls = _calls_of(data["calls"], now)
    return replace(before, text="", asking=calls, waiting=None), (*_said(before.text), PausedCalls(calls))


def _resumed(before: ChatTranscript, data: ResumedEvent, now: float) -> TranscriptStep:
    outcomes = {decision["id"]: str(decision["outcome"]) for decision in data["decisions"]}
    decided = tuple(
        DecidedLine(
            call.tool, call.detail, OUTCOMES.get(outcome, outcome), outcome in ("declined", "expired")
        )
        for call in before.asking
        if (outcome := outcomes.get(call.id, ""))
    )
    return replace(before, asking=(), since=now), decided


def _calls(before: ChatTranscript, data: ToolCallsStartEvent, now: float) -> TranscriptStep:
    calls = _calls_of(data["calls"], now)
    return replace(before, text="", running=before.running + calls, waiting=None), _said(before.text)


def _result(before: ChatTranscript, data: ToolResultEvent, _now: float) -> TranscriptStep:
    call = next((call for call in before.running if call.id == data["id"]), None)
    problem = one_line(data.get("preview", ""), _DETAIL_LENGTH) or "failed" if data.get("is_error") else ""
    seconds = float(data.get("seconds") or 0)
    called = FinishedCall(visible(data["tool"]), call.detail if call else "", seconds, problem)
    return replace(before, running=tuple(other for other in before.running if other is not call)), (called,)


def _credits(before: ChatTranscript, data: CreditsEvent, _now: float) -> TranscriptStep:
    if data.get("code") != "insufficient_credits":
        return before, ()
    return before, (Unpaid(data.get("required"), data.get("available")),)


def _answer(before: ChatTranscript, data: AnswerEvent, now: float) -> TranscriptStep:
    after = replace(before, text="", running=(), answered=True, since=now)
    return after, (*_unseen(before), FinalAnswer(clean(data["response"] or "")))


def _done(before: ChatTranscript, data: DoneEvent, _now: float) -> TranscriptStep:
    after = replace(before, text="", running=(), answered=True)
    if before.answered:
        return after, (ChatDone(data),)
    return after, (*_unseen(before), *_kept(before, data), ChatDone(data))


def _kept(before: ChatTranscript, chat: answers.Chat) -> tuple[TranscriptBlock, ...]:
    """A cancelled chat's text, or an answer whose event was missed."""
    return (FinalAnswer(clean(chat["response"])),) if chat.get("response") else _said(before.text)


def _left(before: ChatTranscript, _data: object, _now: float) -> TranscriptStep:
    return replace(before, text="", running=()), (*_said(before.text), *_unseen(before))


def _error(before: ChatTranscript, data: ErrorEvent, _now: float) -> TranscriptStep:
    failed = ChatError(clean(data.get("code", "internal")), clean(data.get("message", "")))
    return replace(before, text="", running=()), (*_unseen(before), failed)


def _said(text: str) -> tuple[TranscriptBlock, ...]:
    return (InterimText(clean(text).strip("\n")),) if text.strip() else ()


def _unseen(before: ChatTranscript) -> tuple[TranscriptBlock, ...]:
    return tuple(FinishedCall(call.tool, call.detail, None, "no result seen") for call in before.running)


_STEPS: Final[Mapping[str, Callable[[ChatTranscript, Any, float], TranscriptStep]]] = {
    "turn": _turn,
    "retrying": _retrying,
    "left_out": _left_out,
    "delta": _delta,
    "tool_calls_start": _calls,
    "tool_result": _result,
    "paused": _paused,
    "resumed": _resumed,
    "credits": _credits,
    "answer": _answer,
    "done": _done,
    "error": _error,
    LEFT: _left,
}


def clean(text: object) -> str:
    """Text without escape sequences: documents and models must not control the terminal."""
    return _CONTROLS.sub("", str(text).replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: object, length: int) -> str:
    """The text on one line, cut to a length in characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def describe(arguments: JsonObject, length: int = _DETAIL_LENGTH) -> str:
    """A tool's input, short: ``query="OAuth" limit=3``; nothing in it is hidden."""
    parts = (f"{name}={json.dumps(thaw(value), ensure_ascii=False)}" for name, value in arguments.items())
    return on_a_line(" ".join(parts), length)


def turn_title(turn: int, max_turns: int, *, final: bool, misfit: bool = False) -> str:
    """``turn 2 of 15``; the last call only answers, and does not count towards the limit."""
    if misfit:
        return f"turn {turn}: the answer once more, since it did not fit its schema"
    if final:
        return f"turn {turn}: the answer"
    return f"turn {turn} of {max_turns}" if max_turns else f"turn {turn}"


def sources_title(chat: answers.Chat) -> str:
    """The heading above `sources_of`."""
    return "Sources" if len(sources_of(chat)) == len(chat.get("sources") or ()) else "More sources"


def sources_of(chat: answers.Chat) -> tuple[tuple[str, str], ...]:
    """(title, URL or record id or nothing) of each source that the answer does not link itself, in order of first
    use."""
    linked = {url.rstrip(".,;:") for url in _URL.findall(chat.get("response") or "")}
    return tuple(
        (
            one_line(source.get("title", ""), 100),
            one_line(source.get("url") or source.get("record_id") or "", 300),
        )
        for source in chat.get("sources") or ()
        if source.get("url") not in linked
    )


_STOPS: Final = {
    "max_turns": "the turn limit was reached; the answer uses what was found so far",
    "insufficient_credits": "the credits for more tools ran out; the answer uses what was found so far",
    "max_tokens": "the answer reached its length limit and is cut off",
    "context_window": "the context window is full",
    "max_cost": "the chat reached its cost limit; the answer uses what was found so far",
    "timeout": "the chat ran out of time; the answer uses what was found so far",
    "refusal": "the model's service declined to answer; this question is left out of what the model reads from now on. "
    "Ask it in other words, or something else",
    "other": "the model stopped for a reason that is not known here; this is what it had written",
    "invalid_output": "the answer does not fit the schema that was asked for",
    "cancelled": "the chat was cancelled; this is what was written so far",
}


def stop_note(chat: answers.Chat) -> str:
    """A sentence for an incomplete answer, else nothing."""
    if chat.get("response") is None:
        return ""
    note = _STOPS.get(str(chat.get("stop")), "")
    category = (chat.get("refusal") or {}).get("category")
    return f"{note} ({one_line(category, 40)})" if category else note


def is_cut(chat: answers.Chat) -> bool:
    """Whether the answer reached its limit of length, and can go on."""
    return chat.get("stop") == "max_tokens"


FICTIONAL: Final = " (fictional: the offline model answered)"
_CENT: Final = 0.01


def figures_of(chat: answers.Chat) -> tuple[str, str]:
    """The line under an answer: ``15 credits, 1,035 left · $0.0041, with the full history $0.0037: +11 % so far``; and
    what to know about it: ``estimated``. A chat without an answer is named: its id is what is left to ask about."""
    credit = f"{chat.get('credits_used', 0):,} credits, {chat.get('credits_remaining', 0):,} left"
    memory = chat.get("memory")
    if chat.get("status") not in ("answered", "done"):
        credit += f" · {one_line(chat.get('chat_id', ''), 100)}"
    if not memory:
        return credit, ""
    ours, full = memory["conversation_dollars"], memory["conversation_full_history_dollars"]
    notes = {
        "estimated": True,
        "its summaries not counted yet": memory.get("summaries_due"),
        "the full history no longer fits in the model's window": memory["beyond_window"],
        "fictional": chat.get("fictional"),
    }
    return f"{credit} · {compared(ours, full)} so far", "; ".join(
        note for note, is_so in notes.items() if is_so
    )


def facts_of(chat: answers.Chat, user: str = "") -> tuple[tuple[str, str], ...]:
    """(label, text) lines under an answer, in full: work, credits and whose they are, what memory costs, ids."""
    credit = f"{chat.get('credits_used', 0):,} used, {chat.get('credits_remaining', 0):,} left"
    return (
        ("work", _work(chat)),
        ("credits", f"{credit} ({one_line(user, 64)})" if user else credit),
        *cost_lines(chat),
        ("chat", one_line(chat.get("chat_id", ""), 100)),
        ("conversation", one_line(chat.get("conversation_id", ""), 100)),
    )


def cost_lines(chat: answers.Chat | answers.Receipt) -> tuple[tuple[str, str], ...]:
    """(label, text) lines: what the model calls of a chat and of its conversation cost, beside a full history; one line
    for the first query of a conversation."""
    memory = chat.get("memory")
    if not memory:
        return ()
    beyond = "; the full history no longer fits in the model's window" if memory["beyond_window"] else ""
    summaries = ", its summaries not counted yet" if memory.get("summaries_due") else ""
    note = f" so far, estimated{summaries}{beyond}{FICTIONAL if chat.get('fictional') else ''}"
    own, whole = memory["dollars"], memory["conversation_dollars"]
    so_far = compared(whole, memory["conversation_full_history_dollars"]) + note
    if own == whole:
        return (("cost", so_far),)
    return ("cost", compared(own, memory["full_history_dollars"])), ("in all", so_far)


def compared(ours: float, full: float) -> str:
    """``$0.0041, with the full history $0.0037: +11 %``."""
    if not full:
        return money(ours)
    percent = round(100 * (ours - full) / full)
    signed = f"{percent:+}".replace("-", "−") if percent else "±0"
    return f"{money(ours)}, with the full history {money(full)}: {signed} %"


def money(amount: float) -> str:
    """``$0.0123``, with two significant digits of a small amount."""
    if not amount:
        return "$0"
    digits = 4 if amount >= _CENT else min(9, 1 - math.floor(math.log10(amount)))
    return f"${amount:.{digits}f}"


def _work(chat: answers.Chat) -> str:
    turns, tools = int(chat.get("turns") or 0), len(chat.get("tool_calls") or ())
    parts = [f"{turns} turn{'' if turns == 1 else 's'}", f"{tools} tool call{'' if tools == 1 else 's'}"]
    begin, end = chat.get("created_at"), chat.get("ended_at")
    if begin and end:
        parts.append(f"{(datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds():.1f} s")
    return ", ".join(parts)
