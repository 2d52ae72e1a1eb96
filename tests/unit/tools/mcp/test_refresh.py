"""The refresh: every server is listed; a failing one keeps its list until that is stale."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import pytest
from dualtrack.frozen import freeze
from dualtrack.storage.cache import CacheStore
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.catalogue import STALE_AFTER, load_catalogue
from dualtrack.tools.mcp.config import Auth, McpServer, github_server
from dualtrack.tools.mcp.failures import Failure, McpFailure
from dualtrack.tools.mcp.refresh import refresh_catalogue
from dualtrack.tools.mcp.specs import ListedTool
from moto import mock_aws

from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator


NOW = 1_800_000_000.0
GITHUB = github_server("http://gh/")
DOCS = McpServer("docs", "http://docs/mcp", Auth("secret", "docs-key"))
BOTH = (GITHUB, DOCS)


@dataclass
class Lists:
    """The tools that each server lists; a server without an entry is down."""

    tools: dict[str, tuple[str, ...]]
    tokens: dict[str, str | None] = field(default_factory=dict)

    def list_tools(self, server: McpServer, token: str | None) -> tuple[ListedTool, ...]:
        self.tokens[server.name] = token
        if server.name not in self.tools:
            raise McpFailure(Failure("down", server.name))
        schema = freeze({"type": "object"})
        return tuple(ListedTool(name, "", schema, read_only=True) for name in self.tools[server.name])


@pytest.fixture
def cache() -> Iterator[CacheStore]:
    module._DECODED.clear()
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        make_table(client, "cache")
        yield CacheStore(client, "cache", lambda: NOW)


def refreshed(
    cache: CacheStore, lists: Lists, now: float, servers: tuple[McpServer, ...] = BOTH
) -> dict[str, str]:
    return refresh_catalogue(cache, servers, lists, secret=lambda _: "key", now=now)


def offered(cache: CacheStore, now: float) -> list[str]:
    return [tool.name for tool in load_catalogue(cache, now).tools]


def test_every_server_is_listed_with_its_own_token(cache: CacheStore) -> None:
    lists = Lists({"github": ("get_me", "list_issues"), "docs": ("find",)})
    assert refreshed(cache, lists, NOW) == {"github": "listed 2", "docs": "listed 1"}
    assert offered(cache, NOW) == ["github_get_me", "github_list_issues", "docs_find"]
    assert lists.tokens == {"github": "github_pat_listing_only", "docs": "key"}


def test_a_server_that_is_down_keeps_its_list_until_that_is_stale(cache: CacheStore) -> None:
    refreshed(cache, Lists({"github": ("get_me",), "docs": ("find",)}), NOW)
    down = Lists({"docs": ("find", "more")})
    assert refreshed(cache, down, NOW + 3600) == {"github": "failed: down", "docs": "listed 2"}
    assert offered(cache, NOW + 3600) == ["github_get_me", "docs_find", "docs_more"]
    refreshed(cache, down, NOW + STALE_AFTER)
    assert offered(cache, NOW + STALE_AFTER) == ["docs_find", "docs_more"]


def test_a_server_no_longer_configured_is_no_longer_offered(cache: CacheStore) -> None:
    lists = Lists({"github": ("get_me",), "docs": ("find",)})
    refreshed(cache, lists, NOW)
    refreshed(cache, lists, NOW, (DOCS,))
    assert offered(cache, NOW) == ["docs_find"]
    assert refreshed(cache, lists, NOW, ()) == {}
    assert offered(cache, NOW) == []


def test_a_list_too_large_for_an_item_leaves_the_previous_one(
    cache: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(cache, Lists({"github": ("get_me",), "docs": ("find",)}), NOW)
    monkeypatch.setattr(module, "MAX_STORED", 1)
    outcome = refreshed(cache, Lists({"github": ("a",), "docs": ("b",)}), NOW)
    assert outcome == {"github": "failed: too large", "docs": "failed: too large"}
    assert offered(cache, NOW) == ["github_get_me", "docs_find"]
