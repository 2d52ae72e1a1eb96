"""Runs a recorded tool call on its MCP server: the github function passes this to `run_tool`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.tool_values import failed
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.mcp.execute import execute_mcp_call

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.mcp.execute import McpDeps
    from dualtrack.tools.running import Running


def run_mcp_call(running: Running, stores: Stores, deps: McpDeps) -> ToolResult:
    """Run the call with the schema that the model has seen, from the catalogue that the chat has pinned."""
    pinned = running.chat.pin.catalogue if running.chat.pin else ""
    catalogue = load_catalogue(stores.cache, stores.clock(), version=pinned)
    spec = catalogue.named().get(running.call.tool)
    if spec is None:
        return failed(f"{running.call.tool} is no longer offered.")
    return execute_mcp_call(spec, running.call.input, running.user, deps)
