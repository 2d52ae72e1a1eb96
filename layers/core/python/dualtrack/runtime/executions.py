"""Executions of a state machine, by name: one of a name that exists is not begun again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from dualtrack.ids import execution_arn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_stepfunctions.client import SFNClient


_MAX_TRACE: Final = 256
"""Characters of `traceHeader` (Step Functions API Reference, StartExecution)."""

_NONE: Final = ("ExecutionDoesNotExist",)
_NEVER: Final = (*_NONE, "InvalidArn")
"""Likewise for a name that somebody else has chosen, which may be none at all."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Start, look at and stop executions of one state machine."""

    client: SFNClient
    machine_arn: str
    """Of the machine, or of its alias, where the stage has one (`dualtrack.ids.execution_arn`)."""

    trace: Callable[[], str] = str
    """The trace of what starts one, for one trace from there to its last step; empty for none."""

    def start(self, name: str, given: Mapping[str, Any]) -> None:
        """Start one with this input; one that exists is as good as started."""
        trace = self.trace()[:_MAX_TRACE]
        try:
            self.client.start_execution(
                stateMachineArn=self.machine_arn,
                name=name,
                input=json.dumps(given),
                **({"traceHeader": trace} if trace else {}),
            )
        except ClientError as error:
            _raise_unless(error, "ExecutionAlreadyExists")

    def status(self, name: str) -> str | None:
        """RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED; None if there is no such execution."""
        try:
            return str(self.client.describe_execution(executionArn=self._arn(name))["status"])
        except ClientError as error:
            _raise_unless(error, *_NONE)
            return None

    def given(self, name: str) -> Mapping[str, Any] | None:
        """Its input; None if there is none, or it ended more than 90 days ago (Step Functions keeps it no longer)."""
        try:
            found: Mapping[str, Any] = json.loads(
                self.client.describe_execution(executionArn=self._arn(name))["input"]
            )
        except ClientError as error:
            _raise_unless(error, *_NEVER)
            return None
        return found

    def stop(self, name: str, cause: str) -> None:
        """Stop it if it runs."""
        try:
            self.client.stop_execution(executionArn=self._arn(name), error="Stopped", cause=cause)
        except ClientError as error:
            _raise_unless(error, *_NEVER, "ValidationException")

    def _arn(self, name: str) -> str:
        return execution_arn(self.machine_arn, name)


def _raise_unless(error: ClientError, *codes: str) -> None:
    """Raises the error unless it is one of these."""
    if error.response["Error"]["Code"] not in codes:
        raise error
