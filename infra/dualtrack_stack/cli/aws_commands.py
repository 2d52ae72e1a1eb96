"""``dualtrack aws``: a stage on AWS; here ``cost``, from its templates and counted requests, without an account."""

from __future__ import annotations

import os
import tempfile
import textwrap
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.extras import is_installed

from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.command import exit_codes, json_option, print_json, report
from dualtrack_stack.cli.target import Missing, need

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.credits.aws_cost import Line

    from dualtrack_stack.costs import StackTemplate
    from dualtrack_stack.prices import PriceTable

_IN_MODULES: Final = ("up", "synth", "doctor", "smoke", "down", "prune", "restore")
"""Commands of modules of `dualtrack_stack.cli.aws` with the same name, which load the AWS SDK."""


class _AwsCommands(click.Group):
    """Loads a command's module when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_IN_MODULES, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _IN_MODULES:
            return super().get_command(ctx, cmd_name)
        if not is_installed("deploy"):
            return _lacking(cmd_name)
        command: click.Command = getattr(import_module(f"dualtrack_stack.cli.aws.{cmd_name}"), cmd_name)
        return command


def _lacking(name: str) -> click.Command:
    """In place of a command whose module needs packages that are not installed: says which extra has them."""

    def refuse() -> None:
        with exit_codes():
            need("deploy", f"`dualtrack aws {name}`")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, anything, refuse, help="Needs the extra `deploy`.")


@click.group("aws", cls=_AwsCommands)
def aws_commands() -> None:
    """A stage on AWS."""


@aws_commands.command()
@stage_option
@region_option
@click.option("--github", is_flag=True, help="Include GitHub's MCP server, even if no image is set.")
@click.option(
    "--users", type=click.IntRange(1, 10**9), help="Print the month of so many users, and what it needs."
)
@click.option("--chats-a-day", type=click.FloatRange(0, 10**6, min_open=True), help="Of each user.")
@click.option("--model", help="Which answers. Else the stage's.")
@json_option
def cost(
    *,
    stage: str,
    region: str | None,
    github: bool,
    users: int | None,
    chats_a_day: float | None,
    model: str | None,
    as_json: bool,
) -> None:
    """What a chat costs, without the model, and a month without chats: a line for each part.

    With --users and --chats-a-day: their month, with the model's share, what runs at a time in the busiest hour, and
    AWS's first limit.

    Calculated from the stage's templates, counted requests and a dated price table; no AWS account is needed.
    """
    if (users is None) != (chats_a_day is None):
        raise click.UsageError("--users and --chats-a-day belong together.")
    if model is not None and users is None:
        raise click.UsageError(
            "--model needs --users and --chats-a-day: a chat's own lines are without the model."
        )
    with exit_codes():
        need("deploy", "`dualtrack aws cost`")
        from dualtrack_stack.prices import price_table  # noqa: PLC0415 - extra `deploy`

        table = price_table(region_of(region))
        templates = _templates(stage, with_github=github)
        if users is not None and chats_a_day is not None:
            from dualtrack_stack.cli.aws.month import show_month  # noqa: PLC0415 - extra `deploy`

            show_month(templates, stage, users, chats_a_day, model, table, as_json=as_json)
            click.echo("" if as_json else borrowed_note(table), nl=False)
            return
        bills = bills_of(templates, table.region)
        if as_json:
            print_json({"stage": stage, **table.source(), "bills": as_data(bills)})
            return
        for title, lines in bills.items():
            _show(title, lines)
        click.echo(
            f"\nDollars, on demand in {table.region}, prices of {table.read_on}, no free tier. Alarms are listed"
            "\nafter the month. Assumptions, such as seconds: infra/dualtrack_stack/costs.py."
        )
        click.echo(borrowed_note(table), nl=False)


def borrowed_note(table: PriceTable) -> str:
    """A sentence about prices of another region; empty if there are none."""
    from dualtrack_stack.prices import HOME  # noqa: PLC0415

    if not table.borrowed:
        return ""
    names = textwrap.fill(", ".join(table.borrowed), width=110, initial_indent="  ", subsequent_indent="  ")
    return (
        f"No price in {table.region} is declared for these, which are counted as in {HOME}; put yours into"
        f"\n[region.{table.region}] of infra/dualtrack_stack/prices.toml:\n{names}\n"
    )


def region_of(region: str | None) -> str:
    """The region given, else that of the environment or the profile, else the price table's own."""
    import boto3  # noqa: PLC0415 - not for the other commands

    from dualtrack_stack.prices import HOME  # noqa: PLC0415

    return region or os.environ.get("AWS_REGION") or boto3.Session().region_name or HOME


def _templates(stage: str, *, with_github: bool) -> list[StackTemplate]:
    from dualtrack_stack.costs import templates_of, unpriced  # noqa: PLC0415

    report("Synthesising the templates")
    with tempfile.TemporaryDirectory() as folder:
        try:
            templates = templates_of(stage, os.environ, with_github=with_github, folder=Path(folder))
        except ValueError as problem:  # of a setting
            raise Missing(str(problem)) from problem
    if unknown := unpriced(templates):
        report(f"Not counted, because no price is known: {', '.join(sorted(unknown))}")
    return templates


def bills_of(templates: Sequence[StackTemplate], region: str) -> Mapping[str, list[Line]]:
    """The lines of each bill by its title, at the prices of a region."""
    from dualtrack_stack.costs import (  # noqa: PLC0415
        GROWN,
        TWO_TOOLS,
        alarms_apart,
        chat_lines,
        cold_lines,
        counted,
        idle_lines,
        junk_lines,
        metric_lines,
        sizes,
        stream_lines,
        title_lines,
        user_lines,
    )

    megabytes = sizes(templates)
    idle = idle_lines(templates, region)
    without = alarms_apart(idle)
    bills = {f"A chat, {name}": chat_lines(chat, megabytes, region) for name, chat in counted().items()}
    for name in (TWO_TOOLS, GROWN):
        bills[f"A chat, {name}, every function cold"] = [
            *bills[f"A chat, {name}"],
            *cold_lines(counted()[name], megabytes, region),
        ]
    if titled := title_lines(templates, megabytes, region):
        bills["The title of a new conversation (DUALTRACK_TITLES), without its model call"] = titled
    bills["A month without chats"] = without
    if alarms := [line for line in idle if line not in without]:
        bills["Alarms of the stage, a month"] = alarms
    bills["Metrics of the functions, a month with chats"] = metric_lines(region)
    bills["Each user who signs in, a month"] = user_lines(region)
    bills["A minute of an open stream"] = stream_lines(megabytes, region)
    bills["A million requests with an API key that does not exist"] = junk_lines(megabytes, region)
    return bills


def as_data(bills: Mapping[str, list[Line]]) -> list[dict[str, Any]]:
    """``{"what", "dollars", "lines": [{"item", "amount", "price", "dollars"}]}`` of each bill."""
    from dualtrack_stack.costs import total  # noqa: PLC0415

    return [
        {
            "what": title,
            "dollars": total(lines),
            "lines": [line.as_data() for line in lines],
        }
        for title, lines in bills.items()
    ]


def _show(title: str, lines: Iterable[Line]) -> None:
    from dualtrack_stack.costs import total  # noqa: PLC0415

    lines = list(lines)
    click.echo(f"\n{click.style(title, bold=True)}")
    for line in lines:
        click.echo(f"  {line.item:<58} {line.amount:>14,.6g} × ${line.price:<14.10g} ${line.dollars:.7f}")
    click.echo(f"  {'together':<58} {'':>32} ${total(lines):.7f}")
