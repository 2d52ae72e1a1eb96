"""Executions of the chat workflow. An execution's name is its chat's id, so starting twice is once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack.ids import execution_arn

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_stepfunctions.client import SFNClient

    from dualtrack.requests import ChatRef


_MAX_TRACE: Final = 256
"""Characters of `traceHeader` (Step Functions API Reference, StartExecution)."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Start, look at and stop the execution of a chat."""

    client: SFNClient
    machine_arn: str
    """Of the machine, or of its alias, where the stage has one (`dualtrack.ids.execution_arn`)."""

    trace: Callable[[], str] = str
    """The trace of the request that starts a chat, for one trace from there to the model; empty for none."""

    def start(self, ref: ChatRef) -> None:
        """Start the chat's execution; one that exists is as good as started."""
        given = {"user": ref.user, "chat_id": ref.chat_id, "conversation_id": ref.conversation_id, "turn": 0}
        try:
            trace = self.trace()[:_MAX_TRACE]
            self.client.start_execution(
                stateMachineArn=self.machine_arn,
                name=ref.chat_id,
                input=json.dumps(given),
                **({"traceHeader": trace} if trace else {}),
            )
        except ClientError as error:
            if _code(error) != "ExecutionAlreadyExists":
                raise

    def status(self, chat_id: str) -> str | None:
        """RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED; None if there is no such execution."""
        try:
            return str(self.client.describe_execution(executionArn=self._arn(chat_id))["status"])
        except ClientError as error:
            if _code(error) != "ExecutionDoesNotExist":
                raise
            return None

    def owner(self, chat_id: str) -> str:
        """The user whose chat it is, by the execution's input; empty if there is none, or it ended more than 90 days
        ago (Step Functions keeps it no longer)."""
        try:
            given = self.client.describe_execution(executionArn=self._arn(chat_id))["input"]
        except ClientError as error:
            if _code(error) not in ("ExecutionDoesNotExist", "InvalidArn"):
                raise
            return ""
        return str(json.loads(given)["user"])

    def stop(self, chat_id: str) -> None:
        """Stop the execution if it runs."""
        try:
            self.client.stop_execution(
                executionArn=self._arn(chat_id), error="Stopped", cause="The chat has ended."
            )
        except ClientError as error:
            if _code(error) not in ("ExecutionDoesNotExist", "ValidationException", "InvalidArn"):
                raise

    def _arn(self, chat_id: str) -> str:
        return execution_arn(self.machine_arn, chat_id)


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
