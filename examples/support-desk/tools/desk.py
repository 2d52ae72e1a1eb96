"""The desk's table. Its partition key is the customer: a call reaches the tickets of one customer and no others."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key


@cache
def table() -> Any:
    """The table, opened at the first use."""
    return boto3.resource("dynamodb").Table(os.environ["TICKETS_TABLE"])


def tickets_of(customer: str, limit: int) -> list[dict[str, Any]]:
    """The customer's newest tickets."""
    found = table().query(
        KeyConditionExpression=Key("customer").eq(customer), ScanIndexForward=False, Limit=limit
    )
    return found["Items"]


def ticket_of(customer: str, number: int) -> dict[str, Any]:
    """One of the customer's tickets. Raises ValueError, whose words the model is told."""
    item = table().get_item(Key={"customer": customer, "number": number}).get("Item")
    if item is None:
        raise ValueError(f"There is no ticket {number}: list_tickets has the numbers.")
    return item
