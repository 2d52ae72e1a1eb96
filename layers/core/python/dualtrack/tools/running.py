"""What a tool's code is told, and the form that it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dualtrack.tool import ToolResult

if TYPE_CHECKING:
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat


@dataclass(frozen=True, slots=True)
class Running:
    """Whose chat it is, and the call with its frozen input."""

    user: str
    conversation_id: str
    chat: Chat
    call: ToolCall


Execute: TypeAlias = Callable[[Running], ToolResult]
"""Runs whatever call a Lambda function is given."""

Runner: TypeAlias = Callable[[Running, Any], ToolResult]
"""Runs the calls of one in-house tool, with what its Lambda function has for tools of its kind."""
