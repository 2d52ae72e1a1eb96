"""``dualtrack aws up | doctor | smoke | down`` on an emulated account, each killed in the middle and run again."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.facts import tags_of
from dualtrack_stack.cli.aws.questions import Person, Steps
from dualtrack_stack.cli.aws.up import Up, Wishes
from dualtrack_stack.local.offline_model.server import serve_offline_model

from tests.clients.stack_client import PATIENCE
from tests.drivers.emulated_account import (
    EmulatedAccount,
    assembly,
    cdk_command,
    emulated_account,
    settings_file,
)
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFIX = "dualtrack-staging"
EMAIL = "ann@example.org"


@dataclass
class Command:
    """Runs ``dualtrack aws …`` with the account's credentials, in its own folder."""

    account: EmulatedAccount
    folder: Path
    more: dict[str, str]

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dualtrack_stack.cli.main", "aws", *arguments],
            env={**os.environ, **self.account.environment(), **self.more},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run it; its output. Fails for another exit code."""
        with self._start(*arguments) as process:
            out, err = process.communicate(timeout=300)
        assert process.returncode == code, out[-4000:] + err[-4000:]
        return out + err

    def killed_at(self, line: str, *arguments: str) -> None:
        """Start it and kill it as soon as it prints this; fails if it never does."""
        with self._start(*arguments) as process:
            assert process.stdout is not None
            said = any(line in output for output in process.stdout)
            process.send_signal(signal.SIGKILL)
            assert said, process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAccount]:
    """An account, empty at first."""
    with emulated_account(tmp_path_factory.mktemp("account")) as emulated:
        yield emulated


@pytest.fixture
def command(account: EmulatedAccount, tmp_path: Path) -> Command:
    return Command(account, tmp_path, {"ANTHROPIC_API_KEY": "test-key", "DUALTRACK_CDK": cdk_command() or ""})


def test_doctor_says_what_an_empty_account_lacks(command: Command) -> None:
    report = json.loads(command("doctor", "--json", code=4))
    states = {finding["check"]: finding["state"] for finding in report["findings"]}
    assert states["Credentials"] == "ok"
    assert states["CDK bootstrap"] == states["Keys"] == states[f"Stack {PREFIX}-chat"] == "wrong"


def test_no_command_waits_for_input_without_a_terminal(command: Command) -> None:
    """Without a terminal and without --yes."""
    assert "pass --yes" in command("up", code=2)
    assert "--delete-data dualtrack-prod" in command("down", "--stage", "prod", "--yes", code=2)


def test_what_is_switched_off_is_named_with_its_cost_and_deleted_if_the_user_agrees(
    account: EmulatedAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in account.environment().items():
        monkeypatch.setenv(name, value)
    cloudformation = account.aws.client("cloudformation")
    policy = {"KeyPolicy": {"Version": "2012-10-17", "Statement": []}}
    key = {"Resources": {"Key": {"Type": "AWS::KMS::Key", "Properties": policy}}}
    tags = [{"Key": name, "Value": value} for name, value in tags_of("staging").items()]
    for name in ("page", "vectors"):
        cloudformation.create_stack(StackName=f"{PREFIX}-{name}", TemplateBody=json.dumps(key), Tags=tags)
    for answer, left in (("n\n", ["page", "vectors"]), ("y\n", ["vectors"])):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        up = Up(Wishes("staging", page=False), AwsAccount(), Person(is_there=True), Steps(8))
        up._page = False
        stacks = up._remove_switched_off(dict(up.account.stacks("staging")))
        assert sorted(stacks) == left
        said = capsys.readouterr()
        assert f"{PREFIX}-page is switched off, and costs about $1.00 a month" in said.out
        assert ("delete-stack --stack-name dualtrack-staging-page" in said.out) is (answer == "n\n")
        assert "the courses' vectors" in said.out
        assert f"Delete {PREFIX}-vectors" not in said.err
    cloudformation.delete_stack(StackName=f"{PREFIX}-vectors")


def _things(account: EmulatedAccount) -> dict[str, list[str]]:
    """The remaining resources, without the bucket of the CDK's bootstrap."""
    client = account.aws.client
    return {
        "tables": client("dynamodb").list_tables()["TableNames"],
        "buckets": [
            bucket["Name"]
            for bucket in client("s3").list_buckets()["Buckets"]
            if "cdk-" not in bucket["Name"]
        ],
        "pools": [pool["Name"] for pool in client("cognito-idp").list_user_pools(MaxResults=60)["UserPools"]],
        "parameters": [
            parameter["Name"]
            for parameter in client("ssm").describe_parameters()["Parameters"]
            if "cdk" not in parameter["Name"]
        ],
        "secrets": [secret["Name"] for secret in client("secretsmanager").list_secrets()["SecretList"]],
        "logs": [group["logGroupName"] for group in client("logs").describe_log_groups()["logGroups"]],
    }


@pytest.mark.skipif(not LONG, reason="deploys a stage five times: DUALTRACK_LONG=1")
def test_a_stage_goes_up_is_changed_and_goes_down_although_each_is_killed(tmp_path: Path) -> None:
    """From an empty account; a killed command is run again and continues from the account's state."""
    if not cdk_command():
        pytest.skip("the CDK's command line is not installed: .ci/install_cdk_cli.sh")
    with serve_offline_model() as model, emulated_account(tmp_path / "account") as account:
        command = Command(
            account, tmp_path, {"ANTHROPIC_API_KEY": "test-key", "DUALTRACK_CDK": cdk_command() or ""}
        )
        settings = tmp_path / "settings"
        settings_file(settings, {"ANTHROPIC_BASE_URL": model.url})
        arguments = ("--yes", "--email", EMAIL, "--show-password", "--settings", str(settings), "--assembly")
        first = str(assembly(settings))

        command.killed_at("CDK bootstrap", "up", *arguments, first)
        command.killed_at(f"{PREFIX}-data ", "up", *arguments, first)
        command.killed_at(f"{PREFIX}-chat ", "up", *arguments, first)
        out = command("up", *arguments, first)
        assert "Temporary password, shown this once" in out
        assert set(account.stacks().values()) == {"CREATE_COMPLETE"}
        _smoke(command, account)

        settings_file(settings, {"ANTHROPIC_BASE_URL": model.url, "DUALTRACK_MODEL": "claude-sonnet-5-5"})
        second = str(assembly(settings))
        command.killed_at(f"{PREFIX}-chat ", "up", *arguments, second)
        out = command("up", *arguments, second)
        assert "Already stored: anthropic" in out
        assert _model_of(account) == "claude-sonnet-5-5"
        recorded = account.aws.client("ssm").get_parameter(Name="/dualtrack-settings/staging")
        assert "claude-sonnet-5-5" in recorded["Parameter"]["Value"]
        _smoke(command, account)
        assert json.loads(command("doctor", "--json", "--settings", str(settings)))["well"]

        command.killed_at(f"{PREFIX}-chat is deleted", "down", "--yes")
        command("down", "--yes")
        assert list(account.stacks()) == ["CDKToolkit"]
        assert not any(_things(account).values()), _things(account)


def _smoke(command: Command, account: EmulatedAccount) -> None:
    assert "16 of 16 passed" in command("smoke", "--url", account.serve())


def _model_of(account: EmulatedAccount) -> str:
    function = account.outputs()["TurnFunction"]
    configuration = account.aws.client("lambda").get_function_configuration(FunctionName=function)
    return str(configuration["Environment"]["Variables"]["DUALTRACK_MODEL"])
