"""A chat's events as pieces of one answer (CONTRACT 10). Pure.

An answer is the texts of all turns, with a blank line between them: what the model wrote before its tools is part of
it. One that has to fit a schema is its JSON alone, once it fits. What is streamed adds up to what is returned. So text
that may still be taken back is held back, and where a repeated turn does not go on as it began, the stream ends.

A chat whose client runs tools has several answers: each ends with calls, and the next begins where they were decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.openai.client_tools import asked_calls, is_clients
from dualtrack.visible import as_json, on_a_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject

_BETWEEN: Final = "\n\n"
_NO_FIT: Final = "The answer did not fit the schema."
_INPUT: Final = 500
"""Characters of a tool's input that are shown."""


@dataclass(frozen=True, slots=True)
class AnswerText:
    """Text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolWork:
    """What our own tools do, for people to read."""

    text: str


@dataclass(frozen=True, slots=True)
class ClientCalls:
    """What the client is asked to run: ``{"id", "name", "arguments"}`` each."""

    calls: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class End:
    """The answer is complete. ``stop``: the chat's, ``tool_calls`` if the client is to run some, or ``paused`` for one
    that waits for people. ``turn``: the last one that is part of it."""

    stop: str
    turn: int


@dataclass(frozen=True, slots=True)
class FailedChat:
    """The chat failed: the code and the message of its event."""

    code: str
    message: str


Piece = AnswerText | ToolWork | ClientCalls | End | FailedChat


class Diverged(Exception):
    """A repeated turn, or the answer itself, does not go on as it was sent. The transcript then has what is true:
    `AnswerTranscript.take_again`."""


@dataclass(slots=True)
class AnswerTranscript:
    """Takes a chat's events in order. ``is_streamed``: what was returned cannot be taken back; else it is read once the
    chat has ended (`content`, `work`, `calls`). ``after``: the turn whose calls the client has run before this answer;
    ``is_json``: the answer has to fit a schema."""

    is_streamed: bool
    chat_id: str = ""
    after: int = 0
    is_json: bool = False
    calls: Sequence[Mapping[str, str]] = ()
    refusal: str = ""
    """Why there is no JSON that fits."""
    _before: str = ""
    """The text of the chat's earlier answers."""
    _is_earlier: bool = False
    """Whether what comes belongs to them."""
    _turn: int = 0
    _closed: list[str] = field(default_factory=list)
    _current: list[str] = field(default_factory=list)
    """The current turn's text."""
    _held: str = ""
    """White space at its beginning: a turn that says nothing else has no text."""
    _again: str = ""
    """What of a repeated turn was sent: it has to say it again before anything of it is new."""
    _repeated: int = 0
    """How many characters of that it has said."""
    _work: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._is_earlier = self.after > 0

    @property
    def said(self) -> str:
        """The text of all answers of the chat so far."""
        return _BETWEEN.join(filter(None, (self._before, self.content)))

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

    def take(self, event: StoredEvent, *, is_last: bool = True) -> Sequence[Piece]:
        """The pieces that follow from an event; ``is_last``: none is known behind it. Raises `Diverged`."""
        if event.event == "paused":
            return self._pause(event.data, is_last=is_last)
        if event.event == "resumed" and event.data["turn"] == self.after:
            self._before, self._is_earlier = self.content, False
            self._closed, self._current, self._held, self._again = [], [], "", ""
            self._work = []
        take = _TAKES.get(event.event)
        pieces = take(self, event.data) if take else ()
        return (
            [piece for piece in pieces if isinstance(piece, End | FailedChat)] if self._is_earlier else pieces
        )

    def _pause(self, data: JsonObject, *, is_last: bool) -> Sequence[Piece]:
        """Calls of the client end the answer, even if they were decided meanwhile: they are the answer to a retry. A
        pause for people ends it while it lasts."""
        if self._again:
            self._diverge(self._again[: self._repeated])  # it said less
        if not self._is_earlier and any(map(is_clients, data["calls"])):
            self.calls = asked_calls(self.chat_id, data["calls"])
            return [ClientCalls(self.calls), End("tool_calls", self._turn)]
        people = [call for call in data["calls"] if not is_clients(call)]
        if is_last and people and data["turn"] >= self.after:
            self._is_earlier = False
            return [*self._say(_waiting(people), is_ours=True), End("paused", self._turn)]
        return ()

    def take_again(self, event: StoredEvent) -> Sequence[Piece]:
        """The pieces of the event for which `take` raised `Diverged`, behind the text that `content` has now."""
        return () if event.event == "delta" else self.take(event, is_last=True)

    def _begin(self, turn: int) -> Sequence[Piece]:
        if turn != self._turn and self._again:
            self._diverge(self._again[: self._repeated])  # it said less
        said = self._sent
        if turn == self._turn:
            self._again, self._repeated = (said if self.is_streamed else ""), 0
        elif said:
            self._closed.append(said)
            self._again = ""
        self._turn, self._current, self._held = turn, [], ""
        return ()

    def _say(self, text: str, *, is_ours: bool = False) -> Sequence[Piece]:
        if self.is_json and not is_ours:
            return ()
        text, self._held = self._held + text, ""
        is_first = not (self._current or self._repeated)
        if is_first and not text.strip():
            self._held = text
            return ()
        if self._again:
            return self._said_again(text)
        self._current.append(text)
        return (
            [AnswerText((_BETWEEN if is_first and self._closed else "") + text)] if self.is_streamed else ()
        )

    def _said_again(self, piece: str) -> Sequence[Piece]:
        """What of a repeated turn was not sent yet."""
        expected = self._again[self._repeated : self._repeated + len(piece)]
        if not piece.startswith(expected):
            self._diverge(self._again[: self._repeated] + piece)
        self._repeated += len(expected)
        if self._repeated < len(self._again):
            return ()
        rest = piece[len(expected) :]
        self._current, self._again, self._repeated = [self._again, rest], "", 0
        return [AnswerText(rest)] if rest else ()

    def _answer(self, response: str, stop: str) -> Sequence[Piece]:
        """The rest of the last turn, whose text is the response."""
        if self.is_json and stop != "complete":
            self.refusal = _NO_FIT if stop == "invalid_output" else ""
            return ()
        sent, whole = self._sent, response
        if self.is_streamed and not whole.startswith(sent):
            self._diverge(whole)
        before = _BETWEEN if self._closed and not sent else ""
        self._again, self._current, rest = "", [whole] if whole else [], whole[len(sent) :]
        return [AnswerText(before + rest)] if rest and self.is_streamed else ()

    def _diverge(self, text: str) -> None:
        """This is the turn's text, not what was sent of it."""
        self._current, self._again, self._repeated = [text] if text else [], "", 0
        raise Diverged

    def _do(self, text: str) -> Sequence[Piece]:
        self._work.append(text)
        return [ToolWork(text)]


def said_in(events: Iterable[StoredEvent]) -> str:
    """What a chat has said in these events, its first."""
    transcript = AnswerTranscript(is_streamed=False)
    for event in events:
        transcript.take(event)
    return transcript.content


_TAKES: Final[Mapping[str, Callable[[AnswerTranscript, JsonObject], Sequence[Piece]]]] = MappingProxyType(
    {
        "turn": lambda so_far, data: so_far._begin(data["turn"]),
        "delta": lambda so_far, data: so_far._say(data["text"]),
        "tool_calls_start": lambda so_far, data: so_far._do("".join(map(_called, data["calls"]))),
        "tool_result": lambda so_far, data: so_far._do(f"{data['tool']}: {data['preview']}\n"),
        "answer": lambda so_far, data: [
            *so_far._answer(data["response"], data["stop"]),
            End(data["stop"], so_far._turn),
        ],
        # without an answer before it: the chat was cancelled
        "done": lambda so_far, data: [
            *so_far._answer(data["response"] or so_far._sent, "cancelled"),
            End("cancelled", so_far._turn),
        ],
        "error": lambda _, data: [FailedChat(data["code"], data["message"])],
    }
)
"""What follows from an event, by its name."""


def _called(call: JsonObject) -> str:
    """On one line, as it is: nothing in it is hidden, and a long input has its beginning and its end."""
    return f"{on_a_line(call['tool'], _INPUT)} {on_a_line(as_json(call['input']), _INPUT)}\n"


def _waiting(calls: Sequence[JsonObject]) -> str:
    """What a client is told that cannot decide."""
    asked = "".join(f"- {_called(call)}" for call in calls)
    return f"\n\n(This waits for your approval:\n{asked}A new message cancels it.)"
