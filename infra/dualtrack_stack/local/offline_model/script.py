"""Scripted responses for tests: what the server answers instead of the rules, and to which request.

A request takes the first response of the queue that matches it; one marked ``always`` stays. Without a match the rules
answer. Refusals come first: a script cannot make an invalid request pass.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from . import summary, transcript, wire
from .reply import Reply, fresh_id

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["turn", "summary", "structured"]


class ScriptedResponse(BaseModel):
    """One response.

    ``match``: "any", "turn", "summary", "structured", or a part of the last question (for a summary: of the
    record). A part of a question fits turns unless ``kind`` names another kind. ``text`` is short for one
    text block. In ``content`` a tool_use without an id gets a new one, and ``input_json`` instead of its input is sent
    as it is, valid or not; a thinking block without a signature gets a valid one. ``stop_reason`` follows from the
    content if absent. ``status`` other than 200 answers with the API's error and ``retry_after`` seconds in its header.
    ``notes``: with the notes that the request asks for. Delays are in seconds. ``cut_after``, ``malformed_after`` and
    ``error_after`` count the stream events before the stream is cut (``cut``: "drop" closes the connection, "end" ends
    it as if complete), before a broken chunk, or before an error event (``error_type`` with its message, else
    overloaded_error).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: str = "any"
    kind: Kind | None = None
    always: bool = False
    text: str | None = None
    content: tuple[dict[str, Any], ...] = ()
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    status: int = 200
    error_type: str = ""
    error_message: str = "scripted"
    retry_after: float | None = None
    delay_first: float = 0.0
    delay_chunk: float | None = None
    chunk: int | None = Field(default=None, ge=1)
    notes: bool = False
    cut_after: int | None = None
    cut: Literal["drop", "end"] = "drop"
    malformed_after: int | None = None
    error_after: int | None = None

    def fits(self, kind: Kind, question: str) -> bool:
        """Whether this response is meant for such a request."""
        if self.match in ("turn", "summary", "structured"):
            return kind == self.match
        if self.match == "any":
            return self.kind in (None, kind)
        return kind == (self.kind or "turn") and self.match in question

    def reply(self) -> Reply:
        """The message to send, with new ids."""
        blocks = self.content or ({"type": "text", "text": self.text or ""},)
        asks = any(block.get("type") == "tool_use" for block in blocks)
        return Reply(
            content=tuple(_completed(block) for block in blocks),
            stop_reason=self.stop_reason or ("tool_use" if asks else "end_turn"),
            stop_sequence=self.stop_sequence,
            stop_details=self.stop_details,
            usage=self.usage,
        )


def _completed(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") == "tool_use":
        return {**block, "id": block.get("id") or fresh_id("toolu"), "input": block.get("input", {})}
    return dict(block)


def kind_of(request: wire.Request) -> Kind:
    """The kind of a request, by its contents."""
    if request.is_structured:
        return "structured"
    return "summary" if summary.is_summary_request(request) else "turn"


def question_of(request: wire.Request, kind: Kind) -> str:
    """The text in which a script's ``match`` is searched."""
    if kind == "turn":
        return transcript.read(request).question
    return "\n".join(transcript.texts(request.messages[-1].content))


class Script:
    """The queue of scripted responses. Safe to use from several threads."""

    def __init__(self, responses: Iterable[ScriptedResponse | dict[str, Any]] = ()) -> None:
        self._lock = threading.Lock()
        self._queue: list[ScriptedResponse] = []
        self.add(*responses)

    def add(self, *responses: ScriptedResponse | dict[str, Any]) -> None:
        """Append responses; raises pydantic.ValidationError for invalid ones."""
        parsed = [ScriptedResponse.model_validate(response) for response in responses]
        with self._lock:
            self._queue.extend(parsed)

    def clear(self) -> None:
        """Remove all responses."""
        with self._lock:
            self._queue.clear()

    def take(self, request: wire.Request) -> ScriptedResponse | None:
        """The response for a request, removed from the queue unless it is marked ``always``."""
        kind = kind_of(request)
        question = question_of(request, kind)
        with self._lock:
            for position, response in enumerate(self._queue):
                if response.fits(kind, question):
                    return response if response.always else self._queue.pop(position)
        return None

    @property
    def pending(self) -> tuple[ScriptedResponse, ...]:
        """The responses that have not been used yet."""
        with self._lock:
            return tuple(self._queue)
