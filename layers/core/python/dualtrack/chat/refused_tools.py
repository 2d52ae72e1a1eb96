"""A tool of an MCP server that the model's service refuses: the chat goes on without it.

What is offered follows the service's rules as we know them (`dualtrack.tool_rules`). If the service refuses a request
all the same and names ``tools.N``, that tool leaves the catalogue, and the chat's pin names the catalogue without it:
a retry of the turn, its later turns and its summaries send the same.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.tools.mcp.catalogue import leave_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.errors import ModelRefused
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


def names_a_tool(refused: ModelRefused) -> bool:
    """Whether the service refuses the request for one of its tools."""
    return refused.status == 400 and _NAMED.match(refused.said) is not None


def refused_tool(refused: ModelRefused, offered: Mapping[str, ToolSpec]) -> ToolSpec | None:
    """The server's tool that a refusal names by its place in the request; None if it names none, or one of ours."""
    named = _NAMED.match(refused.said) if refused.status == 400 else None
    place = int(named[1]) if named else len(offered)
    tool = list(offered.values())[place] if place < len(offered) else None
    return tool if tool and tool.server else None


def go_without(stores: QueryStores, chat: Chat, tool: ToolSpec, refused: ModelRefused, before: int) -> Chat:
    """The chat with a pin without the tool, which new chats are not offered either. ``before``: refusals of the turn.

    Raises `Superseded` if another run has moved the pin.
    """
    if chat.pin is None:
        raise refused
    reason, now = f"the model's service refused it: {refused.said}", stores.clock()
    version = leave_out(stores.cache, chat.pin.catalogue, tool, reason, now, all_of=before >= SINGLY)
    return stores.chats.move_pin(chat, replace(chat.pin, catalogue=version))
