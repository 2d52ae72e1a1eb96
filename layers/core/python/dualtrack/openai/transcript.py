"""A chat's events as pieces of one answer (CONTRACT 10). Pure.

An answer is the texts of all turns, with a blank line between them: what the model wrote before its tools is part of
it. What is streamed adds up to what is returned. So text that may still be taken back is held back, and where a
repeated turn does not go on as it began, the stream ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject

_BETWEEN: Final = "\n\n"
_INPUT: Final = 500
"""Characters of a tool's input that are shown."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """What our own tools do, for people to read."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The answer is complete. ``stop``: the chat's, or ``paused`` for one that waits for a decision."""

    stop: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The chat failed: the code and the message of its event."""

    code: str
    message: str


Piece = Text | Work | End | Failed


class Diverged(Exception):
    """A repeated turn, or the answer itself, does not begin with what was sent."""


@dataclass(slots=True)
class Transcript:
    """Takes a chat's events in order. ``is_streamed``: what was returned cannot be taken back; else it is read once the
    chat has ended (`content`, `work`)."""

    is_streamed: bool
    _turn: int = 0
    _closed: list[str] = field(default_factory=list)
    _current: list[str] = field(default_factory=list)
    """The current turn's text, without the white space at its end."""
    _held: str = ""
    """That white space: nothing is certain about it before more text comes."""
    _again: str = ""
    """What of a repeated turn was sent: it has to say it again before anything of it is new."""
    _repeated: int = 0
    """How many characters of that it has said."""
    _work: list[str] = field(default_factory=list)

    @property
    def content(self) -> str:
        """The whole answer."""
        return _BETWEEN.join(text for text in (*self._closed, "".join(self._current)) if text)

    @property
    def _sent(self) -> str:
        """What was sent of the current turn."""
        return self._again or "".join(self._current)

    @property
    def work(self) -> str:
        """What the tools did."""
        return "".join(self._work)

    def take(self, event: StoredEvent) -> Sequence[Piece]:
        """The pieces that follow from an event. Raises `Diverged`."""
        take = _TAKES.get(event.event)
        return take(self, event.data) if take else ()

    def _begin(self, turn: int) -> Sequence[Piece]:
        said = self._sent
        if turn == self._turn:
            self._again, self._repeated = (said if self.is_streamed else ""), 0
        elif said:
            self._closed.append(said)
            self._again = ""
        self._turn, self._current, self._held = turn, [], ""
        return ()

    def _say(self, text: str) -> Sequence[Piece]:
        text = self._held + text
        certain = text.rstrip()
        self._held = text[len(certain) :]
        if not (self._current or self._repeated):
            certain = certain.lstrip()
        if not certain:
            return ()
        if self._again:
            return self._said_again(certain)
        is_first = bool(self._closed) and not self._current
        self._current.append(certain)
        return [Text((_BETWEEN if is_first else "") + certain)] if self.is_streamed else ()

    def _said_again(self, piece: str) -> Sequence[Piece]:
        """What of a repeated turn was not sent yet."""
        expected = self._again[self._repeated : self._repeated + len(piece)]
        if not piece.startswith(expected):
            raise Diverged
        self._repeated += len(expected)
        if self._repeated < len(self._again):
            return ()
        rest = piece[len(expected) :]
        self._current, self._again, self._repeated = [self._again, rest], "", 0
        return [Text(rest)] if rest else ()

    def _answer(self, response: str) -> Sequence[Piece]:
        """The rest of the last turn, whose text is the response."""
        sent, whole = self._sent, response.strip()
        if self.is_streamed and not whole.startswith(sent):
            raise Diverged
        before = _BETWEEN if self._closed and not sent else ""
        self._again, self._current, rest = "", [whole] if whole else [], whole[len(sent) :]
        return [Text(before + rest)] if rest and self.is_streamed else ()

    def _do(self, text: str) -> Sequence[Piece]:
        self._work.append(text)
        return [Work(text)]


_TAKES: Final[Mapping[str, Callable[[Transcript, JsonObject], Sequence[Piece]]]] = MappingProxyType(
    {
        "turn": lambda so_far, data: so_far._begin(data["turn"]),
        "delta": lambda so_far, data: so_far._say(data["text"]),
        "tool_calls_start": lambda so_far, data: so_far._do("".join(map(_called, data["calls"]))),
        "tool_result": lambda so_far, data: so_far._do(f"{data['tool']}: {data['preview']}\n"),
        "paused": lambda so_far, data: [*so_far._say(_waiting(data["calls"])), End("paused")],
        "answer": lambda so_far, data: [*so_far._answer(data["response"]), End(data["stop"])],
        # without an answer before it: the chat was cancelled
        "done": lambda so_far, data: [*so_far._answer(data["response"] or so_far._sent), End("cancelled")],
        "error": lambda _, data: [Failed(data["code"], data["message"])],
    }
)
"""What follows from an event, by its name."""


def _called(call: JsonObject) -> str:
    return f"{call['tool']} {_shown(call['input'])}\n"


def _shown(arguments: JsonObject) -> str:
    text = json.dumps(arguments, default=dict, ensure_ascii=False)
    return text if len(text) <= _INPUT else text[: _INPUT - 1] + "…"


def _waiting(calls: Sequence[JsonObject]) -> str:
    """What a client is told that cannot decide."""
    asked = "".join(f"- {_called(call)}" for call in calls)
    return f"\n\n(This waits for your approval:\n{asked}A new message cancels it.)"
