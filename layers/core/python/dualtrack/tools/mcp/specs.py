"""Converts the tools that an MCP server lists to `ToolSpec`, in a form that the Messages API accepts."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, freeze, thaw
from dualtrack.text import clean, one_line, preview
from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import MAX_DESCRIPTION, MAX_NAME, MAX_SERVER_TOOLS, name_of
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.mcp.catalogue import LeftOut, ServerTools
from dualtrack.tools.mcp.hints import READ_ONLY, cautious_effect
from dualtrack.tools.mcp.legal import NoLegalFormError, legal_names, legal_schema
from dualtrack.tools.registry import IN_HOUSE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.tools.mcp.config import McpServer

MAX_SERVER_BYTES: Final = 300_000
"""Of a server's tools, each compressed by itself: together, as they are stored, they have less, and an item of DynamoDB
has 400 KB."""
MAX_LEFT_OUT: Final = 50
"""Tools that are listed as left out; the rest are counted."""
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server lists it. ``hints``: the annotations that `dualtrack.tools.mcp.hints` reads, as far as they
    are there. ``problem``: why it cannot be offered, however it is configured; empty if nothing is known."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    hints: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ServerListing:
    """What a server lists. ``handshake``: it speaks an older protocol, whose calls begin with one."""

    tools: tuple[ListedTool, ...]
    handshake: bool = False


def specs_of(server: McpServer, listed: Iterable[ListedTool], *, handshake: bool = False) -> ServerTools:
    """The tools of a server that this deployment offers, sorted by name, so that the same list has the same bytes; and
    those that it cannot offer, with the reason. What the configuration does not allow is neither.

    A tool gets a legal name and legal properties; built-in tools keep their names.
    """
    allowed = [
        tool
        for tool in listed
        if tool.problem or server.allows(tool.name, read_only=tool.hints.get(READ_ONLY, False))
    ]
    names = _names(server, (tool for tool in allowed if not tool.problem))
    specs: dict[str, ToolSpec] = {}
    left_out: list[LeftOut] = []
    room = MAX_SERVER_BYTES
    for tool in sorted(allowed, key=lambda tool: tool.name):
        try:
            spec = _spec(server, tool, names)
            room -= _checked(spec, specs, room)
        except NoLegalFormError as problem:
            left_out.append(_left_out(server, tool.name, str(problem)))
        else:
            specs[spec.name] = spec
    offered = tuple(specs[name] for name in sorted(specs))
    return ServerTools(offered, _bounded(server, left_out), handshake)


def _names(server: McpServer, tools: Iterable[ListedTool]) -> Mapping[str, str]:
    """The name for the model by the server's: ``github_list_issues``."""
    offered = (f"{server.prefix}_{tool.name}" for tool in tools if clean(tool.name) == tool.name)
    return legal_names(offered, name_of, IN_HOUSE, MAX_NAME)


def _spec(server: McpServer, tool: ListedTool, names: Mapping[str, str]) -> ToolSpec:
    if tool.problem:
        raise NoLegalFormError(tool.problem)
    if clean(tool.name) != tool.name:
        raise NoLegalFormError("its name is not valid Unicode")
    schema, renamed = legal_schema(thaw(tool.input_schema))
    return ToolSpec(
        name=names[f"{server.prefix}_{tool.name}"],
        description=clean(tool.description[:MAX_DESCRIPTION]),
        input_schema=freeze(schema),
        kind="mcp",
        price_class=server.price_class,
        repeatable=False,
        server=server.name,
        remote_name=tool.name,
        renamed=freeze(renamed),
        effect=cautious_effect(tool.hints),
        hints=tool.hints,
    )


def _checked(spec: ToolSpec, specs: Mapping[str, ToolSpec], room: int) -> int:
    """The bytes of a tool that can be offered beside the others. Raises `NoLegalFormError`."""
    if problem := broken_rule(spec.name, spec.input_schema):
        raise NoLegalFormError(problem)
    if spec.name in specs:
        raise NoLegalFormError("the server lists it twice")
    if len(specs) >= MAX_SERVER_TOOLS:
        raise NoLegalFormError(f"the server lists more than {MAX_SERVER_TOOLS} tools")
    size = len(zlib.compress(dumps([spec.name, spec.description, spec.input_schema]).encode()))
    if size > room:
        raise NoLegalFormError(f"the server's tools have more than {MAX_SERVER_BYTES:,} bytes, compressed")
    return size


def _left_out(server: McpServer, name: str, reason: str) -> LeftOut:
    return LeftOut(server.name, preview(one_line(clean(name)), _SHOWN), reason)


def _bounded(server: McpServer, left_out: list[LeftOut]) -> tuple[LeftOut, ...]:
    if len(left_out) <= MAX_LEFT_OUT:
        return tuple(left_out)
    more = LeftOut(server.name, "*", f"{len(left_out) - MAX_LEFT_OUT} more cannot be offered")
    return (*left_out[:MAX_LEFT_OUT], more)
