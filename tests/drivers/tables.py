"""Tables with the project's key schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient


def make_table(
    client: DynamoDBClient, name: str, attributes: Sequence[str] = ("pk", "sk"), **more: Any
) -> None:
    """A table with the string keys ``pk`` and ``sk``; ``attributes`` names those of its indexes, too."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in attributes],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        **more,
    )
