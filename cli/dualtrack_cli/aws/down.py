"""``dualtrack aws down``: a stage with everything that it has left, out of the account."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from dualtrack_cli.aws.account import Account, Refusal
from dualtrack_cli.aws.facts import prefix
from dualtrack_cli.aws.questions import Person, Steps
from dualtrack_cli.aws.removal import Thing, empty_buckets, remove, things_of
from dualtrack_cli.aws.up import STAGES
from dualtrack_cli.command import exit_codes
from dualtrack_cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTLE_SECONDS: Final = 45 * 60.0
_POLL_SECONDS: Final = 3.0
_ATTEMPTS: Final = 2
"""A second deletion often works where the first found something that was still in use."""


def must_be_named(stage: str, given: str | None) -> str:
    """Why a stage may not be deleted like this; empty if it may."""
    if stage != "prod" or given == prefix(stage):
        return ""
    return f"{prefix(stage)} holds users' data, and a deletion cannot be undone: say which by --delete-data {prefix(stage)}."


def run_down(account: Account, stage: str, person: Person, steps: Steps) -> None:
    """List, ask, remove. What was removed before is not found any more, so a second run goes on."""
    steps.begin("What there is")
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
    steps.begin("What stacks leave behind")
    # asked anew: a stack takes most of its things along, and functions have made log groups to the last
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
        stack = _settled(account, name, steps)
        if stack is None:
            break
        account.delete_stack(name)
        _settled(account, name, steps)
        after = account.stack(name)
        if after and attempt == _ATTEMPTS:
            raise Refusal(f"{name} is {after.status}: {after.reason}\nMend that and run `down` again.")
    steps.say(f"{name} is deleted.")


def _settled(account: Account, name: str, steps: Steps) -> str | None:
    """The status once nothing is under way; None when the stack is gone."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (stack := account.stack(name)) and stack.status.endswith("_IN_PROGRESS"):
        if stack.status == "REVIEW_IN_PROGRESS":
            break
        if time.monotonic() > deadline:
            raise Refusal(f"{name} is {stack.status} for too long; look at it in CloudFormation's console.")
        steps.progress(f"{name} is {stack.status}")
        time.sleep(_POLL_SECONDS)
    return stack.status if stack else None


def _say_what_stays(account: Account, steps: Steps) -> None:
    steps.say(
        "The CDK's bootstrap (stack CDKToolkit, its bucket): other apps of this region may use it, and it costs"
    )
    steps.say("what its bucket holds. Without other apps:")
    steps.say(f"  aws cloudformation delete-stack --stack-name CDKToolkit --region {account.region}")
    steps.say("API Gateway's role for logs, which the account has once for all of its APIs.")


@click.command()
@click.option("--stage", type=click.Choice(STAGES), default="staging", show_default=True)
@click.option("--region", help="Else AWS_REGION or the profile's.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--delete-data", metavar="NAME", help="For prod: its name, dualtrack-prod, which means its data."
)
def down(stage: str, region: str | None, *, yes: bool, delete_data: str | None) -> None:
    """Delete a stage: stacks, tables, files, users, keys, secrets, logs. It is listed first. There is no way back.

    The CDK's bootstrap stays. What was broken off goes on with the next `down`.
    """
    with exit_codes():
        if problem := must_be_named(stage, delete_data):
            raise Missing(problem)
        run_down(Account(region), stage, Person(yes=yes), Steps(4))
