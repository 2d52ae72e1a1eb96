"""``dualtrack tools``: the tools with their prices, and the agents."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from dualtrack_cli.command import exit_codes, json_option, print_json, report, stack_options
from dualtrack_cli.target import open_target
from dualtrack_cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack_cli.target import Wanted

_WIDTH = 100


@click.command()
@click.option("--profile", metavar="NAME", help="Only this agent's tools.")
@stack_options
@json_option
def tools(stack: Wanted, *, profile: str | None, as_json: bool) -> None:
    """The tools with their prices in credits, and the agents (profiles) that have them."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        found = client.call("GET", "/v1/tools")
    names = [one["name"] for one in found["profiles"]]
    if profile is not None and profile not in names:
        raise click.UsageError(f"There is no profile {one_line(profile, 60)}; there are {', '.join(names)}.")
    if as_json:
        print_json(found if profile is None else _of_profile(found, profile))
        return
    for line in tool_lines(found if profile is None else _of_profile(found, profile)):
        click.echo(line)


def _of_profile(found: Mapping[str, Any], profile: str) -> Mapping[str, Any]:
    own = tuple(one for one in found["profiles"] if one["name"] == profile)
    return {"tools": tuple(one for one in found["tools"] if one["name"] in own[0]["tools"]), "profiles": own}


def tool_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """A table of the tools, then of the agents."""
    width = max((len(one_line(one["name"], 60)) for one in found["tools"]), default=4)
    yield click.style(f"{'tool':<{width}}  credits  what for", bold=True)
    for one in found["tools"]:
        words = one_line(one["description"], max(30, _WIDTH - width - 11))
        yield f"{one_line(one['name'], 60):<{width}}  {one['price']:>7}  {words}"
    for one in found["profiles"]:
        yield ""
        yield click.style(one_line(one["name"], 60), bold=True) + f"  at most {one['max_turns']} turns"
        yield from _indented(one["description"])
        yield from _indented("Tools: " + (", ".join(one["tools"]) or "none"))


def _indented(text: str) -> list[str]:
    return textwrap.wrap(one_line(text, 2_000), _WIDTH, initial_indent="  ", subsequent_indent="  ")
