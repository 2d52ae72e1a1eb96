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

from dualtrack.chat_times import LONGEST

from dualtrack_stack.cli.aws.account import plainly
from dualtrack_stack.cli.aws.facts import prefix
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dualtrack_stack.cli.aws.account import AwsAccount
    from dualtrack_stack.cli.aws.facts import Stack

QUIET: Final = timedelta(seconds=LONGEST.chat + 15 * 60)
"""The longest chat (CONTRACT 7), and the steps that end it another 15 minutes."""

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
    """The unused versions: ARNs of machines' versions, and ``(function, number)``."""

    machines: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]


def spare_versions(
    machines: Iterable[Sequence[MachineVersion]], functions: Iterable[FunctionVersions], keep: int
) -> Spare:
    """The unused versions; at least the latest ``keep`` of each state machine and function stay."""
    spare: list[str] = []
    called: set[tuple[str, int]] = set()
    for versions in machines:
        newest = sorted(versions, key=lambda version: version.number, reverse=True)[:keep]
        for version in versions:
            if version in newest or version.is_named or version.is_running:
                called |= version.calls
            else:
                spare.append(version.arn)
    return Spare(
        tuple(spare),
        tuple(
            (function.function, number)
            for function in functions
            for number in _not_newest(function.published, keep)
            if number not in function.named and (function.function, number) not in called
        ),
    )


def _not_newest(numbers: Collection[int], keep: int) -> list[int]:
    return sorted(numbers)[:-keep]


def check_quiet(stack: Stack, moved: Iterable[datetime], now: datetime) -> None:
    """Raises `TooEarly` while the stack changes, and for `QUIET` after it or an alias has changed (``moved``)."""
    if stack.status.endswith("_IN_PROGRESS"):
        raise TooEarly(f"The stack {stack.name} is {stack.status}: prune when it is done.")
    remaining = max(moved) + QUIET - now
    if remaining > timedelta(0):
        minutes = -(-remaining.seconds // 60)
        raise TooEarly(
            f"The last deployment is too recent: chats may still run on the previous release. Try again in "
            f"{minutes} min."
        )


# ── the account ───────────────────────────────────────────────────────────────────────────────────


def find_spare(account: AwsAccount, stage: str, keep: int, now: datetime) -> Spare:
    """The unused versions of a stage. Raises `TooEarly`, `Missing` if nothing is deployed, and `Refusal`."""
    name = f"{prefix(stage)}-chat"
    stack = account.stack(name)
    if stack is None:
        raise Missing(f"There is no stack {name} in this account and region.")
    step_functions, functions = account.client("stepfunctions"), account.client("lambda")
    with plainly():
        machines, moved = [], [_last_event(account, name)]
        for output in _MACHINES:
            versions, moves = machine_versions(step_functions, stack.outputs[output])
            machines.append(versions)
            moved += moves
        check_quiet(stack, moved, now)
        names = [value for key, value in stack.outputs.items() if key.endswith("Function")]
        published = [function_versions(functions, function) for function in names]
    return spare_versions(machines, published, keep)


def delete(account: AwsAccount, spare: Spare) -> None:
    """State machines first, so that no remaining version calls a deleted function. Raises `Refusal`."""
    step_functions, functions = account.client("stepfunctions"), account.client("lambda")
    with plainly():
        for arn in spare.machines:
            step_functions.delete_state_machine_version(stateMachineVersionArn=arn)
        for function, number in spare.functions:
            functions.delete_function(FunctionName=function, Qualifier=str(number))


def _last_event(account: AwsAccount, stack: str) -> datetime:
    """When the last deployment ended."""
    events = account.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return max(_utc(event["Timestamp"]) for event in events)


def machine_versions(
    client: Any, machine: str, held: Collection[str] = ()
) -> tuple[list[MachineVersion], list[datetime]]:
    """A machine's versions, and when its aliases moved. ``held``: ARNs of versions that count as named besides."""
    named, moved = _named(client, machine)
    named |= set(held)
    versions = _pages(client.list_state_machine_versions, "stateMachineVersions", stateMachineArn=machine)
    arns = [str(version["stateMachineVersionArn"]) for version in versions]
    return [_machine_version(client, arn, named) for arn in arns], moved


def _named(client: Any, machine: str) -> tuple[set[str], list[datetime]]:
    named, moved = set(), []
    for listed in _pages(client.list_state_machine_aliases, "stateMachineAliases", stateMachineArn=machine):
        alias = client.describe_state_machine_alias(stateMachineAliasArn=listed["stateMachineAliasArn"])
        named |= {str(route["stateMachineVersionArn"]) for route in alias["routingConfiguration"]}
        moved.append(_utc(alias.get("updateDate") or alias["creationDate"]))
    return named, moved


def _machine_version(client: Any, arn: str, named: Collection[str]) -> MachineVersion:
    definition = client.describe_state_machine(stateMachineArn=arn)["definition"]
    calls = frozenset((name, int(number)) for name, number in _CALLED.findall(definition))
    running = client.list_executions(stateMachineArn=arn, statusFilter="RUNNING", maxResults=1)
    return MachineVersion(arn, calls, arn in named, bool(running["executions"]))


def function_versions(client: Any, function: str, held: Collection[str] = ()) -> FunctionVersions:
    """A function's versions and those that its aliases name. ``held``: ARNs of versions that count as named besides."""
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    versions = [version for page in pages for version in page["Versions"]]
    published = {version["Version"] for version in versions}
    aliases = client.get_paginator("list_aliases").paginate(FunctionName=function)
    named = {
        number
        for page in aliases
        for alias in page["Aliases"]
        for number in (
            alias["FunctionVersion"],
            *alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", ()),
        )
    } | {version["Version"] for version in versions if version["FunctionArn"] in held}
    return FunctionVersions(function, tuple(sorted(_numbers(published))), frozenset(_numbers(named)))


def _numbers(versions: Iterable[str]) -> list[int]:
    return [int(version) for version in versions if version != "$LATEST"]


def _pages(operation: Any, items: str, **request: Any) -> list[Mapping[str, Any]]:
    """Step Functions has no paginator for these."""
    listed: list[Mapping[str, Any]] = []
    while True:
        page = operation(**request)
        listed += page[items]
        if not page.get("nextToken"):
            return listed
        request["nextToken"] = page["nextToken"]


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
