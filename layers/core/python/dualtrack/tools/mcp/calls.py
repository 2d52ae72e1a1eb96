"""Runs a recorded tool call on its MCP server: the function mcp passes this to `run_tool`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.indirect_calls import FIND_TOOLS
from dualtrack.tool_values import failed
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.mcp.execute import execute_mcp_call
from dualtrack.tools.mcp.finding import found_result, searched_by

if TYPE_CHECKING:
    from dualtrack.storage.cache import CacheStore
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.mcp.config import McpServer
    from dualtrack.tools.mcp.execute import CallsTools, CallTokens
    from dualtrack.tools.running import Running


def run_mcp_call(
    running: Running,
    cache: CacheStore,
    servers: tuple[McpServer, ...],
    client: CallsTools,
    tokens: CallTokens,
) -> ToolResult:
    """Run the call with the schema that the model has seen, from the catalogue that the chat has pinned. Whether it may
    run twice is the call's own word: the agent may trust the server."""
    pinned = running.chat.pin.catalogue if running.chat.pin else ""
    catalogue = load_catalogue(cache, time.time(), version=pinned)
    if running.call.tool == FIND_TOOLS:
        return found_result(
            running.call.input["query"], searched_by(running.call.spec, catalogue.named().values())
        )
    spec = catalogue.named().get(running.call.tool)
    if spec is None:
        return failed(f"{running.call.tool} is no longer offered.")
    spec = replace(spec, repeatable=running.call.repeatable)
    servers = tuple(
        replace(server, handshake=server.handshake or server.name in catalogue.handshakes)
        for server in servers
    )
    return execute_mcp_call(spec, running.call.input, running.user, servers, client, tokens)
