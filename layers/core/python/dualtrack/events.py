"""Events of a chat (CONTRACT 5) as frozen values, one constructor each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import freeze
from dualtrack.text import preview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.tool_values import Source

TERMINAL: Final = frozenset({"done", "error"})


@dataclass(frozen=True, slots=True)
class Event:
    """``event`` is its name, ``data`` frozen JSON without ``chat_id`` and ``at`` (the log adds them)."""

    event: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its position in the log: ``id`` is 1, 2, 3 … without gaps."""

    id: int
    event: str
    data: Mapping[str, Any]


def _event(name: str, **data: Any) -> Event:
    return Event(name, freeze(data))


def record_stored(record_id: str, role: str, kind: str) -> Event:
    """A record was stored; ``kind`` is its type."""
    return _event("record", record_id=record_id, role=role, type=kind)


def turn_begins(turn: int, max_turns: int, *, final: bool) -> Event:
    """A model call begins; a repeat of the number voids that turn's deltas so far."""
    return _event("turn", turn=turn, max_turns=max_turns, final=final)


def retrying(turn: int, reason: str, tries: int, seconds: int, until: str) -> Event:
    """The model is busy: after ``tries`` of the turn the next one begins in this many ``seconds``; the chat waits
    ``until`` then at the latest (ISO 8601)."""
    return _event("retrying", turn=turn, reason=reason, **{"try": tries}, seconds=seconds, until=until)


def delta(turn: int, text: str) -> Event:
    """Text of a turn as it is generated."""
    return _event("delta", turn=turn, text=text)


def text_of_turn(events: Sequence[StoredEvent], turn: int) -> str:
    """What a turn has written so far: the deltas after its last `turn` event."""
    pieces: list[str] = []
    for event in events:
        if event.event == "turn" and event.data["turn"] == turn:
            pieces.clear()
        elif event.event == "delta" and event.data["turn"] == turn:
            pieces.append(event.data["text"])
    return "".join(pieces)


def tool_calls_start(turn: int, calls: Sequence[Mapping[str, Any]]) -> Event:
    """Calls: ``{"id", "tool", "input"}``."""
    return _event("tool_calls_start", turn=turn, calls=calls)


def tool_result(call_id: str, tool: str, seconds: float, content: str, *, is_error: bool) -> Event:
    """A tool has returned, with at most 500 characters of its result."""
    return _event(
        "tool_result", id=call_id, tool=tool, is_error=is_error, seconds=seconds, preview=preview(content)
    )


def credits_now(used: int, held: int, available: int) -> Event:
    """The credits of the chat and of its user."""
    return _event("credits", used=used, held=held, available=available)


def credits_short(used: int, held: int, available: int, required: int) -> Event:
    """A tool call was refused for lack of credits."""
    return _event(
        "credits", code="insufficient_credits", used=used, held=held, required=required, available=available
    )


def answer(response: str, sources: Sequence[Source], stop: str, turns: int) -> Event:
    """The authoritative answer."""
    return _event(
        "answer",
        response=response,
        sources=[source_json(source) for source in sources],
        stop=stop,
        turns=turns,
    )


def done(chat: Mapping[str, Any]) -> Event:
    """Terminal: the chat object."""
    return _event("done", **chat)


def error(code: str, message: str) -> Event:
    """Terminal: the chat failed."""
    return _event("error", code=code, message=message)


def source_json(source: Source) -> dict[str, str]:
    """``{"title", "url"?, "record_id"?}``."""
    extra = {"url": source.url, "record_id": source.record_id}
    return {"title": source.title, **{key: value for key, value in extra.items() if value}}
