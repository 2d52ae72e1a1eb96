"""``dualtrack schedules next | create | list | show | pause | resume | delete`` (docs/schedules.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from dualtrack_stack.cli.command import exit_codes, json_option, moment, print_json, report, stack_options
from dualtrack_stack.cli.id_types import id_check
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.plugins.schedules import types

schedule_argument = click.argument("schedule_id", metavar="SCHEDULE", callback=id_check("schedule_id"))


@click.group("schedules")
def commands() -> None:
    """Messages that become chats at their times, with nobody waiting."""


def times_options(command: Callable[..., None]) -> Callable[..., None]:
    """When it is due."""
    for option in (
        click.option(
            "--timezone", default="UTC", show_default=True, help="Of --cron and --at: Europe/Berlin."
        ),
        click.option("--at", help="Once: 2027-01-01T08:00:00, or with an offset."),
        click.option("--rate", help="How often: '15 minutes', '2 hours', '1 day'."),
        click.option("--cron", help="Minute, hour, day, month, weekday: '0 8 * * 1-5'."),
    ):
        command = option(command)
    return command


@commands.command("next")
@times_options
@stack_options
@json_option
def next_(*, stack: TargetOptions, as_json: bool, **wanted: str | None) -> None:
    """Show when a schedule would be due. Nothing is made."""
    body = {name: text for name, text in wanted.items() if text}
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: types.DueTimes = client.call("POST", "/v1/schedules/next", body=body)
        if as_json:
            print_json(answer)
        else:
            click.echo("\n".join(answer["next"]))


@commands.command()
@click.argument("message")
@times_options
@click.option("--name", default="", help="Shown wherever it is listed.")
@click.option("--profile", help="The agent; by default the conversation's, else `assistant`.")
@click.option("--conversation", help="The conversation to continue; by default a new one each time.")
@stack_options
@json_option
def create(
    message: str, *, conversation: str | None, stack: TargetOptions, as_json: bool, **wanted: str | None
) -> None:
    """Make a schedule that asks MESSAGE."""
    body: dict[str, Any] = {"message": message, **{name: text for name, text in wanted.items() if text}}
    if conversation:
        body["conversation_id"] = conversation
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        _show(client.call("POST", "/v1/schedules", body=body), as_json=as_json)


@commands.command("list")
@stack_options
@json_option
def list_(stack: TargetOptions, as_json: bool) -> None:
    """Show your schedules: when they are due next, and what became of the latest run."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: types.Schedules = client.call("GET", "/v1/schedules")
        if as_json:
            print_json(answer)
            return
        for schedule in answer["schedules"]:
            _print(schedule, runs=1)
        if not answer["schedules"]:
            click.echo(
                "There is no schedule. Make one: dualtrack schedules create MESSAGE --rate '1 day'", err=True
            )


@commands.command()
@schedule_argument
@stack_options
@json_option
def show(schedule_id: str, *, stack: TargetOptions, as_json: bool) -> None:
    """Show SCHEDULE with its latest runs, their chats and what these cost."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        _show(client.call("GET", f"/v1/schedules/{schedule_id}"), as_json=as_json)


@commands.command()
@schedule_argument
@stack_options
@json_option
def pause(schedule_id: str, *, stack: TargetOptions, as_json: bool) -> None:
    """Let SCHEDULE wait until it is resumed."""
    _change(schedule_id, stack, paused=True, as_json=as_json)


@commands.command()
@schedule_argument
@stack_options
@json_option
def resume(schedule_id: str, *, stack: TargetOptions, as_json: bool) -> None:
    """Let SCHEDULE go on with its next due time. What was due meanwhile is not made up for."""
    _change(schedule_id, stack, paused=False, as_json=as_json)


def _change(schedule_id: str, stack: TargetOptions, *, paused: bool, as_json: bool) -> None:
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        changed = client.call("PATCH", f"/v1/schedules/{schedule_id}", body={"paused": paused})
        _show(changed, as_json=as_json)


@commands.command()
@schedule_argument
@stack_options
def delete(schedule_id: str, *, stack: TargetOptions) -> None:
    """Delete SCHEDULE. Its chats stay."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        client.call("DELETE", f"/v1/schedules/{schedule_id}")
        click.echo(f"{schedule_id} is deleted.")


def _show(schedule: types.Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule)
    else:
        _print(schedule, runs=len(schedule["runs"]))


def _print(schedule: types.Schedule, *, runs: int) -> None:
    named = one_line(schedule["name"] or schedule["message"], 60)
    click.echo(f"{schedule['schedule_id']}  {named}  ({_times(schedule)}, {schedule['status']})")
    rows = [("asks", one_line(schedule["message"], 60))] if schedule["name"] else []
    if schedule["next"]:
        rows.append(("next", ", ".join(map(moment, schedule["next"]))))
    if schedule["error"]:
        rows.append(("refused", schedule["error"]))
    rows += [("ran" if run["chat_id"] else run["status"], _ran(run)) for run in schedule["runs"][:runs]]
    for label, value in rows:
        click.echo(f"  {label:<9}{value}")


def _times(schedule: types.Schedule) -> str:
    if schedule["rate"]:
        return f"every {schedule['rate']}"
    return f"{schedule['cron'] or schedule['at']} {schedule['timezone']}"


def _ran(run: types.ScheduledRun) -> str:
    parts = [moment(run["due_at"])]
    if run["chat_id"]:
        parts += [run["chat_id"], *([str(run["chat_status"])] if run.get("chat_status") else [])]
    if (paid := run.get("credits")) is not None:
        parts.append(f"{paid} credits")
    if run["error"]:
        parts.append(run["error"])
    return "  ".join(parts)
