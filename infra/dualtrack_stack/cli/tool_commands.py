"""``dualtrack tools``: the tools with their prices, and the agents; ``tools accept``: believe an MCP server anew."""

from __future__ import annotations

import textwrap
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
from dualtrack.visible import as_json, visible

from dualtrack_stack.cli.command import exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.corpora import as_admin
from dualtrack_stack.cli.target import open_target
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dualtrack import answers

    from dualtrack_stack.cli.target import TargetOptions

_WIDTH = 100


@click.group(invoke_without_command=True)
@click.option("--profile", metavar="NAME", help="Only this agent's tools.")
@stack_options
@json_option
@click.pass_context
def tools(context: click.Context, stack: TargetOptions, *, profile: str | None, as_json: bool) -> None:
    """The tools with their prices in credits, and the agents (profiles) that have them."""
    if context.invoked_subcommand:
        return
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer = client.call("GET", "/v1/tools")
    names = [entry["name"] for entry in answer["profiles"]]
    if profile is not None and profile not in names:
        raise click.UsageError(f"There is no profile {one_line(profile, 60)}; there are {', '.join(names)}.")
    if as_json:
        print_json(answer if profile is None else _of_profile(answer, profile))
        return
    for line in tool_lines(answer if profile is None else _of_profile(answer, profile)):
        click.echo(line)


@tools.command()
@click.argument("server")
@click.option("--yes", is_flag=True, help="Do not ask.")
@stack_options
def accept(stack: TargetOptions, server: str, *, yes: bool) -> None:
    """Show what SERVER, an MCP server, says of tools that are new or have changed, and accept it. Until then
    their calls ask for approval, whatever the server says of them. The token must be that of a member of the
    group admin, but on a local stack.
    """
    with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
        changed = _changed(client.call("GET", "/v1/tools"), server)
        if not changed:
            click.echo(f"Nothing of {one_line(server, 60)} waits to be accepted.")
            return
        for tool in changed:
            click.echo("\n".join(_shown_whole(tool)))
        if not yes:
            click.confirm(f"Accept {_number(changed)}", abort=True)
        where = f"/v1/admin/tools/{quote(server, safe='')}/accept"
        left = client.call("POST", where, body={"marks": [tool["mark"] for tool in changed]})["changed"]
        click.echo(f"Accepted {_number(changed)}." if not left else "The server has changed meanwhile:")
        click.echo("\n".join(changed_lines(left)), nl=bool(left))


def _changed(answer: answers.Tools, server: str) -> list[answers.ChangedTool]:
    return [tool for tool in answer.get("changed", ()) if tool["server"] == server]


def _number(changed: Sequence[answers.ChangedTool]) -> str:
    return "1 tool" if len(changed) == 1 else f"{len(changed)} tools"


def _shown_whole(tool: answers.ChangedTool) -> Iterator[str]:
    """The tool as it will be believed, with all that its server says."""
    repeated = ", may be run twice" if tool["repeatable"] else ""
    yield click.style(visible(tool["name"]), bold=True) + f"  {tool['effect']}{repeated}"
    yield textwrap.indent(visible(tool["description"]), "  ")
    yield textwrap.indent(as_json(tool["input_schema"], indent=2), "  ")
    yield ""


def _of_profile(answer: answers.Tools, profile: str) -> answers.Tools:
    own = tuple(entry for entry in answer["profiles"] if entry["name"] == profile)
    return {
        "tools": tuple(tool for tool in answer["tools"] if tool["name"] in own[0]["tools"]),
        "profiles": own,
    }


def tool_lines(answer: answers.Tools) -> Iterator[str]:
    """A table of the tools, then of the agents."""
    width = max((len(one_line(tool["name"], 60)) for tool in answer["tools"]), default=4)
    yield click.style(f"{'tool':<{width}}  credits  effect    what for", bold=True)
    for tool in answer["tools"]:
        words = one_line(tool["description"], max(30, _WIDTH - width - 21))
        yield f"{one_line(tool['name'], 60):<{width}}  {tool['price']:>7}  {tool['effect']:<8}  {words}"
    for profile in answer["profiles"]:
        yield ""
        yield (
            click.style(one_line(profile["name"], 60), bold=True) + f"  at most {profile['max_turns']} turns"
        )
        yield from _indented(profile["description"])
        yield from _indented("Tools: " + (", ".join(profile["tools"]) or "none"))
    if left_out := answer.get("left_out"):
        yield ""
        yield click.style("tools of MCP servers that cannot be offered", bold=True)
    for entry in left_out or ():
        yield from _indented(f"{entry['server']}: {entry['name']}: {entry['reason']}")
    yield from changed_lines(answer.get("changed", ()))


def changed_lines(changed: Iterable[answers.ChangedTool]) -> Iterator[str]:
    """The tools that are not accepted, by server, with the command that accepts them."""
    for server, of_server in groupby(changed, key=itemgetter("server")):
        yield ""
        yield click.style(f"new or changed: dualtrack tools accept {one_line(server, 60)}", bold=True)
        for tool in of_server:
            yield from _indented(f"{tool['name']}: {tool['description']}"[:300])


def _indented(text: str) -> list[str]:
    return textwrap.wrap(one_line(text, 2_000), _WIDTH, initial_indent="  ", subsequent_indent="  ")
