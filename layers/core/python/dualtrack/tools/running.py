"""The context of a running tool call, and what the function `tool` gives its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Injected, ToolContext, ToolResult

if TYPE_CHECKING:
    from dualtrack.models.turn import ToolCall
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tool_values import ToolKind


@dataclass(frozen=True, slots=True)
class Running(Injected):
    """The chat, and the call with its frozen input."""

    user: str
    conversation_id: str
    chat: Chat
    call: ToolCall

    @property
    def context(self) -> ToolContext:
        """What a tool of anybody's may know of it."""
        return ToolContext(self.user, self.conversation_id, self.chat.chat_id)


@dataclass(frozen=True, slots=True)
class ToolNeeds(Injected):
    """What the function `tool` provides for its tools."""

    kind: ClassVar[ToolKind] = "tool"

    stores: ToolStores
    profiles: Mapping[str, Profile] = field(default_factory=all_profiles)


Execute: TypeAlias = Callable[[Running], ToolResult]
"""Runs any tool call of a Lambda function."""
