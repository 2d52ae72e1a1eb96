"""What the users of a storm do with their chats that wait for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.drivers.invariants import turns_of
from tests.servers.tool_server import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores

WRITE: Final = f"{NAME}_write"
"""Asks each time, unless its conversation allows it."""

LOOK_UP: Final[Mapping[str, Any]] = {
    "name": "look_up",
    "description": "Looks a word up on the user's own machine.",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}
"""A tool that the client runs."""

HOW: Final = ("nobody", "decline", "cancel", "approve", "approve", "decline", "edit", "edit", "allow")
"""In an order in which the writes of a short storm are approved."""
PAUSE_SECONDS: Final = 60
"""How long the storm's chats wait: the least that a profile may say."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of the calls of a chat that wait. ``how``: one of `HOW`; ``marker``: what its call is to write."""

    how: str
    marker: str

    @property
    def edited(self) -> str:
        """What the call is to write as it is edited."""
        return f"{self.marker}-edited"

    @property
    def withheld(self) -> bool:
        """Whether what the model wants to be written is never approved as it stands."""
        return self.how not in ("approve", "allow")

    def decision(self, call: ToolCall) -> dict[str, Any]:
        """The decision on an open call, as the API takes it."""
        if self.how == "decline":
            return {"id": call.id, "approve": False, "reason": "Not in this weather."}
        if call.asks == "client_tool":
            return {"id": call.id, "result": f"{self.marker} is a word."}
        if call.asks == "question":
            return {"id": call.id, "answer": self.marker}
        if self.how == "edit":
            return {"id": call.id, "input": {"name": self.edited}}
        return {"id": call.id, "approve": True} | ({"for": "conversation"} if self.how == "allow" else {})


def asking(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The profile with a tool that asks for leave each time, and with questions to the user."""
    return {
        **profile,
        "approval": {"default": "never", "ask": [WRITE]},
        "tools": [*profile["tools"], "ask_user"],
        "pause_seconds": PAUSE_SECONDS,
    }


@dataclass(frozen=True, slots=True)
class Effects:
    """What chats say of what they wrote, by name: ``begun`` and ``certain`` calls. One that is not certain was cut
    while it ran: it is ``unknown``."""

    begun: Counter[str]
    certain: Counter[str]

    def faults(self, name: str, written: int) -> Iterator[str]:
        """Where they differ from how often the server wrote it."""
        if not self.certain[name] <= written <= self.begun[name]:
            yield f"{name} was written {written} times; {self.begun[name]} begun, {self.certain[name]} certain"


def effects_of(stores: Stores, chats: Sequence[Chat]) -> Effects:
    """Of all calls of `WRITE`. That what has begun is charged and has a record, `chat_faults` says."""
    begun, certain = Counter[str](), Counter[str]()
    for chat in chats:
        marks = stores.chats.marks(chat)
        records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
        told = {record.record_id: record.call for record in records if record.call}
        for call in (call for turn in turns_of(stores, chat) for call in turn.runnable):
            if call.tool == WRITE and marks.get(call.id):
                ended = told.get(call.id)
                name = str((ended or call).input["name"])
                begun[name] += 1
                certain[name] += ended is not None and ended.status == "done"
    return Effects(begun, certain)
