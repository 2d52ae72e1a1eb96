"""The desk's table, made from its template by moto, with the tickets of two customers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import seed
import yaml
from moto import mock_aws
from tools.desk import table

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = Path(__file__).parents[1] / "table.yaml"


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tickets 1001 to 1005 of the customer ``test``, whom chats of tests have, and ticket 9 of another."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("TICKETS_TABLE", "support-desk-test")
    declared = yaml.safe_load(TEMPLATE.read_text().replace("!Sub ", ""))["Resources"]["Tickets"]["Properties"]
    made = {name: declared[name] for name in ("BillingMode", "AttributeDefinitions", "KeySchema")}
    with mock_aws():
        boto3.client("dynamodb").create_table(TableName="support-desk-test", **made)
        table.cache_clear()
        seed.main("test")
        other = {
            "customer": "somebody else",
            "number": 9,
            "status": "open",
            "subject": "Theirs",
            "opened": "2026-01-01",
        }
        table().put_item(Item=other)
        yield
