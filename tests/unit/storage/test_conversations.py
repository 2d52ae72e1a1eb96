"""The item of a conversation stays small, since each chat writes it three times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from dualtrack.storage.conversations import Conversation, ConversationStore, conversation_key
from dualtrack.storage.dynamo import get

from bench.chat_cost import Prose, size
from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.conversations import QueryStarts

USER, CONVERSATION = "u" * 36, "cv_01k8g7grjhk3knn1abcdefghij"
AT = "2026-11-21T00:00:00.000Z"


@pytest.fixture
def store() -> Iterator[ConversationStore]:
    with aws_in_process():
        client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(client, "history")
        yield ConversationStore(client, "history")


def starts(queries: int) -> QueryStarts:
    prose = Prose("queries")
    return tuple((number, prose.of(100)) for number in range(1, queries + 1))


def test_the_beginnings_of_twenty_queries_are_compressed(store: ConversationStore) -> None:
    asked = starts(20)
    store.create(Conversation(USER, CONVERSATION, "A title", "assistant", AT, AT, queries=20, asked=asked))
    item = get(store.client, "history", conversation_key(USER, CONVERSATION))
    assert item is not None
    raw = store.client.get_item(
        TableName="history",
        Key={name: {"S": value} for name, value in conversation_key(USER, CONVERSATION).items()},
    )["Item"]
    assert isinstance(item["asked"], bytes)
    assert size(raw) < 1_700
    found = store.find(USER, CONVERSATION)
    assert found is not None
    assert found.asked == asked


@pytest.mark.parametrize("asked", [(), ((1, "Hi!"),)], ids=["none", "a short one"])
def test_what_compression_would_lengthen_stands_as_it_is(
    store: ConversationStore, asked: QueryStarts
) -> None:
    store.create(Conversation(USER, CONVERSATION, "A title", "assistant", AT, AT, asked=asked))
    item = get(store.client, "history", conversation_key(USER, CONVERSATION))
    assert item is not None
    assert not isinstance(item.get("asked"), bytes)
    found = store.find(USER, CONVERSATION)
    assert found is not None
    assert found.asked == asked
