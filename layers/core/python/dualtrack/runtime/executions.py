"""Executions of a state machine, by name: starting an existing name again does nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack.ids import execution_arn

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_stepfunctions.client import SFNClient

    from dualtrack.frozen import JsonObject


_MAX_TRACE: Final = 256
"""Characters of `traceHeader` (Step Functions API Reference, StartExecution)."""

_NONE: Final = ("ExecutionDoesNotExist",)
_NEVER: Final = (*_NONE, "InvalidArn")
"""The same for a name from outside, which may be invalid."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Start, look at and stop executions of one state machine."""

    client: SFNClient
    machine_arn: str
    """The ARN of the machine, or of its alias if the stage has one (`dualtrack.ids.execution_arn`)."""

    trace: Callable[[], str] = str
    """The trace header of the caller, so that one trace covers the request and all steps; empty for none."""

    def start(self, name: str, payload: JsonObject) -> None:
        """Start an execution with this input; does nothing if the name exists."""
        trace = self.trace()[:_MAX_TRACE]
        try:
            self.client.start_execution(
                stateMachineArn=self.machine_arn,
                name=name,
                input=json.dumps(payload),
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

    def input_of(self, name: str) -> JsonObject | None:
        """Its input; None if there is no such execution, or it ended more than 90 days ago (Step Functions' limit)."""
        try:
            execution_input: JsonObject = json.loads(
                self.client.describe_execution(executionArn=self._arn(name))["input"]
            )
        except ClientError as error:
            _raise_unless(error, *_NEVER)
            return None
        return execution_input

    def stop(self, name: str, cause: str) -> None:
        """Stop it if it is running."""
        try:
            self.client.stop_execution(executionArn=self._arn(name), error="Stopped", cause=cause)
        except ClientError as error:
            _raise_unless(error, *_NEVER, "ValidationException")

    def _arn(self, name: str) -> str:
        return execution_arn(self.machine_arn, name)


def _raise_unless(error: ClientError, *codes: str) -> None:
    """Raise the error unless its code is one of these."""
    if error.response["Error"]["Code"] not in codes:
        raise error
