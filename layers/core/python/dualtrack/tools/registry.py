"""The in-house tools, and the tools that a profile offers: those that it names, and those of its MCP servers."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.runtime.imports import collecting_later
from dualtrack.tool import unknown
from dualtrack.tools.conversation.spec import SEARCH_CONVERSATION
from dualtrack.tools.courses.spec import GET_COURSE_OUTLINE, SEARCH_COURSE_CONTENT
from dualtrack.tools.documentation.spec import RETRIEVE_DOCUMENTATION
from dualtrack.tools.full_context import RETRIEVE_FULL_CONTEXT
from dualtrack.tools.graph.spec import GRAPH_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.profiles import Profile
    from dualtrack.tool import Kind, ToolResult, ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue
    from dualtrack.tools.running import Runner, Running

IN_HOUSE: Final[Mapping[str, ToolSpec]] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            RETRIEVE_FULL_CONTEXT,
            SEARCH_CONVERSATION,
            RETRIEVE_DOCUMENTATION,
            SEARCH_COURSE_CONTENT,
            GET_COURSE_OUTLINE,
            *GRAPH_TOOLS,
        )
    }
)
"""A tool in this list can be named by a profile; it is then offered, run, priced and listed."""


@dataclass(frozen=True, slots=True)
class InHouseTools:
    """Runs the calls of the in-house tools of one kind. ``runners`` by name; ``needs`` is called for each call."""

    runners: Mapping[str, Runner]
    needs: Callable[[], Any]

    def __call__(self, running: Running) -> ToolResult:
        """The tool's result; an error result for a tool of another kind."""
        runner = self.runners.get(running.call.tool)
        return runner(running, self.needs()) if runner else unknown(running.call.tool)


def in_house_tools(kind: Kind, needs: Callable[[], Any]) -> InHouseTools:
    """What a kind's Lambda function passes to `run_tool`. Imports the tools now, when the function starts."""
    with collecting_later():
        runners = {spec.name: resolve_name(spec.runner) for spec in IN_HOUSE.values() if spec.kind == kind}
    return InHouseTools(MappingProxyType(runners), needs)


def in_house_specs(profile: Profile) -> tuple[ToolSpec, ...]:
    """The in-house tools that the profile names."""
    return tuple(IN_HOUSE[name] for name in profile.tools)


def offered_tools(
    profile: Profile, in_house: tuple[ToolSpec, ...], catalogue: Catalogue
) -> Mapping[str, ToolSpec]:
    """The profile's tools by name, in an order that never changes for the same catalogue."""
    mcp = [spec for spec in catalogue.tools if "*" in profile.mcp or spec.server in profile.mcp]
    return MappingProxyType({spec.name: spec for spec in (*in_house, *mcp)})
