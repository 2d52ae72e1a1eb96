"""The input of the workflow's steps: ids only (DESIGN 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


CHAT_SECONDS: Final = 15 * 60
"""How long a chat may take: the time of its workflow, the lease of its conversation, the deadline of the sweep."""


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat. ``turn`` is the last turn that was recorded when the step was requested."""

    user: str
    chat_id: str
    conversation_id: str
    turn: int = 0


def chat_ref(event: Mapping[str, Any]) -> ChatRef:
    """The chat of the payload ``{"user", "chat_id", "conversation_id", "turn"?}``."""
    return ChatRef(event["user"], event["chat_id"], event["conversation_id"], int(event.get("turn", 0)))
