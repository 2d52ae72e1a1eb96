"""``dualtrack tools``: the tools with their prices, and the agents."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from dualtrack_stack.cli.command import exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.target import open_target
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack import answers

    from dualtrack_stack.cli.target import TargetOptions

_WIDTH = 100


@click.command()
@click.option("--profile", metavar="NAME", help="Only this agent's tools.")
@stack_options
@json_option
def tools(stack: TargetOptions, *, profile: str | None, as_json: bool) -> None:
    """The tools with their prices in credits, and the agents (profiles) that have them."""
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


def _indented(text: str) -> list[str]:
    return textwrap.wrap(one_line(text, 2_000), _WIDTH, initial_indent="  ", subsequent_indent="  ")
