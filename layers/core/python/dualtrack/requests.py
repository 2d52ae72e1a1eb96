"""The input of the workflow's steps: ids only (DESIGN 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_PAUSE_SECONDS: Final = 30 * 86_400
"""How long a chat may wait for a decision at most."""

AFTER_PAUSE_SECONDS: Final = 26 * 3600
"""How much longer than a pause everything lives that a paused chat needs: the sweep that ends it may be late, the chat
goes on for up to half an hour, and its events can be read for 24 hours after it."""

KEPT_FOR_PAUSES: Final = MAX_PAUSE_SECONDS + 10 * 86_400
"""How long what chats pin is kept at least, counted from the last pause of a chat that has it pinned."""


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
