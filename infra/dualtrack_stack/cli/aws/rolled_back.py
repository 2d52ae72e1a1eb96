"""The versions that a rolled-back deployment has left, and their deletion before the next one (docs/releases.md).

CloudFormation publishes a version of each changed function, and when the deployment fails it keeps them: chats that the
new release has begun run on them. The next deployment of the same code would fail, because Lambda publishes no second
version of what its latest version has, and CloudFormation takes that for an error ("A version for this Lambda function
exists ( N ). Modify the function to create a new version.").
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack_stack.cli.aws.account import AwsRefusal, plainly
from dualtrack_stack.cli.aws.facts import prefix
from dualtrack_stack.cli.aws.versions import Spare, delete, function_versions, machine_versions
from dualtrack_stack.cli.aws.waiting import POLL_SECONDS, SETTLE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dualtrack_stack.cli.aws.account import AwsAccount
    from dualtrack_stack.cli.aws.versions import FunctionVersions, MachineVersion

ROLLED_BACK: Final = "UPDATE_ROLLBACK_COMPLETE"


@dataclass(frozen=True, slots=True)
class OldVersions:
    """``spare``: what can be deleted. ``busy``: ARNs of machine versions that executions still run."""

    spare: Spare
    busy: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Versions that are in the way of the next deployment."""
        return len(self.spare.functions) + len(self.spare.machines) + len(self.busy)


NOTHING: Final = OldVersions(Spare((), ()))


def left_by_rollback(
    machines: Iterable[Sequence[MachineVersion]], functions: Iterable[FunctionVersions]
) -> OldVersions:
    """What is newer than everything that an alias names or the stack has (``is_named``, ``named``). A running
    execution keeps its machine's version and the functions that this one calls."""
    spare: list[str] = []
    busy: list[str] = []
    called: set[tuple[str, int]] = set()
    for versions in machines:
        latest = max((version.number for version in versions if version.is_named), default=None)
        for version in versions:
            if latest is not None and version.number > latest and not version.is_running:
                spare.append(version.arn)
                continue
            called |= version.calls
            if latest is not None and version.number > latest:
                busy.append(version.arn)
    newer = [
        (function.function, number)
        for function in functions
        for number in function.published
        if function.named and number > max(function.named) and (function.function, number) not in called
    ]
    return OldVersions(Spare(tuple(spare), tuple(newer)), tuple(busy))


# ── the account ───────────────────────────────────────────────────────────────────────────────────


def find_left(account: AwsAccount, stage: str) -> OldVersions:
    """What the last deployment of a stage has left, if it was rolled back. Raises `AwsRefusal`."""
    name = f"{prefix(stage)}-chat"
    stack = account.stack(name)
    if stack is None or stack.status != ROLLED_BACK:
        return NOTHING
    held = {resource.id: resource.kind for resource in account.resources(name) if resource.is_held}
    step_functions, functions = account.client("stepfunctions"), account.client("lambda")
    with plainly():
        machines = [
            machine_versions(step_functions, arn, held)[0]
            for arn, kind in held.items()
            if kind == "AWS::StepFunctions::StateMachine"
        ]
        published = [
            function_versions(functions, function, held)
            for function, kind in held.items()
            if kind == "AWS::Lambda::Function"
        ]
    return left_by_rollback(machines, published)


def clear_rolled_back(account: AwsAccount, stage: str, tell: Callable[[str], None]) -> None:
    """Delete what a rolled-back deployment has left; waits for the chats that still run on it, at most as long as for
    a stack. Raises `AwsRefusal`."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := find_left(account, stage)).count:
        if left.spare.functions or left.spare.machines:
            tell(
                f"Deleting {len(left.spare.functions)} versions of functions and {len(left.spare.machines)} of"
                " workflows, which a rolled-back deployment has left"
            )
            delete(account, left.spare)
        if left.busy:
            if time.monotonic() > deadline:
                raise AwsRefusal(f"Chats still run on {', '.join(left.busy)}: see `dualtrack aws doctor`.")
            tell(f"Chats still run on {', '.join(arn.rsplit(':', 1)[1] for arn in left.busy)}: waiting")
            time.sleep(POLL_SECONDS)
