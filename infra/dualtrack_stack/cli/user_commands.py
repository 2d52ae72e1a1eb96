"""``dualtrack users delete``: erase a user, by name or id, local or deployed."""

from __future__ import annotations

import click

from dualtrack_stack.cli.command import exit_codes, report, stack_options
from dualtrack_stack.cli.credit_commands import as_admin
from dualtrack_stack.cli.target import TargetOptions, open_target


@click.group("users")
def user_commands() -> None:
    """The users of a stack."""


@user_commands.command()
@click.argument("user", metavar="NAME_OR_ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@stack_options
def delete(stack: TargetOptions, user: str, *, yes: bool) -> None:
    """Erase a user with all their data: conversations, chats, files, connections, credits. NAME_OR_ID is a
    name or an id on a local stack, an id (sub) on a deployed one. Running chats are stopped. The ledger is kept
    anonymised for the stage's retention period. This cannot be undone.
    """
    if not yes:
        click.confirm(f"Erase {user} with all their data? This cannot be undone", abort=True)
    with exit_codes(), open_target(stack, report) as target, as_admin(target, user) as account:
        account.client.call("DELETE", account.path)
        click.echo(
            f"{user} is refused from now on. Their data is hidden and will be deleted within half an hour (a "
            f"long history takes longer)."
        )
