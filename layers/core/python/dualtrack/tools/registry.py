"""The in-house tools, and the tools that a profile offers: those that it names, and those of its MCP servers.

The in-house tools are the functions marked with `dualtrack.tool` in this package and in plug-ins, and those of the
project. What the model sees of them stands in the ``tools.json`` of this folder and of each plug-in's, which ``python
-m dualtrack_stack.tool_specs`` writes and a test compares, and in ``project.json``: offering a tool loads none of its
code.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import freeze
from dualtrack.project_file import PROJECT
from dualtrack.runtime.imports import collecting_later
from dualtrack.runtime.time_limit import within
from dualtrack.tool_values import OFF, Injected, ToolSpec, unknown
from dualtrack.tools.mcp.finding import finders, left_to_search
from dualtrack.tools.mcp.hints import believed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.profiles import Profile
    from dualtrack.tool_declaration import Declaration
    from dualtrack.tool_values import ToolKind, ToolResult
    from dualtrack.tools.mcp.catalogue import Catalogue
    from dualtrack.tools.running import Running

_log: Final = logging.getLogger(__name__)
SPECS_FILE: Final = Path(__file__).with_name("tools.json")
PLUGINS: Final = SPECS_FILE.parents[1] / "plugins"
"""`dualtrack.plugin.FOLDER`: who offers tools needs nothing else of that module."""
_NOT_SEEN: Final = frozenset({"module", "switches"})
"""What such a file says of a tool for ourselves."""


def spec_from(data: Mapping[str, Any]) -> ToolSpec:
    """A tool of such a file."""
    fields = {name: value for name, value in data.items() if name not in _NOT_SEEN}
    return ToolSpec(**{**fields, "input_schema": freeze(data["input_schema"])})


def library_tools() -> list[dict[str, Any]]:
    """The entries of all such files, as if the folders of plug-ins stood among those of this package: so the order
    does not tell what a plug-in is."""
    files = (SPECS_FILE, *PLUGINS.glob("*/tools.json"))
    found = [tool for file in files for tool in json.loads(file.read_bytes())]
    return sorted(found, key=lambda tool: tool["module"].split(".")[2:])


_TOOLS: Final = (*library_tools(), *PROJECT["tools"])
IN_HOUSE: Final[Mapping[str, ToolSpec]] = MappingProxyType({tool["name"]: spec_from(tool) for tool in _TOOLS})
"""A tool of these can be named by a profile; it is then offered, run, priced and listed."""
MODULES: Final[Mapping[str, str]] = MappingProxyType({tool["name"]: tool["module"] for tool in _TOOLS})
"""The tools' modules, imported only by the Lambda functions that run them."""
_SWITCHES: Final = {tool["name"]: tool["switches"] for tool in _TOOLS if "switches" in tool}


@dataclass(frozen=True, slots=True)
class InHouseTools:
    """Runs the calls of the in-house tools of one kind. ``tools`` by name, or why one cannot be imported; ``needs`` and
    ``settings``, which a `ToolContext` has, are called for each call."""

    tools: Mapping[str, Declaration | ImportError]
    needs: Callable[[], Injected] = Injected
    settings: Callable[[], Mapping[str, str]] = dict

    def __call__(self, running: Running) -> ToolResult:
        """The tool's result; an error result for a tool of another kind. Raises what the tool raises."""
        tool = self.tools.get(running.call.tool)
        if tool is None:
            return unknown(running.call.tool)
        if isinstance(tool, ImportError):
            raise tool
        context = replace(running.context, settings=self.settings())
        run = partial(tool.call, running.call.input, (running, context, self.needs()))
        return within(tool.seconds, run, f"tool-{running.call.id}") if tool.seconds else run()


def in_house_tools(
    kind: ToolKind,
    needs: Callable[[], Injected] = Injected,
    settings: Callable[[], Mapping[str, str]] = dict,
) -> InHouseTools:
    """What a kind's Lambda function passes to `run_tool`. Imports the tools now, when the function starts; a module
    that cannot be imported takes no other's tools with it."""
    with collecting_later():
        tools = {name: _declared(MODULES[name], name) for name, spec in IN_HOUSE.items() if spec.kind == kind}
    return InHouseTools(MappingProxyType(tools), needs, settings)


def _declared(module: str, name: str) -> Declaration | ImportError:
    from dualtrack.tool_declaration import declared  # noqa: PLC0415 - offering a tool does not need it

    try:
        found = declared(resolve_name(f"{module}:{name}"))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a project's module does
        _log.exception("%s cannot be imported", module)
        failure = ImportError(f"{module} cannot be imported")
        failure.__cause__ = error
        return failure
    assert found, f"{module}.{name} is no tool: run python -m dualtrack_stack.tool_specs"
    return found


def in_house_specs(profile: Profile, tools: Mapping[str, ToolSpec] = IN_HOUSE) -> tuple[ToolSpec, ...]:
    """The tools of these that the profile names, with what it says of them: so that is pinned with the chat's agent.

    One of the library's profiles lacks the tool of a plug-in that is not there; others are checked when they are
    packaged (``infra/dualtrack_stack/profiles.py``)."""
    return tuple(_switched(tools[name], profile) for name in profile.tools if name in tools)


def _switched(spec: ToolSpec, profile: Profile) -> ToolSpec:
    told = {switch: OFF for switch in _SWITCHES.get(spec.name, ()) if not getattr(profile, switch)}
    if MODULES.get(spec.name, "").startswith("dualtrack.plugins."):
        told |= profile.options
    return replace(spec, options=MappingProxyType(told)) if told else spec


def offered_tools(
    profile: Profile, in_house: tuple[ToolSpec, ...], catalogue: Catalogue
) -> Mapping[str, ToolSpec]:
    """What a profile offers, by name, in an order that never changes for the same catalogue: its in-house tools, which
    win over servers' with the same names, and its servers'. If there are too many for a request, whole servers are left
    to a search (`dualtrack.tools.mcp.finding`): theirs are marked, behind the two tools that find and call them."""
    own = {spec.name: spec for spec in in_house}
    wanted = [
        believed(spec, profile)
        for name, spec in catalogue.named().items()
        if name not in own and ("*" in profile.mcp or spec.server in profile.mcp)
    ]
    left = left_to_search(len(own), wanted, profile.context_tokens)
    searched = [replace(spec, is_searched=True) for spec in wanted if spec.server in left]
    named = [*(spec for spec in wanted if spec.server not in left), *searched]
    return MappingProxyType(
        {**own, **(finders(searched) if searched else {}), **{spec.name: spec for spec in named}}
    )
