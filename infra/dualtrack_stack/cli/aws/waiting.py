"""Waiting for CloudFormation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dualtrack_stack.cli.aws.account import AwsAccount, AwsRefusal
from dualtrack_stack.cli.aws.decide import before_deploy

if TYPE_CHECKING:
    from dualtrack_stack.cli.aws.facts import Stack
    from dualtrack_stack.cli.aws.questions import Steps

SETTLE_SECONDS: Final = 45 * 60.0
"""How long to wait for a stack's change in progress; a CloudFront distribution takes half of it."""
POLL_SECONDS: Final = 3.0


def wait_until_settled(account: AwsAccount, name: str, steps: Steps) -> Stack | None:
    """The stack once no change is in progress; None if there is none. Raises `AwsRefusal` after `SETTLE_SECONDS`."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (stack := account.stack(name)) and before_deploy(stack) == "wait":
        if time.monotonic() > deadline:
            raise AwsRefusal(
                f"{name} has been {stack.status} for too long; check it in CloudFormation's console."
            )
        steps.progress(f"{name} is {stack.status}: waiting")
        time.sleep(POLL_SECONDS)
    return stack
