"""A tool of an MCP server that the model's service refuses: the chat goes on without it.

What is offered follows the service's rules as we know them (`dualtrack.tool_rules`). If the service refuses a request
all the same and names ``tools.N``, that tool leaves the catalogue, and the chat's pin names the catalogue without it:
a retry of the turn and its later turns send the same.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.errors import ModelRefused
from dualtrack.tool_values import sent_tools
from dualtrack.tools.mcp.catalogue import leave_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import QueryStores
    from dualtrack.tool_values import ToolSpec

MOST: Final = 8
"""Requests of a turn that are refused for a tool, before the chat fails."""
SINGLY: Final = 3
"""How many tools are left out one by one; then all tools of the server whose tool is refused."""
_NAMED: Final = re.compile(r"tools\.(\d{1,4})\b")
"""How the service's words begin that are about a tool. Further behind they may quote anybody's text, which must not
choose a tool that all chats then go without."""
_ABOUT: Final = re.compile(r"tools\.\d{1,4}\.(?:custom\.)?([\w.-]{1,200}): (.*)", re.DOTALL)
"""The field of the tool that they are about, and what they say of it."""


def names_a_tool(refused: ModelRefused) -> bool:
    """Whether the service refuses the request for one of its tools."""
    return refused.status == 400 and _NAMED.match(refused.said) is not None


def refused_tool(refused: ModelRefused, offered: Mapping[str, ToolSpec]) -> ToolSpec | None:
    """The server's tool that a refusal names by its place in the request; None if it names none, or one of ours."""
    tool = _named_tool(refused, offered)
    return tool if tool and tool.server else None


def with_callers_tool(refused: ModelRefused, offered: Mapping[str, ToolSpec]) -> ModelRefused:
    """The refusal; if it is about a tool that the caller runs, in the caller's words: the tool's name, the field, and
    what the service says of it."""
    tool = _named_tool(refused, offered)
    if tool is None or tool.kind != "client_tool":
        return refused
    about = _ABOUT.match(refused.said)
    field, said = about.groups() if about else ("", refused.said)
    callers = f"the tool “{tool.name}”" + (f" ({field})" if field else "")
    return ModelRefused(str(refused), refused.status, kind=refused.kind, said=said, callers=callers)


def _named_tool(refused: ModelRefused, offered: Mapping[str, ToolSpec]) -> ToolSpec | None:
    named = _NAMED.match(refused.said) if refused.status == 400 else None
    sent = sent_tools(offered)
    place = int(named[1]) if named else len(sent)
    return sent[place] if place < len(sent) else None


def go_without(stores: QueryStores, chat: Chat, tool: ToolSpec, refused: ModelRefused, before: int) -> Chat:
    """The chat with a pin without the tool, which new chats are not offered either. ``before``: refusals of the turn.

    Raises `Superseded` if another run has moved the pin.
    """
    if chat.pin is None:
        raise refused
    reason, now = f"the model's service refused it: {refused.said}", stores.clock()
    version = leave_out(stores.cache, chat.pin.catalogue, tool, reason, now, all_of=before >= SINGLY)
    return stores.chats.move_pin(chat, replace(chat.pin, catalogue=version))
