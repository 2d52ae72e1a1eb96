"""What a rolled-back deployment leaves, and that the same code can be deployed again after its deletion.

The emulator's CloudFormation rolls back and keeps what was published. Lambda's rule for publishing is checked here as
AWS states it (Lambda API Reference, PublishVersion; the message is CloudFormation's), and which version an execution
runs is scripted, as for `prune`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.aws import doctor, prune, rolled_back
from dualtrack_stack.cli.aws.rolled_back import (
    NOTHING,
    OldVersions,
    clear_rolled_back,
    find_left,
    left_by_rollback,
)
from dualtrack_stack.cli.aws.versions import FunctionVersions, MachineVersion, Spare, function_versions
from dualtrack_stack.cli.main import main

from tests.servers.processes import free_port, running
from tests.unit.cli.test_aws_prune import EmulatedAccount

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:chat"
STACK = "dualtrack-staging-chat"


def version(number: int, **more: Any) -> MachineVersion:
    """Number N calls version N of `turn`."""
    return MachineVersion(f"{MACHINE}:{number}", frozenset({("turn", number)}), **more)


TURN = FunctionVersions("turn", (1, 2, 3), frozenset({1}))


def test_what_is_newer_than_everything_in_use_is_left() -> None:
    versions = [version(1), version(2, is_named=True), version(3), version(4)]
    assert left_by_rollback([versions], [TURN]) == OldVersions(
        Spare((f"{MACHINE}:3", f"{MACHINE}:4"), (("turn", 3),))
    ), "version 2 of the function is called by the workflow in use"


def test_a_version_that_an_execution_runs_is_kept_with_its_functions() -> None:
    versions = [version(1, is_named=True), version(2, is_running=True), version(3)]
    left = left_by_rollback([versions], [TURN])
    assert left == OldVersions(Spare((f"{MACHINE}:3",), (("turn", 3),)), (f"{MACHINE}:2",))
    assert left.count == 3


def test_nothing_is_left_where_nothing_is_in_use_or_all_is() -> None:
    unnamed = replace(TURN, named=frozenset())
    assert left_by_rollback([[version(1), version(2)]], [unnamed]) == NOTHING
    assert left_by_rollback([[]], []) == NOTHING
    assert left_by_rollback(
        [[version(1), version(2, is_named=True)]], [replace(TURN, named=frozenset({3}))]
    ) == (NOTHING), "an older version is for `prune`"


def test_doctor_says_what_is_in_the_way_and_how_to_delete_it() -> None:
    finding = doctor.of_left(OldVersions(Spare((), (("turn", 2),)), (f"{MACHINE}:2",)), "prod")
    assert (finding.state, finding.mend.split("   ")[0]) == (
        "note",
        "uv run dualtrack aws prune --stage prod --rolled-back",
    )
    assert "2 of a rolled-back deployment" in finding.seen
    assert "chats still run on 1" in finding.seen
    assert doctor.of_left(NOTHING, "prod").state == "ok"


# ── an account ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedAccount]:
    """A stage at its first release, whose second one was rolled back."""
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "ERROR"}
    with running([sys.executable, "-m", "ministack"], settings):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        emulated = EmulatedAccount("us-east-1")
        _code(emulated)
        formation = emulated.client("cloudformation")
        formation.create_stack(StackName=STACK, TemplateBody=json.dumps(_template(1)))
        formation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
        _publish(emulated)
        formation.update_stack(StackName=STACK, TemplateBody=json.dumps(_template(2, is_broken=True)))
        formation.get_waiter("stack_rollback_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
        yield emulated


def _code(account: EmulatedAccount) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="code")
    for number in (1, 2):
        s3.put_object(Bucket="code", Key=f"{number}.zip", Body=_zip(number))


def _zip(number: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("handler.py"), f"def handler(event, context): return {number}\n")
    return buffer.getvalue()


def _template(number: int, *, is_broken: bool = False) -> dict[str, Any]:
    """Release N: a function with its version and alias, and the workflow that calls that version."""
    role, retained = (
        "arn:aws:iam::000000000000:role/any",
        {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"},
    )
    task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
    definition = {
        "StartAt": "Turn",
        "States": {"Turn": {**task, "Parameters": {"FunctionName": "${Called}"}}},
    }
    resources: dict[str, Any] = {
        "Turn": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Role": role,
                "Handler": "handler.handler",
                "Code": {"S3Bucket": "code", "S3Key": f"{number}.zip"},
            },
        },
        f"TurnVersion{number}": {
            "Type": "AWS::Lambda::Version",
            **retained,
            "Properties": {"FunctionName": {"Ref": "Turn"}},
        },
        "Live": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {
                "Name": "live",
                "FunctionName": {"Ref": "Turn"},
                "FunctionVersion": {"Fn::GetAtt": [f"TurnVersion{number}", "Version"]},
            },
        },
        "Chat": {
            "Type": "AWS::StepFunctions::StateMachine",
            "Properties": {
                "StateMachineName": "chat",
                "RoleArn": role,
                "DefinitionString": json.dumps(definition),
                "DefinitionSubstitutions": {"Called": {"Ref": f"TurnVersion{number}"}},
            },
        },
    }
    if is_broken:
        broken = {"Name": "/taken", "Type": "NoSuchType", "Value": "x"}
        resources["Broken"] = {"Type": "AWS::SSM::Parameter", "DependsOn": "Live", "Properties": broken}
    return {"Resources": resources}


def _publish(account: EmulatedAccount) -> None:
    """The workflow's version and alias, which the emulator's CloudFormation does not make."""
    client = account.client("stepfunctions")
    arn = client.publish_state_machine_version(stateMachineArn=MACHINE)["stateMachineVersionArn"]
    client.create_state_machine_alias(
        name="live", routingConfiguration=[{"stateMachineVersionArn": arn, "weight": 100}]
    )


def _refusal(account: EmulatedAccount, number: int) -> str:
    """What CloudFormation says to a new version of release N's code; empty if Lambda publishes one.

    "Lambda doesn't publish a version if the function's configuration and code haven't changed since the last version."
    """
    pages = (
        account.client("lambda")
        .get_paginator("list_versions_by_function")
        .paginate(FunctionName=_turn(account))
    )
    published = [found for page in pages for found in page["Versions"] if found["Version"] != "$LATEST"]
    latest = max(published, key=lambda found: int(found["Version"]))
    if latest["CodeSha256"] != base64.b64encode(hashlib.sha256(_zip(number)).digest()).decode():
        return ""
    return (
        f"A version for this Lambda function exists ( {latest['Version']} ). Modify the function to create a new"
        " version."
    )


def _turn(account: EmulatedAccount) -> str:
    kinds = {resource.kind: resource.id for resource in account.resources(STACK)}
    return kinds["AWS::Lambda::Function"]


def test_the_same_code_is_deployed_again(account: EmulatedAccount) -> None:
    assert "exists ( 2 )" in _refusal(account, 2), "the rolled-back version is the latest one"
    left = find_left(account, "staging")
    assert left.spare.functions == ((_turn(account), 2),)
    told: list[str] = []
    clear_rolled_back(account, "staging", told.append)
    assert not _refusal(account, 2)
    assert len(told) == 1
    versions = function_versions(account.client("lambda"), _turn(account))
    assert versions.published == (1,)
    clear_rolled_back(account, "staging", told.append)
    assert len(told) == 1, "the second time there is nothing to do"
    formation = account.client("cloudformation")
    formation.update_stack(StackName=STACK, TemplateBody=json.dumps(_template(2)))
    formation.get_waiter("stack_update_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
    assert find_left(account, "staging") == NOTHING


def test_a_version_that_the_stack_has_is_no_leftover(account: EmulatedAccount) -> None:
    """An operator moved the alias back by hand, to a version before the deployed one."""
    functions = account.client("lambda")
    functions.update_alias(FunctionName=_turn(account), Name="live", FunctionVersion="2")
    assert find_left(account, "staging") == NOTHING
    functions.delete_alias(FunctionName=_turn(account), Name="live")
    assert find_left(account, "staging").spare.functions == ((_turn(account), 2),), "1 is the stack's"


class AskedTwice(set[str]):
    """Running at the first question, and ended at the next."""

    def __contains__(self, arn: object) -> bool:
        was_there = super().__contains__(arn)
        self.discard(str(arn))
        return was_there


def test_chats_on_the_rolled_back_release_end_first(
    account: EmulatedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = account.client("stepfunctions")
    definition = json.dumps(
        {
            "StartAt": "Turn",
            "States": {
                "Turn": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::lambda:invoke",
                    "Parameters": {
                        "FunctionName": f"arn:aws:lambda:us-east-1:000000000000:function:{_turn(account)}:2"
                    },
                    "End": True,
                }
            },
        }
    )
    client.update_state_machine(stateMachineArn=MACHINE, definition=definition)
    client.publish_state_machine_version(stateMachineArn=MACHINE)
    account.running.add(f"{MACHINE}:2")
    assert find_left(account, "staging") == OldVersions(Spare((), ()), (f"{MACHINE}:2",))

    account.running = AskedTwice(account.running)
    monkeypatch.setattr(rolled_back, "POLL_SECONDS", 0)
    monkeypatch.setattr(prune, "AwsAccount", lambda _region: account)
    done = CliRunner().invoke(main, ["aws", "prune", "--rolled-back"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "Chats still run on 2: waiting",
        "Deleting 1 versions of functions and 1 of workflows, which a rolled-back deployment has left",
    ]
    assert not _refusal(account, 2)


def test_a_stage_that_is_not_there_has_nothing_left(account: EmulatedAccount) -> None:
    assert find_left(account, "prod") == NOTHING
