"""What a tool's code is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat


@dataclass(frozen=True, slots=True)
class Running:
    """What a tool's code is told: whose chat it is, and the call with its frozen input."""

    user: str
    conversation_id: str
    chat: Chat
    call: ToolCall
