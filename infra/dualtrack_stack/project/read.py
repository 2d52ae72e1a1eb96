"""A project's folder, read and checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack.tools.mcp.config import parse_servers

from dualtrack_stack.profiles import BadProfile, long_calls, own_profiles
from dualtrack_stack.project.file import read_file
from dualtrack_stack.project.model import BadProject, Project
from dualtrack_stack.project.tools import read_tools
from dualtrack_stack.settings import BadSettings, configured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dualtrack.settings import Settings

    from dualtrack_stack.project.stdio_server import StdioServer
    from dualtrack_stack.project.tools import DeclaredTools


def read_project(root: Path, stage: str = "local", environ: Mapping[str, str] = os.environ) -> Project:
    """The project in a folder; what is checked by settings is checked by those of ``stage``, which ``environ``
    overrides. Raises `BadProject`, with a line for each problem."""
    root = root.absolute()
    file = read_file(root)
    own = file.stages[stage].own
    try:
        configuration = configured(file, stage, environ)
        settings = configuration.checked()
        tools = read_tools(root, (*PRICE_CLASSES, *file.prices), own, environ)
        if problems := [*_like_servers(tools, settings, configuration.stdio)]:
            raise BadProject("\n".join(problems))
        profiles = own_profiles(settings, root, [spec["name"] for spec in tools.specs], file.servers)
    except (BadProfile, BadSettings) as wrong:
        raise BadProject(str(wrong)) from None
    notes = (*tools.notes, *long_calls(profiles, settings, root), *_of_servers(configuration.stdio))
    return Project(root, tools.specs, file.prices, profiles, file.stages, notes)


def _of_servers(stdio: Sequence[StdioServer]) -> Iterator[str]:
    yield from (note for server in stdio if (note := server.note()))
    if stdio:
        names = ", ".join(server.name for server in stdio)
        yield (
            f"MCP servers by command run beside the local stack alone, with an open network ({names}): on AWS put them"
            " behind HTTP (docs/mcp.md#a-server-by-command-on-aws), and agents do without them until then"
        )


def _like_servers(tools: DeclaredTools, settings: Settings, stdio: Sequence[StdioServer]) -> Iterator[str]:
    """The tools that are named like those of an MCP server of the stage."""
    prefixes = {server.prefix for server in parse_servers(settings.mcp_servers)}
    prefixes |= {server.entry.prefix for server in stdio}
    if settings.github_mcp_image:
        prefixes.add("github")
    for spec, line in zip(tools.specs, tools.lines, strict=True):
        name = spec["name"]
        taken = [prefix for prefix in sorted(prefixes) if name.startswith(f"{prefix}_")]
        if taken:
            yield (
                f"{line}: tool {name!r}: names that begin with {taken[0]}_ are those of the MCP server: write another name"
            )
