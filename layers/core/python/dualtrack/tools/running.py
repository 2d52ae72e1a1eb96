"""The context of a running tool call, and the signatures of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dualtrack.tool_values import ToolResult

if TYPE_CHECKING:
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat


@dataclass(frozen=True, slots=True)
class Running:
    """The chat, and the call with its frozen input."""

    user: str
    conversation_id: str
    chat: Chat
    call: ToolCall


Execute: TypeAlias = Callable[[Running], ToolResult]
"""Runs any tool call of a Lambda function."""

Runner: TypeAlias = Callable[[Running, Any], ToolResult]
"""Runs the calls of an in-house tool, with what its Lambda function provides for tools of its kind."""
