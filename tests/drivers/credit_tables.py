"""The tables that the credit tests need, on any DynamoDB engine."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from dualtrack.storage.ledger import ACTIVE_INDEX, Ledger

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb.client import DynamoDBClient


@contextmanager
def dynamodb_client() -> Iterator[DynamoDBClient]:
    """DynamoDB in this process, whatever endpoint the environment names."""
    endpoint = os.environ.pop("AWS_ENDPOINT_URL", None)
    try:
        with aws_in_process():
            yield boto3.client("dynamodb", region_name="us-east-1")
    finally:
        if endpoint:
            os.environ["AWS_ENDPOINT_URL"] = endpoint


def make_ledger(client: DynamoDBClient) -> Ledger:
    """A ledger on a new table with the index of used accounts, as the stack defines it."""
    name = f"credits-{uuid.uuid4().hex[:12]}"
    index: Any = {
        "IndexName": ACTIVE_INDEX,
        "KeySchema": [
            {"AttributeName": "active", "KeyType": "HASH"},
            {"AttributeName": "day", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    make_table(client, name, ("pk", "sk", "active", "day"), GlobalSecondaryIndexes=[index])
    return Ledger(client, name)


def make_chats(client: DynamoDBClient) -> str:
    """Create a table for chats; its name."""
    name = f"chats-{uuid.uuid4().hex[:12]}"
    make_table(client, name)
    return name


def rows(client: DynamoDBClient, table: str, index: str | None = None) -> list[dict[str, Any]]:
    """Every item of a table or index, in wire form, from all pages."""
    request: dict[str, Any] = {"TableName": table, **({"IndexName": index} if index else {})}
    items: list[dict[str, Any]] = []
    for page in client.get_paginator("scan").paginate(**request):
        items += page["Items"]
    return items
