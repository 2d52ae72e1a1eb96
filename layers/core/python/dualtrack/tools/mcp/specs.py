"""Converts the tools that an MCP server lists to `ToolSpec`: name, schema, and whether they may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import freeze
from dualtrack.text import clean
from dualtrack.tool import MCP, ToolSpec, name_of
from dualtrack.tools.arguments import is_usable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.tools.mcp.config import McpServer

MAX_TOOLS: Final = 200
MAX_DESCRIPTION: Final = 4_000

_NOT_AT_TOP: Final = {"anyOf", "oneOf", "allOf"}


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server lists it. ``read_only`` and ``idempotent``: its annotations, false if absent."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool = False
    idempotent: bool = False


def offered_name(prefix: str, remote_name: str) -> str:
    """The name for the model: ``github_list_issues``. Characters that Claude refuses become ``_``."""
    return name_of(f"{prefix}_{remote_name}")


def specs_of(server: McpServer, listed: Iterable[ListedTool]) -> tuple[ToolSpec, ...]:
    """The tools of a server that this deployment offers, sorted by name, so that the same list has the same bytes.

    Left out: tools that the configuration does not allow; those with a schema for which Claude's service would refuse
    all tools (not an object schema, invalid, too large or too deep); those whose offered name is already in use; and
    those beyond `MAX_TOOLS`.
    """
    specs: dict[str, ToolSpec] = {}
    for tool in sorted(listed, key=lambda tool: tool.name):
        spec = _spec(server, tool)
        if spec and spec.name not in specs and len(specs) < MAX_TOOLS:
            specs[spec.name] = spec
    return tuple(specs[name] for name in sorted(specs))


def _spec(server: McpServer, tool: ListedTool) -> ToolSpec | None:
    if not server.allows(tool.name, read_only=tool.read_only):
        return None
    if tool.input_schema.get("type") != "object":
        return None
    # Claude refuses these at the top level of a schema; the server still checks them.
    schema = {key: value for key, value in tool.input_schema.items() if key not in _NOT_AT_TOP}
    if clean(tool.name) != tool.name or not is_usable(schema):
        return None
    return ToolSpec(
        name=offered_name(server.prefix, tool.name),
        description=clean(tool.description[:MAX_DESCRIPTION]),
        input_schema=freeze(schema),
        kind=MCP,
        price_class=server.price_class,
        repeatable=tool.read_only or tool.idempotent,
        server=server.name,
        remote_name=tool.name,
    )
