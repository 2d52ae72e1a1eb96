"""``dualtrack credits audit`` of a deployed stage, on the account that moto emulates."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import boto3
import pytest
from click.testing import CliRunner, Result
from dualtrack.storage.ledger import Ledger
from dualtrack_stack.cli.main import main
from moto import mock_aws

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.credits.account import Movement

NOW = 1795262400.0  # 2026-11-21 12:00 UTC
TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    },
}
STACK = {"Resources": {"Credits": TABLE}, "Outputs": {"CreditsTable": {"Value": {"Ref": "Credits"}}}}


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The credits of the stage staging."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        stacks = boto3.client("cloudformation")
        stacks.create_stack(StackName="dualtrack-staging-data", TemplateBody=json.dumps(STACK))
        (stack,) = stacks.describe_stacks(StackName="dualtrack-staging-data")["Stacks"]
        yield Ledger(boto3.client("dynamodb"), stack["Outputs"][0]["OutputValue"])


def audit(user: str, *options: str, stage: str = "staging") -> Result:
    return CliRunner().invoke(main, ["credits", "audit", user, "--stage", stage, *options])


def test_an_account_that_agrees_with_its_lines(ledger: Ledger) -> None:
    ledger.grant("ann", "g1", 500, "a pack", NOW)
    ledger.set_plan("ann", "pro", NOW)
    result = audit("ann")
    assert result.exit_code == 0, result.output
    assert result.stdout == "User ann, lines of the ledger: 2. The account is what they add up to.\n"
    assert json.loads(audit("ann", "--json").stdout) == {"user_id": "ann", "lines": 2, "differences": []}


def test_a_pack_without_a_grant_line_is_reported(ledger: Ledger) -> None:
    ledger.grant("ann", "g1", 500, "a pack", NOW)
    _set_pack(ledger, "ann", 900)
    result = audit("ann")
    assert result.exit_code == 4
    assert result.stdout.splitlines() == [
        "pack: the account says 900, its ledger 500",
        "User ann, lines of the ledger: 1. The account is not what they add up to.",
    ]
    printed = json.loads(audit("ann", "--json").stdout)
    assert printed["differences"] == ["pack: the account says 900, its ledger 500"]


def test_lines_without_an_account_are_reported(ledger: Ledger) -> None:
    ledger.grant("ann", "g1", 500, "a pack", NOW)
    key = {"pk": {"S": "user#ann"}, "sk": {"S": "account"}}
    ledger.client.delete_item(TableName=ledger.table, Key=key)
    assert audit("ann").exit_code == 4


def test_a_movement_during_the_reading_is_not_a_difference(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is read, then it moves, then its lines are read: both are read again."""
    ledger.grant("ann", "g1", 500, "a pack", NOW)
    read, late = Ledger.movements, iter(["g2", "g3"])

    def read_late(self: Ledger, user: str) -> tuple[Movement, ...]:
        for grant_id in itertools.islice(late, 1):
            self.grant(user, grant_id, 100, "a pack", NOW)
        return read(self, user)

    monkeypatch.setattr(Ledger, "movements", read_late)
    result = audit("ann")
    assert (result.exit_code, list(late)) == (0, []), result.output
    assert "lines of the ledger: 3." in result.stdout


@pytest.mark.parametrize(
    ("user", "stage", "code", "said"),
    [("nobody", "staging", 2, "No account of a user nobody"), ("ann", "prod", 5, "dualtrack-prod-data")],
)
def test_a_missing_account_or_stage_is_reported(
    ledger: Ledger, user: str, stage: str, code: int, said: str
) -> None:
    result = audit(user, stage=stage)
    assert result.exit_code == code
    assert result.stderr.startswith("Error: ")
    assert said in result.stderr


def test_a_missing_region_is_reported(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    result = audit("ann")
    assert result.exit_code == 5
    assert "region" in result.stderr


def _set_pack(ledger: Ledger, user: str, credits_: int) -> None:
    ledger.client.update_item(
        TableName=ledger.table,
        Key={"pk": {"S": f"user#{user}"}, "sk": {"S": "account"}},
        UpdateExpression="SET pack = :pack",
        ExpressionAttributeValues={":pack": {"N": str(credits_)}},
    )
