"""A client of the event stream that follows CONTRACT 5 and whose connection breaks where a test says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from httpx_sse import EventSource, ServerSentEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def whole_events(received: bytes) -> Iterator[ServerSentEvent]:
    """The complete events, by httpx-sse; an event cut by the break is dropped."""
    complete = received[: received.rfind(b"\n\n") + 2] if b"\n\n" in received else b""
    response = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=complete)
    return EventSource(response).iter_sse()


@dataclass
class Reader:
    """What one client knows after any number of connections."""

    events: list[tuple[int, str, Mapping[str, Any]]] = field(default_factory=list)
    deltas: dict[int, str] = field(default_factory=dict)
    answer: str | None = None

    @property
    def last_id(self) -> int:
        """The id for the next connection's Last-Event-ID."""
        return self.events[-1][0] if self.events else 0

    @property
    def text(self) -> str:
        """The displayed text: the last turn's."""
        return self.deltas[max(self.deltas)] if self.deltas else ""

    def take(self, received: bytes | Iterable[bytes]) -> None:
        """Read one connection's bytes, up to the break."""
        whole = received if isinstance(received, bytes) else b"".join(received)
        for event in whole_events(whole):
            if event.data:
                self._apply(int(event.id), event.event, json.loads(event.data))

    def _apply(self, number: int, kind: str, data: Mapping[str, Any]) -> None:
        self.events.append((number, kind, data))
        if kind == "turn":
            self.deltas[data["turn"]] = ""  # the call is being repeated: its deltas so far are void
        elif kind == "delta":
            self.deltas[data["turn"]] += data["text"]
        elif kind == "answer":
            self.answer = data["response"]
