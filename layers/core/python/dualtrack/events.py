"""Events of a chat (CONTRACT 5) as frozen values, one constructor each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.frozen import freeze
from dualtrack.text import preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.event_data import (
        AnswerEvent,
        CreditsEvent,
        DecidedCall,
        DeltaEvent,
        ErrorEvent,
        LeftOutEvent,
        PausedEvent,
        RecordEvent,
        ResumedEvent,
        RetryingEvent,
        StartedCall,
        ThinkingEvent,
        ToolCallsStartEvent,
        ToolResultEvent,
        TurnEvent,
        WrittenEvent,
    )
    from dualtrack.frozen import JsonObject
    from dualtrack.tool_values import Source
    from dualtrack.vocabulary import BusyReason, CallStatus, DecidedBy, RecordType, Role, Stop


TERMINAL: Final = frozenset({"done", "error"})
WRITING: Final = frozenset({"thinking", "delta", "written"})
"""What a turn says while its model writes: nothing is decided by these."""


@dataclass(frozen=True, slots=True)
class Event:
    """``event`` is its name, ``data`` frozen JSON without ``chat_id`` and ``at`` (the log adds them)."""

    event: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its position in the log: ``id`` is 1, 2, 3 … without gaps."""

    id: int
    event: str
    data: JsonObject


def _event(name: str, data: object) -> Event:
    return Event(name, freeze(data))


def record_stored(record_id: str, role: Role, kind: RecordType) -> Event:
    """A record was stored; ``kind`` is its type."""
    data: RecordEvent = {"record_id": record_id, "role": role, "type": kind}
    return _event("record", data)


def turn_begins(turn: int, max_turns: int, *, final: bool, misfit: str = "") -> Event:
    """A model call begins; a repeat of the number voids that turn's text so far. ``misfit``: why the answer before it
    has to be given again."""
    data: TurnEvent = {"turn": turn, "max_turns": max_turns, "final": final}
    if misfit:
        data["misfit"] = misfit
    return _event("turn", data)


def retrying(turn: int, reason: BusyReason, tries: int, seconds: int, until: str) -> Event:
    """The model is busy: after ``tries`` of the turn the next one begins in this many ``seconds``; the chat waits
    ``until`` then at the latest (ISO 8601)."""
    data: RetryingEvent = {"turn": turn, "reason": reason, "try": tries, "seconds": seconds, "until": until}
    return _event("retrying", data)


def left_out(turn: int, query: str) -> Event:
    """The turn is asked again without the results of an earlier query."""
    data: LeftOutEvent = {"turn": turn, "query": query}
    return _event("left_out", data)


def thinking(turn: int, text: str) -> Event:
    """What the model thinks before it writes; no part of the answer."""
    data: ThinkingEvent = {"turn": turn, "text": text}
    return _event("thinking", data)


def delta(turn: int, text: str) -> Event:
    """Text of a turn as it is generated."""
    data: DeltaEvent = {"turn": turn, "text": text}
    return _event("delta", data)


def written(turn: int) -> Event:
    """The text of a turn is complete; what the model still writes is not for the reader."""
    data: WrittenEvent = {"turn": turn}
    return _event("written", data)


def text_of_turn(events: Sequence[StoredEvent], turn: int) -> str:
    """What a turn has written so far: the deltas after its last `turn` event."""
    pieces: list[str] = []
    for event in events:
        if event.event == "turn" and event.data["turn"] == turn:
            pieces.clear()
        elif event.event == "delta" and event.data["turn"] == turn:
            pieces.append(event.data["text"])
    return "".join(pieces)


def tool_calls_start(turn: int, calls: Sequence[StartedCall]) -> Event:
    """Calls of a turn begin."""
    data: ToolCallsStartEvent = {"turn": turn, "calls": calls}
    return _event("tool_calls_start", data)


def tool_result(
    call_id: str, tool: str, seconds: float, content: str, status: CallStatus, *, is_error: bool
) -> Event:
    """A tool has returned, with at most 500 characters of its result."""
    data: ToolResultEvent = {
        "id": call_id,
        "tool": tool,
        "is_error": is_error,
        "status": status,
        "seconds": seconds,
        "preview": preview(content),
    }
    return _event("tool_result", data)


def credits_now(used: int, held: int, available: int) -> Event:
    """The credits of the chat and of its user."""
    data: CreditsEvent = {"used": used, "held": held, "available": available}
    return _event("credits", data)


def credits_short(used: int, held: int, available: int, required: int) -> Event:
    """A tool call was refused for lack of credits."""
    data: CreditsEvent = {
        "code": "insufficient_credits",
        "used": used,
        "held": held,
        "required": required,
        "available": available,
    }
    return _event("credits", data)


def paused(turn: int, calls: Sequence[answers.OpenCall], expires_at: str) -> Event:
    """The chat waits for decisions, until ``expires_at`` (ISO 8601)."""
    data: PausedEvent = {"turn": turn, "calls": calls, "expires_at": expires_at}
    return _event("paused", data)


def resumed(turn: int, by: DecidedBy, decisions: Sequence[DecidedCall]) -> Event:
    """The chat goes on."""
    data: ResumedEvent = {"turn": turn, "by": by, "decisions": decisions}
    return _event("resumed", data)


def answer(response: str, sources: Sequence[Source], stop: Stop, turns: int) -> Event:
    """The authoritative answer."""
    shown = [source_json(source) for source in sources]
    data: AnswerEvent = {"response": response, "sources": shown, "stop": stop, "turns": turns}
    return _event("answer", data)


def done(chat: answers.Chat) -> Event:
    """Terminal: the chat object."""
    return _event("done", chat)


def error(code: str, message: str) -> Event:
    """Terminal: the chat failed."""
    data: ErrorEvent = {"code": code, "message": message}
    return _event("error", data)


def source_json(source: Source) -> answers.Source:
    """``{"title", "url"?, "record_id"?}``."""
    shown: answers.Source = {"title": source.title}
    if source.url:
        shown["url"] = source.url
    if source.record_id:
        shown["record_id"] = source.record_id
    return shown
