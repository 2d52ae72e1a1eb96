"""``dualtrack users delete``: erase a user, by name or id, local or deployed."""

from __future__ import annotations

import click

from dualtrack_cli.command import exit_codes, report, stack_options
from dualtrack_cli.credit_commands import as_admin
from dualtrack_cli.target import Wanted, open_target


@click.group("users")
def user_commands() -> None:
    """The users of a stack."""


@user_commands.command()
@click.argument("user", metavar="NAME_OR_ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@stack_options
def delete(stack: Wanted, user: str, *, yes: bool) -> None:
    """Erase a user with everything that is theirs: conversations, chats, files, connections, credits.

    On a local stack a name or an id, on a deployed one the id (sub). Running chats are stopped. What was spent is
    kept as amounts without the person, for the stage's retention. This cannot be undone.
    """
    if not yes:
        click.confirm(f"Erase {user} with everything that is theirs? This cannot be undone", abort=True)
    with exit_codes(), open_target(stack, report) as target, as_admin(target, user) as account:
        account.client.call("DELETE", account.path)
        click.echo(
            f"{user} is refused from now on. What is theirs is hidden, and gone within half an hour, a long history later."
        )
