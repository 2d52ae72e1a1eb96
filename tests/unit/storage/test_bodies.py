"""Bodies are read at half the price, and again where that read is behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from dualtrack.errors import Gone
from dualtrack.storage.bodies import BodyStore, body_of

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE, PK = "history", "CONV#ann#cv_1"
TEXTS = [f"The text of body {number}." for number in range(3)]


class Behind:
    """A client whose eventually consistent reads find nothing yet."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.consistent: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def get_item(self, **request: Any) -> Any:
        self.consistent.append(request["ConsistentRead"])
        return self.client.get_item(**request) if request["ConsistentRead"] else {}

    def batch_get_item(self, **request: Any) -> Any:
        self.consistent.append(request["RequestItems"][TABLE]["ConsistentRead"])
        return self.client.batch_get_item(**request) if self.consistent[-1] else {"Responses": {}}


@pytest.fixture
def behind() -> Iterator[Behind]:
    with aws_in_process():
        client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(client, TABLE)
        yield Behind(client)


def stored(client: Any) -> tuple[BodyStore, list[str]]:
    """The store over this client, and the pointers of three bodies."""
    bodies: Any = [body_of(PK, text.encode()) for text in TEXTS]
    store = BodyStore(client, None, TABLE, "bucket")  # type: ignore[arg-type]
    for body in bodies:
        store.write(body)
    return store, [body.pointer for body in bodies]


def test_a_read_that_is_behind_is_made_again(behind: Behind) -> None:
    store, pointers = stored(behind)
    assert [store.load(PK, pointer).decode() for pointer in pointers] == TEXTS
    items = [{"body": pointer} for pointer in pointers]
    assert store.load_texts(PK, items) == TEXTS
    assert store.load_heads(PK, items, 8) == ["The text"] * 3
    assert behind.consistent == [False, True] * 5


def test_what_is_found_is_not_read_again(behind: Behind) -> None:
    store, pointers = stored(behind.client)
    requests: list[Any] = []
    behind.client.meta.events.register(
        "provide-client-params.dynamodb", lambda params, **_: requests.append(params)
    )
    store.load(PK, pointers[0])
    store.load_texts(PK, [{"body": pointer} for pointer in pointers])
    assert len(requests) == 2


def test_a_deleted_body_is_gone(behind: Behind) -> None:
    store, _ = stored(behind.client)
    gone = body_of(PK, b"another").pointer
    with pytest.raises(Gone):
        store.load(PK, gone)
    assert store.load_texts(PK, [{"body": gone}]) == [None]
