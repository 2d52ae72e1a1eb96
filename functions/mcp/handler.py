"""One call of a tool of an MCP server, and the refresh of the servers' tools."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import time
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.clients import LazyClient
    from dualtrack.runtime.metrics import count
    from dualtrack.runtime.secrets import secret
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import QueryStores, open_stores
    from dualtrack.tools.mcp.calls import run_mcp_call
    from dualtrack.tools.mcp.client import McpClient
    from dualtrack.tools.mcp.config import parse_servers
    from dualtrack.tools.mcp.execute import CallTokens
    from dualtrack.tools.mcp.refresh import refresh_catalogue
    from dualtrack.tools.mcp.tokens import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.mcp.refresh import RefreshOutcome
    from dualtrack.tools.running import Running

logger = Logger()


settings = settings_from()
servers = parse_servers(settings.mcp_servers)
stores = open_stores(settings, QueryStores)
client = McpClient()
connections = Connections(stores.cache, LazyClient("kms"), settings.connections_key)  # type: ignore[arg-type]


def read_secret(secret_id: str) -> str:
    """A secret; one that cannot be read counts as not set, so that the other servers' tools still work."""
    try:
        value = secret(secret_id)
    except GetParameterError:
        logger.exception("A secret cannot be read", secret=secret_id)
        return ""
    if not value:
        logger.error("A secret is not set", secret=secret_id)
    return value


tokens = CallTokens(connections.token, read_secret, settings.github_secret)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"user", "chat_id", "conversation_id", "turn", "call"}`` → ``{}``; ``{"action": "refresh"}`` → the outcome."""
    if event.get("action") == "refresh":
        return refresh()
    ref = chat_ref(event)
    logger.set_correlation_id(ref.chat_id)
    return run_tool(ref, event["call"]["id"], stores, execute, context.get_remaining_time_in_millis() / 1000)


def execute(running: Running) -> ToolResult:
    """What `run_tool` runs."""
    return run_mcp_call(running, stores.cache, servers, client, tokens)


def refresh() -> dict[str, Any]:
    """List every server's tools again; a server that fails keeps its last list until that is stale."""
    done = refresh_catalogue(stores.cache, servers, client, secret=read_secret, now=time.time())
    failures = sum(server.has_failed for server in done)
    if failures:  # a metric that is sent every hour costs $0.30 a month, even if it is zero
        count("McpListingsFailed", failures)
    for server in done:
        _tell(server)
    outcomes = {server.server: server.outcome for server in done}
    logger.info("MCP tools refreshed", servers=outcomes)
    return {"servers": outcomes}


def _tell(server: RefreshOutcome) -> None:
    """Once for each change of a server's listing."""
    if server.is_new and server.left_out:
        count("McpToolsLeftOut", len(server.left_out))
        tools = {entry.name: entry.reason for entry in server.left_out}
        logger.warning("Tools cannot be offered", server=server.server, tools=tools)
    if server.is_new and server.changed:
        logger.warning("Tools have changed and are not accepted", server=server.server, tools=server.changed)
