"""``dualtrack aws down``: removes a stage from the account, with everything that its stacks leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from dualtrack_cli.aws.account import Account, Refusal
from dualtrack_cli.aws.facts import prefix
from dualtrack_cli.aws.options import region_option, stage_option
from dualtrack_cli.aws.questions import Person, Steps
from dualtrack_cli.aws.removal import Thing, empty_buckets, remove, things_of
from dualtrack_cli.aws.waiting import wait_until_settled
from dualtrack_cli.command import exit_codes
from dualtrack_cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

_ATTEMPTS: Final = 2
"""A second deletion often works if the first failed because something was still in use."""


def must_be_named(stage: str, confirmed: str | None) -> str:
    """Why the stage may not be deleted with these options; empty if it may."""
    if stage != "prod" or confirmed == prefix(stage):
        return ""
    name = prefix(stage)
    return f"{name} contains users' data, and a deletion cannot be undone: confirm with --delete-data {name}."


def run_down(account: Account, stage: str, person: Person, steps: Steps) -> None:
    """List, ask, remove. Removed resources are no longer listed, so a second run continues."""
    steps.begin("Resources of the stage")
    caller = account.caller()
    chat = account.stacks(stage).get("chat")
    api_id = chat.outputs.get("RestApiId", "") if chat else ""
    things = things_of(account, stage, api_id)
    if not things:
        steps.say(f"Nothing of {prefix(stage)} is in {caller.account}, {account.region}.")
        return
    for thing in things:
        steps.say(f"{thing.kind:10} {thing.name}")
    if not person.agrees(
        f"Delete these {len(things)} from the account {caller.account}?", default=person.yes
    ):
        raise Missing("Nothing was deleted.")
    steps.begin("Stacks")
    empty_buckets(account, stage)
    for thing in things:
        if thing.kind == "stack":
            _delete_stack(account, thing.name, steps)
    steps.begin("Resources that stacks leave behind")
    # listed again: a stack deletes most of its resources, and functions create log groups until they are deleted
    _remove_all(account, things_of(account, stage, api_id), steps)
    steps.begin("What stays")
    _say_what_stays(account, steps)


def _remove_all(account: Account, things: Sequence[Thing], steps: Steps) -> None:
    for thing in things:
        steps.progress(f"{thing.kind} {thing.name}")
        remove(account, thing)
    steps.say(f"{len(things)} removed.")


def _delete_stack(account: Account, name: str, steps: Steps) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        if wait_until_settled(account, name, steps) is None:
            break
        account.delete_stack(name)
        after = wait_until_settled(account, name, steps)
        if after and attempt == _ATTEMPTS:
            raise Refusal(f"{name} is {after.status}: {after.reason}\nFix that and run `down` again.")
    steps.say(f"{name} is deleted.")


def _say_what_stays(account: Account, steps: Steps) -> None:
    steps.say(
        "The CDK's bootstrap (stack CDKToolkit, its bucket): other apps in this region may use it, and it costs"
    )
    steps.say("only the storage of its bucket. If there are no other apps:")
    steps.say(f"  aws cloudformation delete-stack --stack-name CDKToolkit --region {account.region}")
    steps.say("API Gateway's role for logs, which all APIs of the account share.")


@click.command()
@stage_option
@region_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--delete-data", metavar="NAME", help="For prod: dualtrack-prod, to confirm that its data is deleted."
)
def down(stage: str, region: str | None, *, yes: bool, delete_data: str | None) -> None:
    """Delete a stage: stacks, tables, files, users, keys, secrets, logs. The resources are listed first. This
    cannot be undone. The CDK's bootstrap stays. If interrupted, run `down` again to continue.
    """
    with exit_codes():
        if problem := must_be_named(stage, delete_data):
            raise Missing(problem)
        run_down(Account(region), stage, Person(yes=yes), Steps(4))
