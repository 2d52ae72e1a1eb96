"""What the offline model of the shared stack answers in one test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel


@dataclass(frozen=True, slots=True)
class Script:
    """The model's answers to one test's questions, which contain the test's marker."""

    model: OfflineModel
    marker: str

    @property
    def key(self) -> str:
        """The beginning of its questions; no other script matches it."""
        return f"{self.marker}:"

    def branch(self, name: str) -> Script:
        """A separate script for one of several chats of the test."""
        return Script(self.model, f"{self.marker}-{name}")

    def question(self, text: str = "Please do it.") -> str:
        """A message that the script matches."""
        return f"{self.key} {text}"

    def says(self, text: str, **more: Any) -> None:
        """The next turn answers."""
        self.model.script.add({"match": self.key, "text": text, **more})

    def asks(
        self, *calls: tuple[str, dict[str, Any]], text: str = "", thought: str = "", **more: Any
    ) -> None:
        """The next turn thinks, writes and calls tools; without calls it answers."""
        said = [{"type": "thinking", "thinking": thought}] if thought else []
        said += [{"type": "text", "text": text}] if text else []
        asked = [{"type": "tool_use", "name": name, "input": arguments} for name, arguments in calls]
        self.model.script.add({"match": self.key, "content": [*said, *asked], **more})

    def asks_in_writing(self, name: str, written: str) -> None:
        """The next turn calls a tool with exactly this input, valid or not."""
        asked = {"type": "tool_use", "name": name, "input_json": written}
        self.model.script.add({"match": self.key, "content": [asked]})

    def refuses(self, status: int, times: int = 1) -> None:
        """The service answers with an error this many times."""
        for _ in range(times):
            self.model.script.add({"match": self.key, "status": status})

    def requests(self) -> list[dict[str, Any]]:
        """The turns' requests of this test, in order."""
        bodies = [
            request.body
            for request in self.model.requests
            if request.path == "/v1/messages" and not request.refused
        ]
        return [body for body in bodies if body.get("stream") and self.key in json.dumps(body["messages"])]

    @property
    def left(self) -> int:
        """Responses that were not used."""
        return sum(response.match == self.key for response in self.model.script.pending)
