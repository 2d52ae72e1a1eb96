"""The published versions of a stage's functions and state machines, and which of them are unused
(docs/releases.md). Each deployment publishes versions and deletes none. Kept are the latest ones, those that
an alias names or an execution runs, and those that the definitions of kept state machine versions call.
Nothing is deleted for some time after a deployment or a change of an alias, because a chat of the previous
release may still run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from dualtrack_cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

QUIET: Final = timedelta(minutes=30)
"""A chat has 15 minutes (CONTRACT 7), and the steps that end it the same again."""

_MACHINES: Final = ("StateMachineArn", "CorpusMachineArn")
_CALLED: Final = re.compile(r":function:([\w-]+):(\d+)")


class TooEarly(Missing):
    """A deployment is in progress or was recent; the message says when to try again."""


@dataclass(frozen=True, slots=True)
class MachineVersion:
    """``calls``: the versions of functions in its definition, ``(function, number)``."""

    arn: str
    calls: frozenset[tuple[str, int]] = frozenset()
    is_named: bool = False
    """By an alias."""

    is_running: bool = False
    """An execution that it began has not ended."""

    @property
    def number(self) -> int:
        return int(self.arn.rsplit(":", 1)[1])


@dataclass(frozen=True, slots=True)
class FunctionVersions:
    """The published versions of a function; ``named``: those that an alias gives a share."""

    function: str
    published: tuple[int, ...]
    named: frozenset[int]


@dataclass(frozen=True, slots=True)
class Spare:
    """What can go: ARNs of machines' versions, and ``(function, number)``."""

    machines: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]


def spare_versions(
    machines: Iterable[Sequence[MachineVersion]], functions: Iterable[FunctionVersions], keep: int
) -> Spare:
    """The unused versions; at least the latest ``keep`` of each state machine and function stay."""
    spare: list[str] = []
    called: set[tuple[str, int]] = set()
    for versions in machines:
        newest = sorted(versions, key=lambda one: one.number, reverse=True)[:keep]
        for one in versions:
            if one in newest or one.is_named or one.is_running:
                called |= one.calls
            else:
                spare.append(one.arn)
    return Spare(
        tuple(spare),
        tuple(
            (one.function, number)
            for one in functions
            for number in _not_newest(one.published, keep)
            if number not in one.named and (one.function, number) not in called
        ),
    )


def _not_newest(numbers: Collection[int], keep: int) -> list[int]:
    return sorted(numbers)[:-keep]


def check_quiet(stack: Mapping[str, Any], moved: Iterable[datetime], now: datetime) -> None:
    """Raises `TooEarly` while the stack changes, and until `QUIET` after it or an alias has changed
    (``moved``)."""
    status = str(stack["StackStatus"])
    if status.endswith("_IN_PROGRESS"):
        raise TooEarly(f"The stack {stack['StackName']} is {status}: prune when it is done.")
    left = max(moved) + QUIET - now
    if left > timedelta(0):
        minutes = -(-left.seconds // 60)
        raise TooEarly(
            f"The last deployment is too recent: chats may still run on the previous release. Try again in "
            f"{minutes} min."
        )


# ── the account ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Account:
    """Clients of one account and region."""

    cloudformation: Any
    step_functions: Any
    functions: Any

    def stack(self, stage: str) -> Mapping[str, Any]:
        """Raises `Missing` where nothing is deployed."""
        name = f"dualtrack-{stage}-chat"
        try:
            (found,) = self.cloudformation.describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            raise Missing(f"There is no stack {name} in this account and region.") from None
        return dict(found)

    def last_event(self, stack: Mapping[str, Any]) -> datetime:
        """When the last deployment ended."""
        events = self.cloudformation.describe_stack_events(StackName=stack["StackName"])["StackEvents"]
        return max(_utc(one["Timestamp"]) for one in events)

    def machine_versions(self, machine: str) -> tuple[list[MachineVersion], list[datetime]]:
        """A machine's versions, and when its aliases moved."""
        named, moved = self._named(machine)
        versions = _pages(
            self.step_functions.list_state_machine_versions, "stateMachineVersions", stateMachineArn=machine
        )
        arns = [str(one["stateMachineVersionArn"]) for one in versions]
        return [self._machine_version(arn, named) for arn in arns], moved

    def _named(self, machine: str) -> tuple[set[str], list[datetime]]:
        named, moved = set(), []
        listed = _pages(
            self.step_functions.list_state_machine_aliases, "stateMachineAliases", stateMachineArn=machine
        )
        for one in listed:
            alias = self.step_functions.describe_state_machine_alias(
                stateMachineAliasArn=one["stateMachineAliasArn"]
            )
            named |= {str(route["stateMachineVersionArn"]) for route in alias["routingConfiguration"]}
            moved.append(_utc(alias.get("updateDate") or alias["creationDate"]))
        return named, moved

    def _machine_version(self, arn: str, named: Collection[str]) -> MachineVersion:
        definition = self.step_functions.describe_state_machine(stateMachineArn=arn)["definition"]
        calls = frozenset((name, int(number)) for name, number in _CALLED.findall(definition))
        running = self.step_functions.list_executions(
            stateMachineArn=arn, statusFilter="RUNNING", maxResults=1
        )
        return MachineVersion(arn, calls, arn in named, bool(running["executions"]))

    def function_versions(self, function: str) -> FunctionVersions:
        listed = self.functions.get_paginator("list_versions_by_function").paginate(FunctionName=function)
        versions = [one["Version"] for page in listed for one in page["Versions"]]
        aliases = self.functions.get_paginator("list_aliases").paginate(FunctionName=function)
        named = {
            number
            for page in aliases
            for one in page["Aliases"]
            for number in (
                one["FunctionVersion"],
                *one.get("RoutingConfig", {}).get("AdditionalVersionWeights", ()),
            )
        }
        published = tuple(int(one) for one in versions if one != "$LATEST")
        return FunctionVersions(function, published, frozenset(int(one) for one in named if one != "$LATEST"))

    def delete(self, spare: Spare) -> None:
        """State machines first, so that no remaining version calls a deleted function."""
        for arn in spare.machines:
            self.step_functions.delete_state_machine_version(stateMachineVersionArn=arn)
        for function, number in spare.functions:
            self.functions.delete_function(FunctionName=function, Qualifier=str(number))


def _pages(operation: Any, items: str, **request: Any) -> list[Mapping[str, Any]]:
    """Step Functions has no paginator for these."""
    found: list[Mapping[str, Any]] = []
    while True:
        page = operation(**request)
        found += page[items]
        if not page.get("nextToken"):
            return found
        request["nextToken"] = page["nextToken"]


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def find_spare(account: Account, stage: str, keep: int, now: datetime) -> Spare:
    """What of a stage can go. Raises `TooEarly`, and `Missing` where nothing is deployed."""
    stack = account.stack(stage)
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    machines, moved = [], [account.last_event(stack)]
    for name in _MACHINES:
        versions, moves = account.machine_versions(outputs[name])
        machines.append(versions)
        moved += moves
    check_quiet(stack, moved, now)
    names = [value for key, value in outputs.items() if key.endswith("Function")]
    return spare_versions(machines, map(account.function_versions, names), keep)


def open_account() -> Account:
    """By the credentials and the region of the environment."""
    session: Any = boto3.Session()
    return Account(
        session.client("cloudformation"), session.client("stepfunctions"), session.client("lambda")
    )
