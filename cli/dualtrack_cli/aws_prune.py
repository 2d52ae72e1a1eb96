"""``dualtrack aws prune``: deletes versions of earlier releases that are no longer needed (docs/releases.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from dualtrack_cli.command import exit_codes
from dualtrack_cli.target import Missing

if TYPE_CHECKING:
    from dualtrack_cli.published_versions import Spare


@click.command()
@click.option("--stage", type=click.Choice(("staging", "prod")), default="staging", show_default=True)
@click.option(
    "--keep",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="How many of the latest versions to keep for a rollback.",
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def prune(*, stage: str, keep: int, yes: bool) -> None:
    """Delete versions of functions and workflows of earlier releases. Versions are kept if an alias names
    them, an execution runs them, or a kept workflow calls them; nothing is deleted within half an hour of a
    deployment.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - loads for this command alone

    from dualtrack_cli.published_versions import find_spare, open_account  # noqa: PLC0415 - likewise

    with exit_codes():
        try:
            account = open_account()
            spare = find_spare(account, stage, keep, datetime.now(UTC))
            _tell(spare, keep)
            if not (spare.machines or spare.functions):
                return
            if yes or click.confirm("Delete them?"):
                account.delete(spare)
                click.echo("Deleted.")
        except (BotoCoreError, ClientError) as error:
            raise Missing(f"The account cannot be read: {error}") from error


def _tell(spare: Spare, keep: int) -> None:
    for arn in spare.machines:
        click.echo(f"  {arn.rsplit(':stateMachine:', 1)[1]}")
    for function, number in spare.functions:
        click.echo(f"  {function}:{number}")
    count = len(spare.machines) + len(spare.functions)
    click.echo(f"{count} unused versions besides the latest {keep}." if count else "Nothing to delete.")
