"""``dualtrack webhooks create | list | test | deliveries | rotate | delete`` (docs/webhooks.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from dualtrack_stack.cli.command import exit_codes, json_option, moment, print_json, report, stack_options
from dualtrack_stack.cli.id_types import id_check
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.time_type import DurationType
from dualtrack_stack.cli.transcript import one_line

from dualtrack.event_names import EVENT_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.webhooks import types

webhook_argument = click.argument("webhook_id", metavar="WEBHOOK", callback=id_check("webhook_id"))

_LISTED = 20


@click.group("webhooks")
def commands() -> None:
    """Who is told what happens to your chats. A key needs the scope hooks."""


@commands.command()
@click.argument("address", metavar="URL")
@click.option(
    "--event",
    "events",
    type=click.Choice(EVENT_NAMES),
    multiple=True,
    default=("chat.done", "chat.failed", "chat.paused"),
    show_default=True,
    help="What it is told of; several times for several.",
)
@click.option("--profile", "profiles", multiple=True, help="Only chats of this agent; by default of all.")
@stack_options
@json_option
def create(
    address: str, *, events: Sequence[str], profiles: Sequence[str], stack: TargetOptions, as_json: bool
) -> None:
    """Make a webhook that leads to URL. Its secret is shown this once."""
    body: dict[str, Any] = {"url": address, "events": [*events], "profiles": [*profiles]}
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        _show_once(client.call("POST", "/v1/webhooks", body=body), as_json=as_json)


@commands.command("list")
@stack_options
@json_option
def list_(stack: TargetOptions, as_json: bool) -> None:
    """Show your webhooks, and which of them are disabled."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: types.Webhooks = client.call("GET", "/v1/webhooks")
        if as_json:
            print_json(answer)
            return
        for webhook in answer["webhooks"]:
            _print(webhook)
        if not answer["webhooks"]:
            click.echo("There is no webhook. Make one: dualtrack webhooks create URL", err=True)


@commands.command()
@webhook_argument
@stack_options
@json_option
def test(webhook_id: str, *, stack: TargetOptions, as_json: bool) -> None:
    """Send WEBHOOK a test, which arrives within a minute and enables a disabled webhook again."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        sent: types.Delivery = client.call("POST", f"/v1/webhooks/{webhook_id}/test")
        if as_json:
            print_json(sent)
        else:
            click.echo(f"{sent['message_id']} is sent within a minute.")
            click.echo(f"What came back: dualtrack webhooks deliveries {webhook_id}", err=True)


@commands.command()
@webhook_argument
@click.option("--limit", type=click.IntRange(1, 100), default=_LISTED, show_default=True, help="How many.")
@stack_options
@json_option
def deliveries(webhook_id: str, *, limit: int, stack: TargetOptions, as_json: bool) -> None:
    """Show what WEBHOOK was told and what came back, the newest first."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: types.Deliveries = client.call(
            "GET", f"/v1/webhooks/{webhook_id}/deliveries", params={"limit": str(limit)}
        )
        if as_json:
            print_json(answer)
            return
        for delivery in answer["deliveries"]:
            click.echo(_line(delivery))
        if not answer["deliveries"]:
            click.echo("It was told nothing yet.", err=True)


@commands.command()
@webhook_argument
@click.option(
    "--overlap",
    type=DurationType(),
    default="24h",
    show_default=True,
    help="How long messages are signed by the old secret too; 0 ends it.",
)
@stack_options
@json_option
def rotate(webhook_id: str, *, overlap: int, stack: TargetOptions, as_json: bool) -> None:
    """Give WEBHOOK a new secret, which is shown this once."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer = client.call("POST", f"/v1/webhooks/{webhook_id}/rotate", body={"overlap": overlap})
        _show_once(answer, as_json=as_json)


@commands.command()
@webhook_argument
@stack_options
def delete(webhook_id: str, *, stack: TargetOptions) -> None:
    """Delete WEBHOOK, with what waits for it."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        client.call("DELETE", f"/v1/webhooks/{webhook_id}")
        click.echo(f"{webhook_id} is deleted.")


def _show_once(webhook: types.NewWebhook, *, as_json: bool) -> None:
    if as_json:
        print_json(webhook)
        return
    click.echo(webhook["secret"])
    click.echo(f"{webhook['webhook_id']}. Store the secret now: it cannot be shown again.", err=True)


def _print(webhook: types.Webhook) -> None:
    click.echo(f"{webhook['webhook_id']}  {one_line(webhook['url'], 80)}")
    click.echo(f"  {'events':<10}{', '.join(webhook['events'])}")
    if webhook["profiles"]:
        click.echo(f"  {'agents':<10}{', '.join(webhook['profiles'])}")
    if webhook["disabled_at"]:
        click.echo(f"  {'disabled':<10}{moment(webhook['disabled_at'])}: {webhook['disabled_because']}")
        click.echo(
            f"  {'':<10}A test that arrives enables it: dualtrack webhooks test {webhook['webhook_id']}"
        )
    elif webhook["failing_since"]:
        click.echo(f"  {'failing':<10}since {moment(webhook['failing_since'])}")


def _line(delivery: types.Delivery) -> str:
    came = delivery["error"] or (str(delivery["answer"]) if delivery["answer"] else "not tried yet")
    times = f", {delivery['attempts']} tries" if delivery["attempts"] > 1 else ""
    until = f", again {moment(delivery['next_at'])}" if delivery["next_at"] and delivery["attempts"] else ""
    return f"{moment(delivery['at'])}  {delivery['type']:<16}  {delivery['status']:<9}  {came}{times}{until}"
