"""The state machine of release 1 beside today's: an execution keeps the definition it was started with."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dualtrack.runtime.executions import Executions

from infra.layers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.stack_client import Root

RELEASE_1: Final = ROOT / "tests" / "fixtures" / "release-1" / "infrastructure" / "chat.asl.json"


@contextmanager
def machine_of_release_1(root: Root) -> Iterator[Executions]:
    """Its definition over the deployed functions. The sweep is off: it only looks for executions of today's machine,
    and would start the other's chats again.
    """

    def alias(match: re.Match[str]) -> str:
        name = root.stack.outputs[f"{match[1]}Function"]
        return str(functions.get_alias(FunctionName=name, Name="live")["AliasArn"])

    client, functions = root.client("stepfunctions"), root.client("lambda")
    sweep = root.stack.outputs["SweepFunction"]
    functions.put_function_concurrency(FunctionName=sweep, ReservedConcurrentExecutions=0)
    machine = client.create_state_machine(
        name="chat-of-release-1",
        definition=re.sub(r"\$\{(\w+)\}", alias, RELEASE_1.read_text()),
        roleArn=client.describe_state_machine(stateMachineArn=root.machine)["roleArn"],
    )["stateMachineArn"]
    try:
        yield Executions(client, machine)
    finally:
        client.delete_state_machine(stateMachineArn=machine)
        functions.delete_function_concurrency(FunctionName=sweep)
