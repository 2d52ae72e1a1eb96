"""Runs an MCP tool call for a user: checks the arguments, finds the token, calls, returns a result for the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from dualtrack.tool_values import Source, failed
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.mcp.config import find_server
from dualtrack.tools.mcp.failures import McpFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.tool_values import ToolResult, ToolSpec
    from dualtrack.tools.mcp.config import McpServer
    from dualtrack.tools.mcp.failures import RequestFailure

CONNECT: Final = (
    'Ask the user to connect one: PUT /v1/connections/github with {"token": a fine-grained, read-only'
    " personal access token}."
)


class CallsTools(Protocol):
    """The part of `McpClient` that this module uses."""

    def call_tool(
        self, server: McpServer, spec: ToolSpec, arguments: Mapping[str, Any], token: str | None
    ) -> ToolResult:
        """One call; raises `McpFailure`."""


@dataclass(frozen=True, slots=True)
class CallTokens:
    """Where the token of a call comes from.

    ``user_token`` returns the user's GitHub token or None. ``secret`` returns a secret by its id, empty if the operator
    has not set it. ``github_secret``: the id of the deployment's own GitHub token, empty unless the operator opted in.
    """

    user_token: Callable[[str], str | None]
    secret: Callable[[str], str]
    github_secret: str = ""


class NoToken(Exception):
    """There is no token for this server; the text tells the model what to do."""


def execute_mcp_call(
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    user: str,
    servers: tuple[McpServer, ...],
    client: CallsTools,
    tokens: CallTokens,
) -> ToolResult:
    """Run a call. Errors that the model should know are returned as an error result, never raised."""
    server = find_server(servers, spec.server)
    if server is None or (server.tools and spec.remote_name not in server.tools):
        return failed(f"{spec.name} is no longer offered.")
    if problem := invalid_arguments(spec, arguments):
        return failed(problem)
    try:
        token = token_for(server, user, tokens)
    except NoToken as missing:
        return failed(str(missing))
    try:
        result = client.call_tool(server, spec, arguments, token)
    except McpFailure as failure:
        result = _failed(failure.failure, spec)
    return _redacted(_sourced(_advised(result, server), server, arguments), token)


def token_for(server: McpServer, user: str, tokens: CallTokens) -> str | None:
    """The token of a call: the user's own, else the deployment's. Raises `NoToken`."""
    if server.auth.type == "none":
        return None
    if server.auth.type == "secret":
        return _set(
            tokens.secret(server.auth.secret_id),
            f"the MCP server {server.name} is not available at the moment",
        )
    own = tokens.user_token(user)
    if own:
        return own
    missing = f"no GitHub account is connected. {CONNECT}"
    if not tokens.github_secret:
        raise NoToken(missing)
    return _set(tokens.secret(tokens.github_secret), missing)


def _set(secret: str, missing: str) -> str:
    if not secret:
        raise NoToken(missing)
    return secret


def _failed(failure: RequestFailure, spec: ToolSpec) -> ToolResult:
    if spec.repeatable or not failure.reached:
        return failed(failure.text)
    said = f"{failure.text} Whether it was carried out is not known: check before trying again."
    return replace(failed(said), outcome="unknown")


def _advised(result: ToolResult, server: McpServer) -> ToolResult:
    """Add advice to GitHub's refusals, which arrive in the result's text."""
    if not result.is_error or server.auth.type != "github_connection":
        return result
    text = result.content
    if "401 Bad credentials" in text or "401 Unauthorized" in text or "did not accept the token" in text:
        return replace(result, content=f"{text}\nGitHub did not accept the token. {CONNECT}")
    if "rate limit" in text.lower():
        advice = "GitHub's rate limit for this token is used up: do not repeat the call; say when one can."
        return replace(result, content=f"{text}\n{advice}")
    return result


def _sourced(result: ToolResult, server: McpServer, arguments: Mapping[str, Any]) -> ToolResult:
    """Add a source: GitHub's server returns no URLs, so the subject of the call is the source, by its name."""
    if result.is_error or result.sources or server.auth.type != "github_connection":
        return result
    title = _subject(arguments)
    return replace(result, sources=(Source(title),)) if title else result


def _subject(arguments: Mapping[str, Any]) -> str:
    """``octo/hello``, ``octo/hello/README.md``, ``octo/hello#7``, or the search query."""
    values = {name: str(value) for name, value in arguments.items() if isinstance(value, str | int)}
    if "owner" in values and "repo" in values:
        path = values.get("path", "").strip("/")
        number = values.get("issue_number") or values.get("pullNumber")
        return (
            f"{values['owner']}/{values['repo']}"
            + (f"/{path}" if path else "")
            + (f"#{number}" if number else "")
        )
    return f"GitHub: {values['query']}" if "query" in values else ""


def _redacted(result: ToolResult, token: str | None) -> ToolResult:
    """Remove the token from text, sources and media types: a server that echoes headers must not leak it to records."""
    if not token:
        return result

    def without(text: str) -> str:
        return text.replace(token, "[token]").replace(quote(token, safe=""), "[token]")

    return replace(
        result,
        content=without(result.content),
        sources=tuple(
            replace(source, title=without(source.title), url=without(source.url)) for source in result.sources
        ),
        media=tuple(replace(file, media_type=without(file.media_type)) for file in result.media),
    )
