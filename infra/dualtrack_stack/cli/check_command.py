"""``dualtrack check``: what a project has, or what is wrong with it, without a stack."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from dualtrack_stack.cli.command import exit_codes
from dualtrack_stack.cli.target import Missing, need
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tools.mcp.catalogue import Catalogue

    from dualtrack_stack.project.model import Project


@click.command()
def check() -> None:
    """Read the project as the local stack does, and ask its MCP servers for their tools.

    Says which tools each agent has, with their prices. A server whose token is a secret is asked without it.

    Exit codes: 0 nothing is wrong, 2 something is: each problem with file, line and what to write.
    """
    with exit_codes():
        need("local", "`dualtrack check`")
        from dualtrack.tools.mcp.failures import McpFailure  # noqa: PLC0415 - extra `local`

        from dualtrack_stack.project.read import read_project  # noqa: PLC0415 - extra `local`

        try:
            project = read_project(project_root())
            lines = [*_lines(project, _catalogue(project))]
        except (ValueError, McpFailure) as problem:
            raise Missing(str(problem)) from None
        for line in lines:
            click.echo(line)


def _catalogue(project: Project) -> Catalogue:
    """The tools of the servers. Raises `McpFailure` for one that cannot be reached, ValueError for one by command that
    does not begin."""
    from dualtrack.tools.mcp.catalogue import Catalogue  # noqa: PLC0415 - extra `local`
    from dualtrack.tools.mcp.client import McpClient  # noqa: PLC0415 - extra `local`
    from dualtrack.tools.mcp.config import parse_servers  # noqa: PLC0415 - extra `local`
    from dualtrack.tools.mcp.refresh import server_tools  # noqa: PLC0415 - extra `local`

    from dualtrack_stack.local.stack import free_port  # noqa: PLC0415 - extra `local`
    from dualtrack_stack.local.stdio_servers import running  # noqa: PLC0415 - extra `local`
    from dualtrack_stack.settings import configured  # noqa: PLC0415 - extra `local`

    client, configuration = McpClient(), configured(project, "local", os.environ)
    with running(configuration.stdio, lambda _: free_port(), os.environ) as by_command:
        servers = (*parse_servers(configuration.checked().mcp_servers), *by_command)
        found = [server_tools(client, one, lambda _: "") for one in servers]
    tools = tuple(spec for content in found for spec in content.tools)
    return Catalogue("", tools, tuple(entry for content in found for entry in content.left_out))


def _lines(project: Project, catalogue: Catalogue) -> Iterator[str]:
    from dualtrack.credits.plans import price_calls  # noqa: PLC0415 - extra `local`
    from dualtrack.indirect_calls import INDIRECT  # noqa: PLC0415 - extra `local`
    from dualtrack.profiles import all_profiles, profile_from  # noqa: PLC0415 - extra `local`
    from dualtrack.tools.registry import IN_HOUSE, in_house_specs, offered_tools, spec_from  # noqa: PLC0415 - extra `local`

    own = [profile_from(json.loads(path.read_text(encoding="utf-8"))) for path in project.profiles]
    tools = {**IN_HOUSE, **{spec["name"]: spec_from(spec) for spec in project.specs}}
    for profile in (all_profiles() | {profile.name: profile for profile in own}).values():
        offered = offered_tools(profile, in_house_specs(profile, tools), catalogue)
        priced = (
            f"{name} ({0 if name in INDIRECT else project.prices.get(spec.price_class) or price_calls([spec.price_class])[0]})"
            for name, spec in offered.items()
            if not spec.is_searched
        )
        yield f"{profile.name}: {', '.join(priced)}"
        if searched := Counter(spec.server for spec in offered.values() if spec.is_searched):
            told = ", ".join(f"{server} ({number})" for server, number in sorted(searched.items()))
            yield f"{profile.name}: found by search, since they are many: {told}"
    for entry in catalogue.left_out:
        yield f"cannot be offered: {entry.server}: {entry.name}: {entry.reason}"
    for note in project.notes:
        yield f"note: {note}"
