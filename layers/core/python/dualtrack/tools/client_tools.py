"""The tools that a client brings with its chat and runs itself (CONTRACT 7): checked as the chat is admitted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dualtrack.errors import invalid_request
from dualtrack.frozen import dumps, freeze
from dualtrack.text import cautious_tokens
from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import MAX_TOOLS
from dualtrack.tool_values import ToolSpec, sent_tools
from dualtrack.tools.registry import IN_HOUSE, in_house_specs, offered_tools

if TYPE_CHECKING:
    from dualtrack.profiles import Profile
    from dualtrack.tools.mcp.catalogue import Catalogue

MAX_CLIENT_TOOLS: Final = 20
_PART_OF_CONTEXT: Final = 4
"""They may take this part of the agent's context: a quarter; tools of MCP servers may take half."""

ClientTools: TypeAlias = Sequence[Mapping[str, Any]]
"""As a request has them: ``{"name", "description", "input_schema"}`` each, of the right types and lengths."""


def client_tools(tools: ClientTools, profile: Profile, catalogue: Catalogue) -> tuple[ToolSpec, ...]:
    """The tools by name. Raises 400, which names the field, for a tool that the model's service would refuse, for a
    name that the agent or the library has, and for too much."""
    offered = offered_tools(profile, in_house_specs(profile), catalogue)
    specs: dict[str, ToolSpec] = {}
    for place, tool in enumerate(tools):
        spec = _spec(tool)
        if problem := broken_rule(spec.name, tool["input_schema"]):
            raise invalid_request(f"tools.{place}.{problem}")
        if spec.name in IN_HOUSE or spec.name in offered:
            raise invalid_request(f"tools.{place}.name: there is a tool {spec.name} already")
        if spec.name in specs:
            raise invalid_request(f"tools.{place}.name: {spec.name} is there twice")
        specs[spec.name] = spec
    _check_size(specs, profile, len(sent_tools(offered)))
    return tuple(specs[name] for name in sorted(specs))


def _spec(tool: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(tool["name"], tool["description"], freeze(tool["input_schema"]), "client_tool")


def _check_size(specs: Mapping[str, ToolSpec], profile: Profile, offered: int) -> None:
    if offered + len(specs) >= MAX_TOOLS:  # one more may be needed to read files again
        raise invalid_request(f"tools: the agent has {offered}, and a request takes fewer than {MAX_TOOLS}")
    most = profile.context_tokens // _PART_OF_CONTEXT
    tokens = sum(cautious_tokens(dumps([spec.description, spec.input_schema])) for spec in specs.values())
    if tokens > most:
        raise invalid_request(f"tools: they take about {tokens:,} tokens; this agent has room for {most:,}")
