"""``dualtrack aws prune``: deletes versions of earlier releases that are no longer needed (docs/releases.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.rolled_back import clear_rolled_back
from dualtrack_stack.cli.aws.versions import delete, find_spare
from dualtrack_stack.cli.command import exit_codes

if TYPE_CHECKING:
    from dualtrack_stack.cli.aws.versions import Spare


@click.command()
@stage_option
@region_option
@click.option(
    "--keep",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="How many of the latest versions to keep for a rollback.",
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.option(
    "--rolled-back",
    is_flag=True,
    help="Delete instead, without asking, what a rolled-back deployment has left; wait for its last chats.",
)
def prune(stage: str, region: str | None, keep: int, *, yes: bool, rolled_back: bool) -> None:
    """Delete versions of functions and workflows of earlier releases. Versions are kept if an alias names
    them, an execution runs them, or a kept workflow calls them; nothing is deleted within half an hour of a
    deployment. With --rolled-back, before a deployment: versions that are newer than the deployed ones.
    """
    with exit_codes():
        account = AwsAccount(region)
        if rolled_back:
            clear_rolled_back(account, stage, click.echo)
            return
        spare = find_spare(account, stage, keep, datetime.now(UTC))
        _tell(spare, keep)
        if (spare.machines or spare.functions) and (yes or click.confirm("Delete them?")):
            delete(account, spare)
            click.echo("Deleted.")


def _tell(spare: Spare, keep: int) -> None:
    for arn in spare.machines:
        click.echo(f"  {arn.rsplit(':stateMachine:', 1)[1]}")
    for function, number in spare.functions:
        click.echo(f"  {function}:{number}")
    count = len(spare.machines) + len(spare.functions)
    click.echo(f"{count} unused versions besides the latest {keep}." if count else "Nothing to delete.")
