"""The MCP servers of a deployment, parsed from the setting ``MCP_SERVERS`` (a JSON list).

An entry::

    {"name": "github", "url": "http://github-mcp.dualtrack.internal:8082/",
     "auth": {"type": "github_connection"}, "price_class": "github", "tool_prefix": "github",
     "tools": ["list_issues"], "headers": {"X-MCP-Toolsets": "repos,issues"}, "read_only": true}

Only ``name`` and ``url`` are required.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from dualtrack.credits.plans import CALL_PRICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.settings import Settings
    from dualtrack.tool_values import PriceClass

AuthType = Literal["none", "github_connection", "secret"]
"""No token; the user's GitHub token, else the deployment's; or a bearer token of the deployment."""

NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
PREFIX_PATTERN: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
MAX_SERVERS: Final = 20

GITHUB_READ_TOOLSETS: Final = "repos,git,issues,pull_requests"
"""Enough to read code and discussions; each further toolset costs tokens in every model call."""

_FIELDS: Final = {
    "name",
    "url",
    "auth",
    "price_class",
    "tool_prefix",
    "tools",
    "headers",
    "read_only",
    "handshake",
}
_OWN_HEADERS: Final = {"authorization", "content-type", "accept", "host", "content-length"}


@dataclass(frozen=True, slots=True)
class Auth:
    """Which token a call carries. ``secret_id``: the secret's name or ARN, only for type ``secret``."""

    type: AuthType = "none"
    secret_id: str = ""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server. ``tools``: the remote names to offer; empty for all.

    ``headers`` are sent with every request (never secrets, which are read at run time). ``read_only``: offer only tools
    that the server marks as read-only. ``handshake``: the server supports only protocols before 2026-07-28, which begin
    with a handshake; if not set, the client detects it.
    """

    name: str
    url: str
    auth: Auth = field(default_factory=Auth)
    price_class: PriceClass = "other"
    tool_prefix: str = ""
    tools: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    read_only: bool = False
    handshake: bool = False

    @property
    def prefix(self) -> str:
        """The part before the remote name: ``github`` in ``github_list_issues``."""
        return self.tool_prefix or self.name.replace("-", "_")

    def allows(self, remote_name: str, *, read_only: bool) -> bool:
        """Whether to offer a tool that the server lists."""
        return (not self.tools or remote_name in self.tools) and (read_only or not self.read_only)


def github_server(url: str, *, toolsets: str = GITHUB_READ_TOOLSETS, read_only: bool = True) -> McpServer:
    """GitHub's own MCP server; by default read-only, with `GITHUB_READ_TOOLSETS`."""
    headers = {"X-MCP-Toolsets": toolsets, **({"X-MCP-Readonly": "true"} if read_only else {})}
    auth = Auth("github_connection")
    return McpServer(
        "github", url, auth, "github", "github", headers=MappingProxyType(headers), read_only=read_only
    )


def parse_servers(text: str) -> tuple[McpServer, ...]:
    """The servers of a JSON list; none for an empty string.

    Raises ValueError with the entry's position for anything not documented above: a deployment with an invalid list
    must not start partly configured.
    """
    entries = json.loads(text) if text.strip() else []
    if not isinstance(entries, list) or len(entries) > MAX_SERVERS:
        raise ValueError(f"MCP_SERVERS must be a JSON list of at most {MAX_SERVERS} servers.")
    return together(tuple(_server(position, entry) for position, entry in enumerate(entries)))


def checked_servers(text: str, settings: Settings) -> str:
    """The JSON of the servers of ``MCP_SERVERS``, behind GitHub's if its address is given. Raises ValueError."""
    github = (github_server(settings.github_mcp_url),) if settings.github_mcp_url else ()
    return dump_servers(together((*github, *parse_servers(text))))


def together(servers: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
    """The servers, if each tool's name says whose it is. Raises ValueError."""
    for one, other in itertools.combinations(servers, 2):
        if one.name == other.name:
            raise ValueError(
                f"MCP_SERVERS: two servers have the same name {one.name} (GITHUB_MCP_URL and GITHUB_MCP_IMAGE"
                " each add a server github)."
            )
        if f"{one.prefix}_".startswith(f"{other.prefix}_") or f"{other.prefix}_".startswith(f"{one.prefix}_"):
            raise ValueError(
                f"MCP_SERVERS: the tool prefixes {one.prefix} of {one.name} and {other.prefix} of {other.name}"
                " overlap: set another tool_prefix."
            )
    return servers


def dump_servers(servers: tuple[McpServer, ...]) -> str:
    """The setting's JSON for these servers, the inverse of `parse_servers`."""
    return json.dumps([_entry(server) for server in servers], separators=(",", ":"))


def find_server(servers: tuple[McpServer, ...], name: str) -> McpServer | None:
    """The server with this name, or None."""
    return next((server for server in servers if server.name == name), None)


def parse_entry(entry: Mapping[str, Any]) -> McpServer:
    """One server. Raises ValueError for anything not documented above."""
    if unknown := sorted(set(entry) - _FIELDS):
        raise ValueError(f"there is no field {unknown[0]}; there are {', '.join(sorted(_FIELDS))}.")
    return McpServer(
        name=_matching(NAME_PATTERN, entry.get("name"), "name"),
        url=_url(entry.get("url")),
        auth=_auth(entry.get("auth", {"type": "none"})),
        price_class=_one_of(tuple(CALL_PRICES), entry.get("price_class", "other"), "price_class"),
        tool_prefix=_prefix(entry.get("tool_prefix", "")),
        tools=_tools(entry.get("tools", [])),
        headers=_headers(entry.get("headers", {})),
        read_only=_flag(entry.get("read_only", False), "read_only"),
        handshake=_flag(entry.get("handshake", False), "handshake"),
    )


def _server(position: int, entry: Any) -> McpServer:
    if not isinstance(entry, dict) or not set(entry) <= _FIELDS:
        raise ValueError(f"MCP_SERVERS[{position}] must be an object with only the fields {sorted(_FIELDS)}.")
    try:
        return parse_entry(entry)
    except ValueError as error:
        raise ValueError(f"MCP_SERVERS[{position}]: {error}") from error


def _matching(pattern: re.Pattern[str], value: Any, what: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{what} must match {pattern.pattern}.")
    return value


def _one_of(allowed: tuple[Any, ...], value: Any, what: str) -> Any:
    if value not in allowed:
        raise ValueError(f"{what} must be one of {', '.join(allowed)}.")
    return value


def _url(value: Any) -> str:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise ValueError("url must be an http(s) address without credentials.")
    return str(value)


def _auth(value: Any) -> Auth:
    if not isinstance(value, dict) or not set(value) <= {"type", "secret_id"}:
        raise ValueError("auth must be an object with type and secret_id.")
    kind: AuthType = _one_of(get_args(AuthType), value.get("type"), "auth.type")
    secret_id = value.get("secret_id", "")
    if not isinstance(secret_id, str) or bool(secret_id) != (kind == "secret"):
        raise ValueError("auth.secret_id is required for auth.type secret, and not allowed for any other.")
    return Auth(kind, secret_id)


def _prefix(value: Any) -> str:
    return _matching(PREFIX_PATTERN, value, "tool_prefix") if value else ""


def _tools(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValueError("tools must be a list of names.")
    return tuple(value)


def _headers(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("headers must be an object of strings.")
    reserved = {name for name in value if name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-")}
    if reserved:
        raise ValueError(f"headers must not set {', '.join(sorted(reserved))}.")
    return MappingProxyType(dict(value))


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{what} must be true or false.")  # noqa: TRY004 - one error type for the whole setting
    return value


def _entry(server: McpServer) -> dict[str, Any]:
    auth = {
        "type": server.auth.type,
        **({"secret_id": server.auth.secret_id} if server.auth.secret_id else {}),
    }
    return {
        "name": server.name,
        "url": server.url,
        "auth": auth,
        "price_class": server.price_class,
        "tool_prefix": server.tool_prefix,
        "tools": list(server.tools),
        "headers": dict(server.headers),
        "read_only": server.read_only,
        "handshake": server.handshake,
    }
