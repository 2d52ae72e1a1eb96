"""The refresh: every server is listed; a failing one keeps its list until that is stale."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from dualtrack.frozen import freeze
from dualtrack.storage.cache import CacheStore
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.catalogue import STALE_AFTER, LeftOut, load_catalogue
from dualtrack.tools.mcp.config import Auth, McpServer, github_server
from dualtrack.tools.mcp.failures import McpFailure, RequestFailure
from dualtrack.tools.mcp.refresh import RefreshOutcome, refresh_catalogue
from dualtrack.tools.mcp.specs import ListedTool, ServerListing

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


TWICE = "the server lists it twice"
NOW = 1_800_000_000.0
GITHUB = github_server("http://gh/")
DOCS = McpServer("docs", "http://docs/mcp", Auth("secret", "docs-key"))
BOTH = (GITHUB, DOCS)


@dataclass
class Lists:
    """The tools that each server lists; a server without an entry is down."""

    tools: dict[str, tuple[str, ...]]
    tokens: dict[str, str | None] = field(default_factory=dict)
    act: dict[str, Callable[[], None]] = field(default_factory=dict)
    handshakes: tuple[str, ...] = ()

    def list_tools(self, server: McpServer, token: str | None) -> ServerListing:
        self.tokens[server.name] = token
        self.act.get(server.name, lambda: None)()
        if server.name not in self.tools:
            raise McpFailure(RequestFailure("down", server.name))
        schema = freeze({"type": "object"})
        return ServerListing(
            tuple(
                ListedTool(name, "", schema, hints={"readOnlyHint": True}) for name in self.tools[server.name]
            ),
            handshake=server.name in self.handshakes,
        )


@pytest.fixture
def cache() -> Iterator[CacheStore]:
    module._DECODED.clear()
    with aws_in_process():
        client = boto3.client("dynamodb", "us-east-1")
        make_table(client, "cache")
        yield CacheStore(client, "cache", lambda: NOW)


def refreshed(
    cache: CacheStore, lists: Lists, now: float, servers: tuple[McpServer, ...] = BOTH
) -> dict[str, str]:
    done = refresh_catalogue(cache, servers, lists, secret=lambda _: "key", now=now)
    return {server.server: server.outcome for server in done}


def offered(cache: CacheStore, now: float) -> list[str]:
    return [tool.name for tool in load_catalogue(cache, now).tools]


def test_every_server_is_listed_with_its_own_token(cache: CacheStore) -> None:
    lists = Lists({"github": ("get_me", "list_issues"), "docs": ("find",)})
    assert refreshed(cache, lists, NOW) == {"github": "listed 2", "docs": "listed 1"}
    assert offered(cache, NOW) == ["docs_find", "github_get_me", "github_list_issues"]
    assert lists.tokens == {"github": "github_pat_listing_only", "docs": "key"}


def test_a_server_that_is_down_keeps_its_list_until_that_is_stale(cache: CacheStore) -> None:
    refreshed(cache, Lists({"github": ("get_me",), "docs": ("find",)}), NOW)
    down = Lists({"docs": ("find", "more")})
    assert refreshed(cache, down, NOW + 3600) == {"github": "failed: down", "docs": "listed 2"}
    assert offered(cache, NOW + 3600) == ["docs_find", "docs_more", "github_get_me"]
    refreshed(cache, down, NOW + STALE_AFTER)
    assert offered(cache, NOW + STALE_AFTER) == ["docs_find", "docs_more"]


def test_what_a_listing_has_learnt_is_stored_with_it(cache: CacheStore) -> None:
    lists = Lists({"github": ("get_me",), "docs": ("find",)}, handshakes=("docs",))
    refreshed(cache, lists, NOW)
    module._DECODED.clear()  # another process reads it
    assert load_catalogue(cache, NOW).handshakes == {"docs"}
    refreshed(cache, Lists({"github": ("get_me",), "docs": ("find",)}), NOW + 3600)
    assert load_catalogue(cache, NOW + 3600).handshakes == frozenset()


def test_a_server_no_longer_configured_is_no_longer_offered(cache: CacheStore) -> None:
    lists = Lists({"github": ("get_me",), "docs": ("find",)})
    refreshed(cache, lists, NOW)
    refreshed(cache, lists, NOW, (DOCS,))
    assert offered(cache, NOW) == ["docs_find"]
    assert refreshed(cache, lists, NOW, ()) == {}
    assert offered(cache, NOW) == []


def test_a_server_that_breaks_the_check_costs_only_its_own_tools(cache: CacheStore) -> None:
    lists = Lists({"docs": ("find",)})
    lists.act["github"] = raise_recursion
    assert refreshed(cache, lists, NOW) == {"github": "failed: RecursionError", "docs": "listed 1"}
    assert offered(cache, NOW) == ["docs_find"]


def raise_recursion() -> None:
    raise RecursionError


def test_servers_are_listed_at_once_and_each_is_stored_as_it_comes(cache: CacheStore) -> None:
    """GitHub's server answers only when the other's tools can be read."""
    lists = Lists({"github": ("get_me",), "docs": ("find",)})
    stored = threading.Event()
    write = cache.client.update_item

    def writing(**request: Any) -> Any:
        answer = write(**request)
        stored.set()
        return answer

    def wait() -> None:
        assert stored.wait(20), "the other server's listing was not stored meanwhile"

    lists.act["github"] = wait
    cache.client.update_item = writing  # type: ignore[method-assign]
    assert refreshed(cache, lists, NOW) == {"github": "listed 1", "docs": "listed 1"}
    assert offered(cache, NOW) == ["docs_find", "github_get_me"]


def test_what_cannot_be_offered_is_told_once(cache: CacheStore) -> None:
    lists = Lists({"docs": ("find", "find")})

    def refresh() -> RefreshOutcome:
        (done,) = refresh_catalogue(cache, (DOCS,), lists, secret=lambda _: "key", now=NOW)
        return done

    assert refresh() == RefreshOutcome("docs", "listed 1", (LeftOut("docs", "find", TWICE),), is_new=True)
    assert refresh().is_new is False
