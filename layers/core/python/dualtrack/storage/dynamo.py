"""DynamoDB: plain items, and the only module that makes transactions (DESIGN 2.9).

Items are small dicts of str, int, bool, bytes, lists and maps without None. Values with floats or of any structure
are stored as a JSON string, so no Decimal reaches the domain.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import time
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from dualtrack.errors import Contended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

Item = dict[str, Any]
T = TypeVar("T")

_SERIALIZER: Final = TypeSerializer()
_DESERIALIZER: Final = TypeDeserializer()

_LOWEST: Final = "\0"
"""Less than every sort key in use. DynamoDB refuses an empty string in a key condition; moto accepts it."""

TRANSACT_ACTIONS: Final = 100
"""The most that DynamoDB takes in one transaction."""
TRANSACT_ATTEMPTS: Final = 12
KEPT_ATTEMPTS: Final = 4
_RETRYABLE_REASONS: Final = {
    "TransactionConflict",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
}
_RETRYABLE_CODES: Final = {
    "TransactionInProgressException",
    "TransactionConflictException",
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "InternalServerError",
}


def to_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """A DynamoDB item in attribute-value form."""
    return {key: _SERIALIZER.serialize(value) for key, value in item.items()}


def from_wire(wire: Mapping[str, Any]) -> Item:
    """A plain item: numbers as int, binaries as bytes."""
    return {key: _plain(_DESERIALIZER.deserialize(value)) for key, value in wire.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, Binary):
        return bytes(value.value)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Action:
    """One named action of a transaction.

    ``kind`` is Put, Update, Delete or ConditionCheck; ``request`` its DynamoDB parameters in wire
    form. A lost condition is reported by this name.
    """

    name: str
    kind: str
    request: Mapping[str, Any]


class ConditionFailed(Exception):
    """A condition was false. ``items`` maps the names of the lost actions to the items found instead."""

    def __init__(self, items: Mapping[str, Item | None]) -> None:
        super().__init__(", ".join(items))
        self.items = items

    def only_to_itself(self, name: str, token: str) -> bool:
        """Whether only this action was lost, and only to its own first delivery (same token): then it has succeeded."""
        return (self.items.get(name) or {}).get("by") == token


def writer_token() -> str:
    """A random token of one attempt at a write, for the attribute ``by`` of the item.

    If the answer to a write is lost, botocore or `transact` sends it again, and it then finds its own item.
    """
    return secrets.token_hex(6)


ABSENT: Final = "attribute_not_exists(pk)"
"""The condition that an item does not exist yet."""


def put(
    name: str,
    table: str,
    item: Mapping[str, Any],
    condition: str = "",
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> Action:
    """Put an item, optionally under a condition."""
    return Action(
        name, "Put", {"TableName": table, "Item": to_wire(item), **_condition(condition, values, names)}
    )


def put_absent(name: str, table: str, item: Mapping[str, Any]) -> Action:
    """Put an item that must not exist yet."""
    return put(name, table, item, ABSENT)


def update(
    name: str,
    table: str,
    key: Mapping[str, str],
    expression: str,
    condition: str = "",
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> Action:
    """Update an item by an expression, optionally under a condition."""
    request = {"TableName": table, "Key": to_wire(key), "UpdateExpression": expression}
    return Action(name, "Update", {**request, **_condition(condition, values, names)})


def one_more(name: str, table: str, key: Mapping[str, str], number: str, most: int) -> Action:
    """Count up an attribute, ``number``, to at most ``most``: a limit that two requests at once keep."""
    room = f"attribute_not_exists({number}) OR {number} < :most"
    return update(name, table, key, f"ADD {number} :one", room, {":one": 1, ":most": most})


def one_less(name: str, table: str, key: Mapping[str, str], number: str) -> Action:
    """The reverse."""
    values = {":less": -1, ":none": 0}
    return update(name, table, key, f"ADD {number} :less", f"{number} > :none", values)


def delete(
    name: str,
    table: str,
    key: Mapping[str, str],
    condition: str = "",
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> Action:
    """Delete an item, optionally under a condition."""
    return Action(
        name, "Delete", {"TableName": table, "Key": to_wire(key), **_condition(condition, values, names)}
    )


def check(
    name: str,
    table: str,
    key: Mapping[str, str],
    condition: str,
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> Action:
    """A condition on an item that the transaction does not write."""
    request = {"TableName": table, "Key": to_wire(key), **_condition(condition, values, names)}
    return Action(name, "ConditionCheck", request)


def _condition(
    condition: str, values: Mapping[str, Any] | None, names: Mapping[str, str] | None
) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if condition:
        parts["ConditionExpression"] = condition
        parts["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if values:
        parts["ExpressionAttributeValues"] = to_wire(values)
    if names:
        parts["ExpressionAttributeNames"] = dict(names)
    return parts


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before attempt ``n``: exponential with full jitter, in seconds."""

    base: float = 0.02
    cap: float = 1.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __call__(self, attempt: int) -> None:
        self.sleep(random.uniform(0, min(self.cap, self.base * 2**attempt)))  # noqa: S311 - jitter


def transact(
    client: DynamoDBClient, actions: Sequence[Action], pause: Callable[[int], None] | None = None
) -> None:
    """Commit all actions or none.

    Conflicts and throttling are retried with jitter; a false condition raises `ConditionFailed` with the existing
    items, so that the caller can decide again; too many conflicts raise `Contended`.
    """
    wait = pause or Backoff()
    if len(actions) == 1 and actions[0].kind != "ConditionCheck":
        _single(client, actions[0], wait)
        return
    for attempt in range(TRANSACT_ATTEMPTS):
        try:
            client.transact_write_items(
                TransactItems=[{action.kind: dict(action.request)} for action in actions]  # type: ignore[misc]
            )
        except ClientError as error:
            _raise_unless_retryable(error, actions)
            wait(attempt)
        else:
            return
    raise Contended("The transaction met conflicts too often.")


def until_kept(attempt: Callable[[], T], words: str) -> T:
    """What the attempt returns: what it reads and then writes under the condition that it is still so. It is made anew
    if that is `ConditionFailed`; too often raises `Contended` with these words."""
    for _ in range(KEPT_ATTEMPTS):
        with contextlib.suppress(ConditionFailed):
            return attempt()
    raise Contended(words)


def updated(client: DynamoDBClient, action: Action) -> Item:
    """Make a single update; the whole item after it. Raises as `transact` does."""
    returning = replace(action, request={**action.request, "ReturnValues": "ALL_NEW"})
    return from_wire(_single(client, returning, Backoff())["Attributes"])


def _single(client: DynamoDBClient, action: Action, wait: Callable[[int], None]) -> Any:
    """A transaction of a single action is a plain conditional write, at half the price."""
    calls: dict[str, Callable[..., object]] = {
        "Put": client.put_item,
        "Update": client.update_item,
        "Delete": client.delete_item,
    }
    call = calls[action.kind]
    for attempt in range(TRANSACT_ATTEMPTS):
        try:
            return call(**action.request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ConditionalCheckFailedException":
                old: Any = error.response.get("Item")
                raise ConditionFailed({action.name: from_wire(old) if old else None}) from error
            if code not in _RETRYABLE_CODES:
                raise
            wait(attempt)
    raise Contended("The write met conflicts too often.")


def _raise_unless_retryable(error: ClientError, actions: Sequence[Action]) -> None:
    if error.response["Error"]["Code"] in _RETRYABLE_CODES:
        return
    reasons: Any = error.response.get("CancellationReasons")
    if error.response["Error"]["Code"] != "TransactionCanceledException" or not reasons:
        raise error
    lost = {
        action.name: from_wire(reason["Item"]) if reason.get("Item") else None
        for action, reason in zip(actions, reasons, strict=True)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    if lost:
        raise ConditionFailed(lost) from error
    if not any(reason.get("Code") in _RETRYABLE_REASONS for reason in reasons):
        raise error


def get(
    client: DynamoDBClient, table: str, key: Mapping[str, str], *, consistent: bool = True
) -> Item | None:
    """One item, or None."""
    wire = client.get_item(TableName=table, Key=to_wire(key), ConsistentRead=consistent).get("Item")
    return from_wire(wire) if wire else None


def query(
    client: DynamoDBClient,
    table: str,
    pk: str,
    *,
    prefix: str = "",
    after: str = "",
    before: str = "",
    descending: bool = False,
    consistent: bool = True,
    page_size: int | None = None,
    only: Sequence[str] = (),
) -> Iterator[Item]:
    """Items of one partition in key order, read page by page as they are consumed.

    ``prefix``: only sort keys that begin with it. ``after`` / ``before``: only sort keys strictly
    greater / less, within the prefix. ``only``: just these attributes, and the keys.
    """
    low = after or prefix or _LOWEST
    high = before or (prefix + "\U0010ffff")
    request: dict[str, Any] = {
        "TableName": table,
        "ConsistentRead": consistent,
        "ScanIndexForward": not descending,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
        "ExpressionAttributeValues": to_wire({":pk": pk, ":low": low, ":high": high}),
    }
    if page_size:
        request["Limit"] = page_size
    if only:
        names = {f"#{number}": name for number, name in enumerate(("pk", "sk", *only))}
        request |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
    while True:
        answer = client.query(**request)
        for wire in answer["Items"]:
            item = from_wire(wire)
            if item["sk"] not in (after, before):
                yield item
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def index_pages(
    client: DynamoDBClient,
    table: str,
    index: str,
    shard: str,
    *,
    before: tuple[str, str | int] | None = None,
    descending: bool = False,
    page_size: int | None = None,
) -> Iterator[list[Item]]:
    """Pages of a sparse index, which is named after its partition key; one request each, as they are consumed.

    ``before``: the sort attribute and a value; only items with less than this value.
    """
    condition, names = "#shard = :shard", {"#shard": index}
    values: dict[str, str | int] = {":shard": shard}
    if before:
        condition += " AND #sort < :before"
        names["#sort"], values[":before"] = before
    request: dict[str, Any] = {
        "TableName": table,
        "IndexName": index,
        "ScanIndexForward": not descending,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": to_wire(values),
    }
    if page_size:
        request["Limit"] = page_size
    for page in client.get_paginator("query").paginate(**request):
        yield [from_wire(wire) for wire in page["Items"]]


def batch_get(
    client: DynamoDBClient, table: str, keys: Sequence[Mapping[str, str]], *, consistent: bool = True
) -> list[Item]:
    """Many items at once, in no particular order; keys that do not exist are left out."""
    items: list[Item] = []
    pause = Backoff()
    for start in range(0, len(keys), 100):
        wanted = [to_wire(key) for key in keys[start : start + 100]]
        pending: Any = {table: {"Keys": wanted, "ConsistentRead": consistent}}
        attempt = 0
        while pending:
            answer = client.batch_get_item(RequestItems=pending)
            items += [from_wire(wire) for wire in answer["Responses"].get(table, [])]
            pending = answer.get("UnprocessedKeys")
            if pending:
                pause(attempt)
                attempt += 1
    return items


def put_all(
    client: DynamoDBClient, table: str, items: Iterable[Mapping[str, Any]], attempts: int | None = None
) -> None:
    """Put many items without conditions. Items still throttled after ``attempts`` are left out; without ``attempts``
    it retries until all are written."""
    _write_all(client, table, ({"PutRequest": {"Item": to_wire(item)}} for item in items), attempts)


def delete_all(client: DynamoDBClient, table: str, keys: Iterable[Mapping[str, str]]) -> None:
    """Delete many items; retries until all are deleted."""
    _write_all(client, table, ({"DeleteRequest": {"Key": to_wire(key)}} for key in keys))


def delete_partition(client: DynamoDBClient, table: str, pk: str) -> bool:
    """Delete all items of a partition; returns whether there were any."""
    sort_keys = [item["sk"] for item in query(client, table, pk)]
    delete_all(client, table, ({"pk": pk, "sk": sk} for sk in sort_keys))
    return bool(sort_keys)


def _write_all(
    client: DynamoDBClient, table: str, requests: Iterable[Mapping[str, Any]], attempts: int | None = None
) -> None:
    pause = Backoff()
    rest = iter(requests)
    while batch := list(itertools.islice(rest, 25)):
        pending: Any = {table: batch}
        for attempt in itertools.count() if attempts is None else range(attempts):
            pending = client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
            if not pending:
                break
            pause(attempt)
