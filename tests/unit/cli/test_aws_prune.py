"""``dualtrack aws prune``: what is spare, when nothing may be deleted, and the account's versions on the emulator.

The emulator has versions and aliases of functions and state machines, but does not report which version an execution
runs: that answer is scripted as AWS documents it (Step Functions API Reference, ListExecutions).
"""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.aws import prune, versions
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.facts import Stack
from dualtrack_stack.cli.aws.versions import (
    QUIET,
    FunctionVersions,
    MachineVersion,
    Spare,
    TooEarly,
    check_quiet,
    find_spare,
    function_versions,
    machine_versions,
    spare_versions,
)
from dualtrack_stack.cli.main import main

from tests.servers.processes import free_port, running

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:chat"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def version(number: int, **more: Any) -> MachineVersion:
    """Number N calls version N of `turn`."""
    return MachineVersion(f"{MACHINE}:{number}", frozenset({("turn", number)}), **more)


TURN = FunctionVersions("turn", (1, 2, 3, 4, 5), frozenset({5}))


def test_the_latest_versions_are_kept() -> None:
    versions = [version(number) for number in range(1, 6)]
    assert spare_versions([versions], [TURN], 3) == Spare(
        (f"{MACHINE}:1", f"{MACHINE}:2"), (("turn", 1), ("turn", 2))
    )
    assert spare_versions([versions[:2]], [replace(TURN, published=(1, 2))], 3) == Spare((), ())
    assert spare_versions([[]], [replace(TURN, published=())], 2) == Spare((), ())


@pytest.mark.parametrize("used", ["is_named", "is_running"])
def test_a_used_version_is_kept_with_the_functions_it_calls(used: str) -> None:
    versions = [version(1), version(2, **{used: True}), *(version(number) for number in range(3, 6))]
    assert spare_versions([versions], [TURN], 2) == Spare(
        (f"{MACHINE}:1", f"{MACHINE}:3"), (("turn", 1), ("turn", 3))
    )


def test_a_function_of_two_machines_is_kept_for_either() -> None:
    jobs = [MachineVersion(f"{MACHINE}-jobs:1", frozenset({("turn", 1)}))]
    assert spare_versions([[version(5), version(4)], jobs], [TURN], 2).functions == (("turn", 2), ("turn", 3))


def test_a_version_with_a_share_of_an_alias_is_kept() -> None:
    named = replace(TURN, named=frozenset({1, 5}))
    assert spare_versions([[]], [named], 2).functions == (("turn", 2), ("turn", 3))


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_nothing_is_deleted_during_a_deployment(status: str) -> None:
    with pytest.raises(TooEarly, match=f"is {status}: prune when it is done"):
        check_quiet(Stack("s", status), [NOW - timedelta(days=1)], NOW)


def test_nothing_is_deleted_while_a_chat_of_the_previous_release_may_run() -> None:
    """Counted from the last change of the stack or of an alias, which an operator may have moved by hand."""
    stack = Stack("s", "UPDATE_COMPLETE")
    moved = [NOW - timedelta(days=1), NOW - QUIET + timedelta(minutes=4, seconds=1)]
    with pytest.raises(TooEarly, match=r"Try again in 5 min\."):
        check_quiet(stack, moved, NOW)
    check_quiet(stack, [NOW - QUIET], NOW)


# ── an account ────────────────────────────────────────────────────────────────────────────────────


class WhatRuns:
    """Step Functions, with the one answer that the emulator lacks: the executions of a version."""

    def __init__(self, client: Any, running: set[str]) -> None:
        self._client = client
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def list_executions(self, **request: Any) -> dict[str, Any]:
        assert request["statusFilter"] == "RUNNING"
        return {"executions": [{"status": "RUNNING"}] if request["stateMachineArn"] in self._running else []}


class EmulatedAccount(AwsAccount):
    """``running``: the state machine versions with a running execution."""

    def __init__(self, region: str | None = None) -> None:
        super().__init__(region)
        self.running: set[str] = set()

    def client(self, service: str) -> Any:
        client = super().client(service)
        return WhatRuns(client, self.running) if service == "stepfunctions" else client


@pytest.fixture(scope="module")
def account() -> Iterator[EmulatedAccount]:
    """Five releases of a stage with one function and the two machines of `ChatStack`, of which one has versions."""
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "ERROR"}
    with pytest.MonkeyPatch.context() as patch, running([sys.executable, "-m", "ministack"], settings):
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        emulated = EmulatedAccount("us-east-1")
        _deploy(emulated)
        yield emulated


def _deploy(account: AwsAccount) -> None:
    functions, step_functions = account.client("lambda"), account.client("stepfunctions")
    cloudformation = account.client("cloudformation")
    code = {"ZipFile": _zip()}
    role = "arn:aws:iam::000000000000:role/any"
    functions.create_function(
        FunctionName="turn", Runtime="python3.13", Role=role, Handler="handler.handler", Code=code
    )
    machine = _machine(account, "chat", "$LATEST")
    jobs = _machine(account, "corpus", "$LATEST")
    for number in range(1, 6):
        functions.update_function_code(FunctionName="turn", ZipFile=_zip(str(number)))
        published = functions.publish_version(FunctionName="turn")["Version"]
        step_functions.update_state_machine(stateMachineArn=machine, definition=_definition(published))
        step_functions.publish_state_machine_version(stateMachineArn=machine)
    functions.create_alias(FunctionName="turn", Name="live", FunctionVersion="5")
    step_functions.create_state_machine_alias(
        name="live", routingConfiguration=[{"stateMachineVersionArn": f"{machine}:5", "weight": 100}]
    )
    outputs = {"StateMachineArn": machine, "CorpusMachineArn": jobs, "TurnFunction": "turn"}
    template = {
        "Resources": {"Any": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x"}}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    cloudformation.create_stack(StackName="dualtrack-staging-chat", TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName="dualtrack-staging-chat", WaiterConfig={"Delay": 1}
    )


def _machine(account: AwsAccount, name: str, function: str) -> str:
    made = account.client("stepfunctions").create_state_machine(
        name=name, definition=_definition(function), roleArn="arn:aws:iam::000000000000:role/any"
    )
    return str(made["stateMachineArn"])


def _definition(number: str) -> str:
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": f"arn:aws:lambda:us-east-1:000000000000:function:turn:{number}"},
        "End": True,
    }
    return json.dumps({"StartAt": "Turn", "States": {"Turn": state}})


def _zip(comment: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("handler.py", f"def handler(event, context): return {comment!r}\n")
    return buffer.getvalue()


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def test_the_commands_account_is_read_and_pruned(
    account: EmulatedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = f"{MACHINE}:"
    with pytest.raises(TooEarly, match=r"Try again in \d+ min"):
        find_spare(account, "staging", 2, datetime.now(UTC))
    account.running.add(f"{machine}2")
    expected = Spare((f"{machine}3", f"{machine}1"), (("turn", 1), ("turn", 3)))
    spare = find_spare(account, "staging", 2, later())
    assert (set(spare.machines), spare.functions) == (set(expected.machines), expected.functions)

    monkeypatch.setattr(prune, "AwsAccount", lambda _region: account)
    monkeypatch.setattr(versions, "QUIET", -timedelta(minutes=1))
    refused = CliRunner().invoke(main, ["aws", "prune", "--keep", "2"], input="n\n")
    assert "4 unused versions besides the latest 2." in refused.output
    assert len(find_spare(account, "staging", 2, later()).functions) == 2, "nothing was deleted"
    done = CliRunner().invoke(main, ["aws", "prune", "--keep", "2", "--yes"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "Deleted.")
    assert function_versions(account.client("lambda"), "turn").published == (2, 4, 5)
    remaining, _ = machine_versions(account.client("stepfunctions"), MACHINE)
    assert sorted(version.number for version in remaining) == [2, 4, 5]
    again = CliRunner().invoke(main, ["aws", "prune", "--keep", "2"])
    assert again.output.splitlines()[-1] == "Nothing to delete."


@pytest.mark.usefixtures("account")
def test_a_stage_that_is_not_deployed_is_reported() -> None:
    done = CliRunner().invoke(main, ["aws", "prune", "--stage", "prod", "--region", "us-east-1"])
    assert done.exit_code == 2
    assert "There is no stack dualtrack-prod-chat in this account and region." in done.output


@pytest.mark.usefixtures("account")
def test_an_aws_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(time, "sleep", lambda _: None)  # between the tries
    done = CliRunner().invoke(main, ["aws", "prune", "--region", "us-east-1"])
    assert (done.exit_code, done.output.count("\n")) == (4, 1)
    assert "AWS cannot be reached" in done.output
