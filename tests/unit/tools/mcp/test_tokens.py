"""GitHub connections: stored encrypted, bound to their user, never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from dualtrack.clock import system_clock
from dualtrack.errors import ApiError
from dualtrack.storage.cache import CacheStore
from dualtrack.tools.mcp.tokens import Connections, StoredConnection, check_token

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "github_pat_11ABCDEFG0_secret"


@pytest.fixture
def connections() -> Iterator[Connections]:
    with aws_in_process():
        dynamodb = boto3.client("dynamodb", "us-east-1")
        kms = boto3.client("kms", "us-east-1")
        make_table(dynamodb, "cache")
        key = kms.create_key()["KeyMetadata"]["Arn"]
        yield Connections(CacheStore(dynamodb, "cache", system_clock), kms, key)


def test_connect_find_token_disconnect(connections: Connections) -> None:
    assert connections.find("ana") is None
    assert connections.token("ana") is None
    assert connections.connect("ana", f"  {TOKEN}\n", 1_800_000_000.9) == StoredConnection(1_800_000_000)
    assert connections.find("ana") == StoredConnection(1_800_000_000)
    assert connections.token("ana") == TOKEN
    connections.disconnect("ana")
    assert connections.find("ana") is None
    connections.disconnect("ana")


def test_a_new_token_replaces_the_old(connections: Connections) -> None:
    connections.connect("ana", TOKEN, 1)
    connections.connect("ana", "ghs_another", 2)
    assert connections.token("ana") == "ghs_another"
    assert connections.find("ana") == StoredConnection(2)


def test_each_user_has_their_own_token(connections: Connections) -> None:
    connections.connect("ana", TOKEN, 1)
    connections.connect("ben", "ghu_ben", 1)
    assert (connections.token("ana"), connections.token("ben")) == (TOKEN, "ghu_ben")
    assert connections.token("cyd") is None


def test_the_item_has_no_clear_text_token(connections: Connections) -> None:
    connections.connect("ana", TOKEN, 1)
    (item,) = connections.cache.client.scan(TableName="cache")["Items"]
    assert TOKEN.encode() not in item["token"]["B"]
    assert TOKEN not in repr({key: value for key, value in item.items() if key != "token"})


def test_an_item_copied_to_another_user_does_not_decrypt(connections: Connections) -> None:
    connections.connect("ana", TOKEN, 1)
    (item,) = connections.cache.client.scan(TableName="cache")["Items"]
    connections.cache.client.put_item(TableName="cache", Item={**item, "pk": {"S": "user#eve"}})
    assert connections.token("eve") is None


@pytest.mark.parametrize(
    "token", [TOKEN, "ghp_x1", "gho_x", "ghu_x", "ghs_x.y-z", "0123456789abcdef" * 2 + "01234567"]
)
def test_github_tokens_are_accepted(token: str) -> None:
    assert check_token(token) == token


@pytest.mark.parametrize(
    "token",
    [
        "",
        "none",
        "github_pat_",
        "Bearer ghp_x",
        "ghp_x y",
        "ghp_x\r\nX-Evil: 1",
        "ghp_" + "x" * 300,
        "0" * 39,
    ],
)
def test_anything_else_is_refused_without_echoing_it(token: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_token(token)
    assert refused.value.code == "invalid_request"
    assert not token or token not in refused.value.message or token == "github_pat_"
