"""``dualtrack aws down``: removes a stage from the account, with everything that its stacks leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from dualtrack_stack.cli.aws.account import AwsAccount, AwsRefusal
from dualtrack_stack.cli.aws.facts import prefix
from dualtrack_stack.cli.aws.losses import what_is_in
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.questions import Person, Steps
from dualtrack_stack.cli.aws.removal import claim_log_groups, empty_for, release, remove
from dualtrack_stack.cli.aws.things import log_groups_of, things_of
from dualtrack_stack.cli.aws.waiting import wait_until_settled
from dualtrack_stack.cli.command import exit_codes
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack_stack.cli.aws.facts import StackResource
    from dualtrack_stack.cli.aws.things import Thing, ThingKind

_ATTEMPTS: Final = 2
"""A second deletion often works if the first failed because something was still in use."""


def must_be_named(stage: str, confirmed: str | None) -> str:
    """Why the stage may not be deleted with these options; empty if it may."""
    if stage != "prod" or confirmed == prefix(stage):
        return ""
    name = prefix(stage)
    return f"{name} contains users' data, and a deletion cannot be undone: confirm with --delete-data {name}."


def run_down(account: AwsAccount, stage: str, person: Person, steps: Steps) -> None:
    """List, ask, remove. Removed resources are no longer listed, so a second run continues."""
    steps.begin("Resources of the stage")
    caller = account.caller()
    place = f"account {caller.account}, region {account.region}"
    things = [thing for thing in things_of(account, stage) if thing.is_tagged]
    if not things:
        steps.say(f"Nothing of {prefix(stage)} is in {place}.")
        _say_untagged(account, stage, steps)
        return
    for thing in things:
        held = what_is_in(account, thing)
        steps.say(f"{thing.kind:13} {thing.name} in {place}{f': {held}' if held else ''}")
    if not person.agrees(f"Delete these {len(things)} from {place}?", default=person.yes):
        raise Missing("Nothing was deleted.")
    steps.begin("Stacks")
    log_groups = _delete_stacks(account, stage, things, steps)
    steps.begin("Resources that stacks leave behind")
    # listed again: a stack deletes most of its resources, and functions create log groups until they are deleted
    left = [thing for thing in things_of(account, stage, log_groups) if thing.is_tagged]
    _remove_all(account, left, steps)
    steps.begin("What stays")
    _say_untagged(account, stage, steps)
    _say_what_stays(account, steps)


def _delete_stacks(account: AwsAccount, stage: str, things: Sequence[Thing], steps: Steps) -> frozenset[str]:
    """Returns the names of the log groups that services may have made for them."""
    log_groups: frozenset[str] = frozenset()
    for thing in things:
        if thing.kind == "stack":
            resources = account.resources(thing.name)
            made = log_groups_of(resources)
            claim_log_groups(account, stage, made)
            _delete_stack(account, thing.name, resources, steps)
            log_groups |= made
    return log_groups


def _remove_all(account: AwsAccount, things: Sequence[Thing], steps: Steps) -> None:
    """All protections go first: they can be put back, and what AWS refuses it refuses while all data is there."""
    for thing in things:
        release(account, thing)
    for thing in things:
        steps.progress(f"{thing.kind} {thing.name}")
        remove(account, thing)
    steps.say(f"{len(things)} removed.")


def _say_untagged(account: AwsAccount, stage: str, steps: Steps) -> None:
    """What looks like the stage's and was not deleted, with the command that deletes it."""
    for thing in things_of(account, stage):
        if not thing.is_tagged:
            steps.say(
                f"The {thing.kind} {thing.name}, because it does not have the stage's tags. If it is yours to delete:\n"
                f"  {_BY_HAND[thing.kind].format(thing.id)} --region {account.region}"
            )


_BY_HAND: Final[Mapping[ThingKind, str]] = {
    "stack": "aws cloudformation delete-stack --stack-name {}",
    "log group": "aws logs delete-log-group --log-group-name {}",
    "parameter": "aws ssm delete-parameter --name {}",
    "secret": "aws secretsmanager delete-secret --secret-id {}",
    "user pool": "aws cognito-idp delete-user-pool --user-pool-id {}",
    "key": "aws kms schedule-key-deletion --key-id {}",
    "vector bucket": "aws s3vectors delete-vector-bucket --vector-bucket-arn {}",
    "bucket": "aws s3 rb --force s3://{}",
    "table": "aws dynamodb delete-table --table-name {}",
}


def _delete_stack(account: AwsAccount, name: str, resources: Sequence[StackResource], steps: Steps) -> None:
    """Its buckets are emptied only now, when what imports from it and could write into them is gone."""
    for attempt in range(1, _ATTEMPTS + 1):
        if wait_until_settled(account, name, steps) is None:
            break
        empty_for(account, resources)
        account.delete_stack(name)
        after = wait_until_settled(account, name, steps)
        if after and attempt == _ATTEMPTS:
            raise AwsRefusal(f"{name} is {after.status}: {after.reason}\nFix that and run `down` again.")
    steps.say(f"{name} is deleted.")


def _say_what_stays(account: AwsAccount, steps: Steps) -> None:
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
    """Delete a stage in one region: stacks, tables, files, users, keys, secrets, logs. The resources are listed
    first, with what they hold. This cannot be undone. Other regions, what does not have the stage's tags, and the
    CDK's bootstrap stay. If interrupted, run `down` again to continue.
    """
    with exit_codes():
        if problem := must_be_named(stage, delete_data):
            raise Missing(problem)
        run_down(AwsAccount(region), stage, Person(yes=yes), Steps(4))
