"""The tools of a test: its own functions, and the library's as their Lambda functions run them.

What the library's tools search is empty, no course and no graph, and the services that they ask cannot be reached.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack.tool_declaration import declared
from dualtrack.tool_values import unknown
from dualtrack.tools.registry import IN_HOUSE, InHouseTools, in_house_tools, spec_from
from dualtrack.tools.running import ToolNeeds
from dualtrack_stack.tool_specs import spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dualtrack.profiles import Profile
    from dualtrack.storage.stores import Stores
    from dualtrack.tool_declaration import Declaration
    from dualtrack.tool_values import ToolResult, ToolSpec
    from dualtrack.tools.running import Running
    from dualtrack.tools.search_needs import SearchNeeds
    from dualtrack_stack.project.model import Project

_log: Final = logging.getLogger(__name__)


def declarations_of(functions: Iterable[Callable[..., Any]]) -> Mapping[str, Declaration]:
    """The tools that these functions are, by name. Raises TypeError for one without ``@tool``, ValueError for a name
    that is taken."""
    found: dict[str, Declaration] = {}
    for function in functions:
        declaration = declared(function)
        if declaration is None:
            raise TypeError(
                f"{getattr(function, '__name__', function)!r} is no tool: write @tool above its def."
            )
        if declaration.name in found or declaration.name in IN_HOUSE:
            raise ValueError(f"There is a tool {declaration.name!r} already: give this one another name.")
        found[declaration.name] = declaration
    return MappingProxyType(found)


def specs_of(project: Project, given: Mapping[str, Declaration]) -> Mapping[str, ToolSpec]:
    """What the model sees of all tools by name: the library's, the project's, and those that a test gives, which stand
    in for others of the project."""
    of_project = {spec["name"]: spec_from(spec) for spec in project.specs}
    prices = (*PRICE_CLASSES, *project.prices)
    of_test = {name: spec_from(spec_of("", tool, kind="own", prices=prices)) for name, tool in given.items()}
    return MappingProxyType({**IN_HOUSE, **of_project, **of_test})


@dataclass(frozen=True)
class Toolbox:
    """Runs any tool call of a chat. ``own``: the tools of project and test, which are told the ``settings``."""

    own: Mapping[str, Declaration]
    settings: Mapping[str, str]
    stores: Stores
    profiles: Mapping[str, Profile]

    def __call__(self, running: Running) -> ToolResult:
        name = running.call.tool
        if name in self.own:
            return self._own(running)
        run = getattr(self, f"_{IN_HOUSE[name].kind}", None) if name in IN_HOUSE else None
        return run(running) if run else unknown(name)

    def close(self) -> None:
        """End what a search has started."""
        if "_search_needs" in vars(self):
            self._search_needs.loop.close()

    @cached_property
    def _own(self) -> InHouseTools:
        return InHouseTools(self.own, self._needs, lambda: self.settings)

    @cached_property
    def _tool(self) -> InHouseTools:
        return in_house_tools("tool", self._needs)

    @cached_property
    def _search(self) -> InHouseTools:
        return in_house_tools("search", lambda: self._search_needs)

    @cached_property
    def _graph(self) -> InHouseTools:
        from dualtrack.tools.graph.library import GraphLibrary  # noqa: PLC0415 - only for a chat that uses it

        return in_house_tools("graph", GraphLibrary(self.stores.corpora, _log).needs)

    def _needs(self) -> ToolNeeds:
        return ToolNeeds(self.stores, self.profiles)

    @cached_property
    def _search_needs(self) -> SearchNeeds:
        import httpx  # noqa: PLC0415 - only for a chat that uses it
        from dualtrack.runtime.background_loop import BackgroundLoop  # noqa: PLC0415
        from dualtrack.settings import Settings  # noqa: PLC0415
        from dualtrack.tools.courses.library import CourseLibrary  # noqa: PLC0415
        from dualtrack.tools.search_needs import SearchNeeds  # noqa: PLC0415

        nowhere, loop = httpx.MockTransport(lambda _: httpx.Response(503)), BackgroundLoop()
        courses = CourseLibrary(self.stores.corpora, {}, loop, _log)
        return SearchNeeds(Settings(), self.stores, courses, loop, _log, transport=nowhere)
