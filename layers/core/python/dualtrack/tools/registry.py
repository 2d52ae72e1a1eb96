"""The in-house tools, and the tools that a profile offers: those that it names, and those of its MCP servers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps
from dualtrack.runtime.imports import collecting_later
from dualtrack.text import cautious_tokens
from dualtrack.tool_rules import MAX_TOOLS
from dualtrack.tool_values import unknown
from dualtrack.tools.conversation.spec import SEARCH_CONVERSATION
from dualtrack.tools.courses.spec import GET_COURSE_OUTLINE, SEARCH_COURSE_CONTENT
from dualtrack.tools.documentation.spec import RETRIEVE_DOCUMENTATION
from dualtrack.tools.full_context import RETRIEVE_FULL_CONTEXT
from dualtrack.tools.graph.spec import GRAPH_TOOLS
from dualtrack.tools.mcp.catalogue import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.profiles import Profile
    from dualtrack.tool_values import Kind, ToolResult, ToolSpec
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


@dataclass(frozen=True, slots=True)
class Offer:
    """A profile's tools by name, in an order that never changes for the same catalogue; and the tools of servers for
    which there is no room."""

    tools: Mapping[str, ToolSpec]
    left_out: tuple[LeftOut, ...] = ()


def offered_tools(
    profile: Profile, in_house: tuple[ToolSpec, ...], catalogue: Catalogue
) -> Mapping[str, ToolSpec]:
    """The tools of the profile's offer."""
    return offer_of(profile, in_house, catalogue).tools


def offer_of(profile: Profile, in_house: tuple[ToolSpec, ...], catalogue: Catalogue) -> Offer:
    """What a profile offers: its in-house tools, which win over servers' with the same names, and its servers'.

    The servers' tools get half of the profile's context. If they need more, small servers come first: a server with
    many or large tools takes the place of its own, not of the others'.
    """
    own = {spec.name: spec for spec in in_house}
    wanted = [
        spec
        for name, spec in catalogue.named().items()
        if name not in own and ("*" in profile.mcp or spec.server in profile.mcp)
    ]
    fitting = _fitting(wanted, profile.context_tokens // 2, MAX_TOOLS - len(own))
    reason = f"the tools of servers would take more than half of the context of the agent {profile.name}"
    return Offer(
        MappingProxyType({**own, **{spec.name: spec for spec in wanted if spec.name in fitting}}),
        tuple(LeftOut(spec.server, spec.remote_name, reason) for spec in wanted if spec.name not in fitting),
    )


def _fitting(wanted: Sequence[ToolSpec], tokens: int, number: int) -> frozenset[str]:
    """The names of the tools for which there is room."""
    sizes = {spec.name: cautious_tokens(dumps([spec.description, spec.input_schema])) for spec in wanted}
    servers: Counter[str] = Counter()
    for spec in wanted:
        servers[spec.server] += sizes[spec.name]
    fitting: list[str] = []
    for spec in sorted(wanted, key=lambda spec: (servers[spec.server], spec.server)):
        tokens -= sizes[spec.name]
        if tokens >= 0 and len(fitting) < number:
            fitting.append(spec.name)
    return frozenset(fitting)
