"""The stored catalogue: names, versions, staleness, pinning."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import boto3
import pytest
from dualtrack.frozen import freeze
from dualtrack.storage.cache import CacheStore
from dualtrack.tool import ToolSpec
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.catalogue import (
    STALE_AFTER,
    Catalogue,
    CatalogueTooLarge,
    Listing,
    find_tool,
    load_catalogue,
    load_listings,
    store_listings,
    store_version,
)
from dualtrack.tools.mcp.config import McpServer, github_server
from dualtrack.tools.mcp.specs import MAX_TOOLS, ListedTool, offered_name, specs_of
from moto import mock_aws

from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator


NOW = 1_800_000_000.0
TABLE = "cache"
SCHEMA = freeze({"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]})
GITHUB = github_server("http://gh:8082/")
OTHER = McpServer("other", "http://other/mcp")


@pytest.fixture
def cache() -> Iterator[CacheStore]:
    module._DECODED.clear()
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        make_table(client, TABLE)
        yield CacheStore(client, TABLE, lambda: NOW)


def listed(name: str, *, read_only: bool = True, idempotent: bool = False) -> ListedTool:
    return ListedTool(name, f"Does {name}.", SCHEMA, read_only=read_only, idempotent=idempotent)


def stored(cache: CacheStore, *listings: tuple[McpServer, float, list[ListedTool]]) -> None:
    entries = [
        Listing(server.name, store_version(cache, specs_of(server, tools), at), int(at))
        for server, at, tools in listings
    ]
    store_listings(cache, entries)


def test_nothing_stored_means_no_tools(cache: CacheStore) -> None:
    assert load_catalogue(cache, NOW) == Catalogue("", ())


def test_a_stored_catalogue_is_read_back_unchanged(cache: CacheStore) -> None:
    stored(
        cache,
        (GITHUB, NOW, [listed("list_issues"), listed("get_me")]),
        (OTHER, NOW, [listed("go", read_only=False)]),
    )
    catalogue = load_catalogue(cache, NOW)
    assert catalogue.tools == (
        ToolSpec("github_get_me", "Does get_me.", SCHEMA, "github", "github", True, "github", "get_me"),
        ToolSpec(
            "github_list_issues",
            "Does list_issues.",
            SCHEMA,
            "github",
            "github",
            True,
            "github",
            "list_issues",
        ),
        ToolSpec("other_go", "Does go.", SCHEMA, "github", "other", False, "other", "go"),
    )
    assert find_tool(catalogue, "other_go") == catalogue.tools[2]
    assert find_tool(catalogue, "go") is None


def test_a_stale_server_loses_only_its_own_tools(cache: CacheStore) -> None:
    stored(cache, (GITHUB, NOW - STALE_AFTER, [listed("get_me")]), (OTHER, NOW, [listed("go")]))
    assert [tool.name for tool in load_catalogue(cache, NOW).tools] == ["other_go"]
    assert [listing.server for listing in load_listings(cache)] == ["github", "other"]


def test_a_pinned_version_outlives_a_new_listing_and_staleness(cache: CacheStore) -> None:
    stored(cache, (GITHUB, NOW, [listed("get_me")]), (OTHER, NOW, [listed("go")]))
    pinned = load_catalogue(cache, NOW)
    stored(cache, (GITHUB, NOW + 10, [listed("list_issues")]))
    module._DECODED.clear()
    assert load_catalogue(cache, NOW + 2 * STALE_AFTER, version=pinned.version) == pinned
    assert load_catalogue(cache, NOW + 20).version != pinned.version
    assert load_catalogue(cache, NOW, version="") == Catalogue("", ())


def test_a_deleted_version_offers_nothing(cache: CacheStore) -> None:
    assert load_catalogue(cache, NOW, version="0" * 32) == Catalogue("", ())


def test_the_version_depends_only_on_the_content(cache: CacheStore) -> None:
    forth, back = [listed("a"), listed("b")], [listed("b"), listed("a")]
    versions = {store_version(cache, specs_of(GITHUB, tools), NOW) for tools in (forth, back)}
    assert len(versions) == 1
    assert store_version(cache, specs_of(GITHUB, [listed("a")]), NOW) not in versions


def test_a_catalogue_too_large_for_an_item_is_refused(
    cache: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STORED", 10)
    with pytest.raises(CatalogueTooLarge):
        store_version(cache, specs_of(GITHUB, [listed("a")]), NOW)


@pytest.mark.parametrize(
    ("read_only", "idempotent", "repeatable"),
    [(True, False, True), (False, True, True), (False, False, False), (True, True, True)],
)
def test_repeatable_comes_from_the_annotations(read_only: bool, idempotent: bool, repeatable: bool) -> None:
    (spec,) = specs_of(OTHER, [listed("go", read_only=read_only, idempotent=idempotent)])
    assert spec.repeatable is repeatable


def test_names_that_claude_refuses_are_adapted() -> None:
    assert offered_name("docs", "find.page/now") == "docs_find_page_now"
    assert len(offered_name("docs", "x" * 100)) == 64


def test_tools_that_cannot_be_offered_are_left_out() -> None:
    no_object = ListedTool("bad", "", freeze({"type": "string"}), read_only=True)
    union = ListedTool(
        "union", "", freeze({"type": "object", "anyOf": [{"required": ["a"]}]}), read_only=True
    )
    specs = specs_of(OTHER, [no_object, union, listed("a.b"), listed("a_b")])
    assert [(spec.name, spec.remote_name) for spec in specs] == [
        ("other_a_b", "a.b"),
        ("other_union", "union"),
    ]
    assert dict(specs[1].input_schema) == {"type": "object"}
    assert len(specs_of(OTHER, [listed(f"t{n}") for n in range(MAX_TOOLS + 5)])) == MAX_TOOLS


def test_only_allowed_tools_are_offered() -> None:
    server = McpServer("docs", "http://docs/mcp", tools=("find",))
    assert [spec.name for spec in specs_of(server, [listed("find"), listed("drop")])] == ["docs_find"]
    assert specs_of(GITHUB, [listed("issue_write", read_only=False)]) == ()


def test_light_modules_load_nothing_heavy() -> None:
    code = (
        "import sys, dualtrack.tools.mcp.catalogue, dualtrack.tools.mcp.config, dualtrack.tools.mcp.tokens\n"
        "heavy = {'mcp', 'mcp_types', 'anthropic', 'numpy', 'httpx', 'httpx2', 'pydantic', 'jsonschema'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
