"""``dualtrack keys create | list | rotate | revoke``: API keys of the caller (docs/keys.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click
from dualtrack.vocabulary import Scope

from dualtrack_stack.cli import id_types
from dualtrack_stack.cli.command import exit_codes, json_option, moment, print_json, report, stack_options
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.time_type import DurationType
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers

key_argument = click.argument("key_id", metavar="KEY", callback=id_types.KEY)


@click.group("keys")
def key_commands() -> None:
    """API keys, with which programs call a stack. A key itself manages no keys: these need an ID token."""


@key_commands.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(Scope)),
    multiple=True,
    default=("chat",),
    show_default=True,
    help="What it may do; several times for several.",
)
@click.option("--profile", "profiles", multiple=True, help="An agent that it may use; by default all.")
@click.option("--credits-day", type=click.IntRange(min=0), help="Cap: credits a day (UTC).")
@click.option("--credits-total", type=click.IntRange(min=0), help="Cap: credits in all.")
@click.option("--dollars-day", type=click.FloatRange(min=0), help="Cap: US dollars of models a day (UTC).")
@click.option("--dollars-total", type=click.FloatRange(min=0), help="Cap: US dollars of models in all.")
@click.option("--expires-in", type=DurationType(), help="Its life: 24h, 30d; by default it does not expire.")
@click.option("--for-end-users", is_flag=True, help="A service's: each request names an end user.")
@stack_options
@json_option
def create(
    name: str,
    *,
    scopes: Sequence[str],
    profiles: Sequence[str],
    expires_in: int | None,
    for_end_users: bool,
    stack: TargetOptions,
    as_json: bool,
    **caps: float | None,
) -> None:
    """Make a key called NAME. It is shown this once."""
    body: dict[str, Any] = {"name": name, "scopes": [*scopes], "profiles": [*profiles]}
    body["caps"] = {cap: value for cap, value in caps.items() if value is not None}
    if expires_in is not None:
        body["expires_in"] = expires_in
    if for_end_users:
        body["acts_for"] = "any"
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        _show_once(client.call("POST", "/v1/keys", body=body), as_json=as_json)


@key_commands.command("list")
@stack_options
@json_option
def list_(stack: TargetOptions, as_json: bool) -> None:
    """Show your keys: what each may do, may spend, has used and holds, and its last request."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: answers.Keys = client.call("GET", "/v1/keys")
        if as_json:
            print_json(answer)
        for key in () if as_json else answer["keys"]:
            _print(key)
        if not answer["keys"] and not as_json:
            click.echo("There is no key. Make one: dualtrack keys create NAME", err=True)


@key_commands.command()
@key_argument
@click.option(
    "--overlap",
    type=DurationType(),
    default="24h",
    show_default=True,
    help="How long the old secret still holds; 0 ends it.",
)
@stack_options
@json_option
def rotate(key_id: str, *, overlap: int, stack: TargetOptions, as_json: bool) -> None:
    """Give KEY a new secret, which is shown this once."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer = client.call("POST", f"/v1/keys/{key_id}/rotate", body={"overlap": overlap})
        _show_once(answer, as_json=as_json)


@key_commands.command()
@key_argument
@click.option("--cancel", is_flag=True, help="Also cancel the chats that run under it.")
@stack_options
def revoke(key_id: str, *, cancel: bool, stack: TargetOptions) -> None:
    """Refuse KEY from the next request on."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        client.call("DELETE", f"/v1/keys/{key_id}", params={"cancel": "true"} if cancel else None)
        click.echo(f"{key_id} is revoked.")


def _show_once(key: answers.NewKey, *, as_json: bool) -> None:
    if as_json:
        print_json(key)
        return
    click.echo(key["key"])
    click.echo(f"{key['key_id']}. Store it now: it cannot be shown again.", err=True)


def _print(key: answers.Key) -> None:
    used, may = key["used"], [*key["scopes"], *(["end users"] if key["acts_for"] else [])]
    click.echo(f"{key['key_id']}  {one_line(key['name'], 60)}  ({', '.join(may)})")
    rows = [
        ("today", _spent(used["credits_day"], used["dollars_day"])),
        ("in all", _spent(used["credits_total"], used["dollars_total"])),
        ("caps", _caps(key["caps"])),
        ("last used", moment(key["last_used_at"]) if key["last_used_at"] else "never"),
    ]
    if held := key["held"]["credits_total"]:
        rows.insert(2, ("held", f"{held:,} credits"))
    if key["expires_at"]:
        rows.append(("expires", moment(key["expires_at"])))
    for label, value in rows:
        click.echo(f"  {label:<11}{value}")


def _spent(credits_: int, dollars: float) -> str:
    return f"{credits_:,} credits, ${dollars:,.4f}"


def _caps(caps: answers.KeyCaps) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in caps.items()) or "none"
