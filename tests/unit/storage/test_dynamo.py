"""Transactions: conflicts are retried, failed conditions are reported (DESIGN 2.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from dualtrack.errors import Contended
from dualtrack.storage.dynamo import (
    TRANSACT_ATTEMPTS,
    ConditionFailed,
    batch_get,
    check,
    delete,
    delete_all,
    get,
    put,
    put_absent,
    put_all,
    query,
    transact,
    update,
)

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = "things"


class Fickle:
    """A client whose writes fail a number of times before they reach the real one."""

    def __init__(self, client: Any, *errors: ClientError) -> None:
        self.client = client
        self.errors = list(errors)
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.client, name)
        if name not in ("transact_write_items", "put_item", "update_item", "delete_item"):
            return real

        def call(**request: Any) -> Any:
            self.calls += 1
            if self.errors:
                raise self.errors.pop(0)
            return real(**request)

        return call


def cancelled(*codes: str) -> ClientError:
    """A transaction cancelled for these reasons."""
    reasons = [{"Code": code} for code in codes]
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": ""},
        "CancellationReasons": reasons,
    }
    return ClientError(answer, "TransactWriteItems")


def refused(code: str) -> ClientError:
    """A plain refusal."""
    return ClientError({"Error": {"Code": code, "Message": ""}}, "PutItem")


@pytest.fixture
def client() -> Iterator[Any]:
    """A table in this process."""
    with aws_in_process():
        new_client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(new_client, TABLE)
        yield new_client


def key(sk: str) -> dict[str, str]:
    """A key in the partition of these tests."""
    return {"pk": "p", "sk": sk}


def no_pause(_: int) -> None:
    """Time does not pass."""


def test_all_or_nothing(client: Any) -> None:
    """A failed condition writes nothing and reports the existing item."""
    transact(client, [put_absent("first", TABLE, {**key("a"), "n": 1})])
    with pytest.raises(ConditionFailed) as lost:
        transact(
            client,
            [
                put_absent("again", TABLE, {**key("a"), "n": 2}),
                put_absent("other", TABLE, {**key("b"), "n": 2}),
            ],
        )
    assert lost.value.items == {"again": {**key("a"), "n": 1}}
    assert get(client, TABLE, key("b")) is None


def test_every_kind_of_action(client: Any) -> None:
    """Put, update, check and delete in one transaction."""
    transact(client, [put("x", TABLE, {**key("a"), "n": 1}), put("y", TABLE, {**key("b"), "n": 1})])
    transact(
        client,
        [
            update("change", TABLE, key("a"), "SET n = :n", "n = :was", {":n": 2, ":was": 1}),
            check("still", TABLE, key("c"), "attribute_not_exists(pk)"),
            delete("gone", TABLE, key("b"), "n = :one", {":one": 1}),
        ],
    )
    assert [item["n"] for item in query(client, TABLE, "p")] == [2]


def test_a_transaction_of_one_is_a_plain_write(client: Any) -> None:
    """At half the price, with the same answers."""
    plain = Fickle(client, refused("ThrottlingException"))
    transact(plain, [put_absent("only", TABLE, key("a"))], no_pause)  # type: ignore[arg-type]
    with pytest.raises(ConditionFailed) as lost:
        transact(plain, [put_absent("only", TABLE, key("a"))], no_pause)  # type: ignore[arg-type]
    assert list(lost.value.items) == ["only"]
    assert plain.calls == 3


@pytest.mark.parametrize(
    "error",
    [
        cancelled("None", "TransactionConflict"),
        cancelled("ThrottlingError", "None"),
        refused("TransactionInProgressException"),
    ],
)
def test_conflicts_and_throttling_are_tried_again(client: Any, error: ClientError) -> None:
    """The caller does not notice them."""
    fickle = Fickle(client, error, error)
    pauses: list[int] = []
    transact(fickle, [put("a", TABLE, key("a")), put("b", TABLE, key("b"))], pauses.append)  # type: ignore[arg-type]
    assert (fickle.calls, pauses) == (3, [0, 1])
    assert get(client, TABLE, key("b"))


def test_a_failed_condition_beside_a_conflict_is_final(client: Any) -> None:
    """A retry could not win it."""
    fickle = Fickle(client, cancelled("ConditionalCheckFailed", "TransactionConflict"))
    with pytest.raises(ConditionFailed):
        transact(fickle, [put("a", TABLE, key("a")), put("b", TABLE, key("b"))], no_pause)  # type: ignore[arg-type]
    assert fickle.calls == 1


def test_it_gives_up_in_the_end(client: Any) -> None:
    """With an error that a retry of the step may resolve."""
    fickle = Fickle(client, *[cancelled("TransactionConflict", "None")] * 100)
    with pytest.raises(Contended):
        transact(fickle, [put("a", TABLE, key("a")), put("b", TABLE, key("b"))], no_pause)  # type: ignore[arg-type]
    assert fickle.calls == TRANSACT_ATTEMPTS


@pytest.mark.parametrize(
    "error",
    [
        refused("AccessDeniedException"),
        cancelled("ValidationError", "None"),
        cancelled("ItemCollectionSizeLimitExceeded", "None"),
    ],
)
def test_other_errors_are_not_hidden(client: Any, error: ClientError) -> None:
    """They are bugs or permissions."""
    with pytest.raises(ClientError):
        transact(Fickle(client, error), [put("a", TABLE, key("a")), put("b", TABLE, key("b"))], no_pause)  # type: ignore[arg-type]


def test_plain_values_come_back_plain(client: Any) -> None:
    """Integers, bytes, lists and maps; no Decimal, no Binary."""
    item = {**key("a"), "n": 3, "z": b"\x00\x01", "m": {"x": [1, "y", True]}}
    transact(client, [put("a", TABLE, item)])
    assert get(client, TABLE, key("a")) == item


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"prefix": "a"}, ["a1", "a2", "a3"]),
        ({"prefix": "a", "after": "a1"}, ["a2", "a3"]),
        ({"prefix": "a", "before": "a3"}, ["a1", "a2"]),
        ({"prefix": "a", "descending": True, "page_size": 1}, ["a3", "a2", "a1"]),
        ({"prefix": "a", "before": "a3", "descending": True}, ["a2", "a1"]),
        ({}, ["a1", "a2", "a3", "b1"]),
    ],
)
def test_queries_keep_to_their_prefix_and_edges(
    client: Any, more: dict[str, Any], expected: list[str]
) -> None:
    """Bounds are exclusive; all pages are read."""
    for sk in ("a1", "a2", "a3", "b1"):
        transact(client, [put("item", TABLE, key(sk))])
    assert [item["sk"] for item in query(client, TABLE, "p", **more)] == expected


def test_many_items_at_once(client: Any) -> None:
    """More than fit in one request, some of which do not exist."""
    for number in range(130):
        transact(client, [put("item", TABLE, key(f"{number:03d}"))])
    batch = batch_get(client, TABLE, [key(f"{number:03d}") for number in range(150)])
    assert len(batch) == 130


class Busy:
    """A client that makes ten writes of a batch and returns the others, as a throttled table does."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def batch_write_item(self, RequestItems: Any) -> Any:  # noqa: N803 - DynamoDB's name
        ((table, requests),) = RequestItems.items()
        assert 0 < len(requests) <= 25
        self.client.batch_write_item(RequestItems={table: requests[:10]})
        return {"UnprocessedItems": {table: requests[10:]} if requests[10:] else {}}


def test_a_deletion_repeats_unprocessed_items(client: Any) -> None:
    keys = [key(f"{number:02d}") for number in range(60)]
    put_all(client, TABLE, keys, attempts=1)
    assert len(list(query(client, TABLE, "p"))) == 60
    delete_all(Busy(client), TABLE, iter(keys))  # type: ignore[arg-type]
    assert list(query(client, TABLE, "p")) == []


def test_puts_that_stay_unprocessed_are_left_out(client: Any) -> None:
    keys = [key(f"{number:02d}") for number in range(30)]
    put_all(Busy(client), TABLE, keys, attempts=2)  # type: ignore[arg-type]
    assert [item["sk"] for item in query(client, TABLE, "p")] == [
        f"{number:02d}" for number in (*range(20), *range(25, 30))
    ]
