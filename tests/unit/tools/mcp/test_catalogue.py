"""The stored catalogue: names, versions, staleness, pinning."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
import pytest
from dualtrack.codec import dump
from dualtrack.frozen import freeze
from dualtrack.profiles import profile_named
from dualtrack.storage.cache import CacheStore
from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import MAX_SERVER_TOOLS
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.catalogue import (
    KEEP_VERSION,
    STALE_AFTER,
    Catalogue,
    LeftOut,
    ServerTools,
    leave_out,
    load_catalogue,
    load_listings,
    store_listing,
    store_version,
)
from dualtrack.tools.mcp.config import McpServer, github_server
from dualtrack.tools.mcp.specs import MAX_LEFT_OUT, ListedTool, specs_of
from dualtrack.tools.registry import in_house_specs, offered_tools

from tests.drivers.aws import aws_in_process
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
    with aws_in_process():
        client = boto3.client("dynamodb", "us-east-1")
        make_table(client, TABLE)
        yield CacheStore(client, TABLE, lambda: NOW)


def listed(name: str, *, read_only: bool = True) -> ListedTool:
    return ListedTool(name, f"Does {name}.", SCHEMA, {"readOnlyHint": read_only})


def stored(cache: CacheStore, *listings: tuple[McpServer, float, list[ListedTool]]) -> None:
    for server, at, tools in listings:
        store_listing(cache, server.name, specs_of(server, tools), at)


def test_nothing_stored_means_no_tools(cache: CacheStore) -> None:
    assert load_catalogue(cache, NOW) == Catalogue("", ())


def of_server(server: str, name: str, *, read_only: bool) -> ToolSpec:
    """A tool of a server as the catalogue has it: nothing that asks for less caution counts yet."""
    return ToolSpec(
        f"{server}_{name}", f"Does {name}.", SCHEMA, "mcp", server, repeatable=False, server=server,
        remote_name=name, effect="changes", hints={"readOnlyHint": read_only},
    )  # fmt: skip


def test_a_stored_catalogue_is_read_back_unchanged(cache: CacheStore) -> None:
    stored(
        cache,
        (GITHUB, NOW, [listed("list_issues"), listed("get_me")]),
        (OTHER, NOW, [listed("go", read_only=False)]),
    )
    catalogue = load_catalogue(cache, NOW)
    assert catalogue.tools == (
        of_server("github", "get_me", read_only=True),
        of_server("github", "list_issues", read_only=True),
        of_server("other", "go", read_only=False),
    )
    assert catalogue.named()["other_go"] == catalogue.tools[2]
    assert "go" not in catalogue.named()


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


def names(content: ServerTools) -> list[tuple[str, str]]:
    return [(spec.name, spec.remote_name) for spec in content.tools]


def test_every_tool_has_a_legal_name_of_its_own() -> None:
    odd = ["find.page/now", "x" * 100, "x" * 99 + "y", "a.b", "a_b", "文", "字"]
    forth = names(specs_of(OTHER, [listed(name) for name in odd]))
    assert forth == names(specs_of(OTHER, [listed(name) for name in reversed(odd)]))
    assert sorted(remote for _, remote in forth) == sorted(odd)
    assert len({name for name, _ in forth}) == len(odd)
    assert all(broken_rule(name, {"type": "object"}) == "" and len(name) <= 64 for name, _ in forth)
    assert {("other_find_page_now", "find.page/now"), ("other_a_b", "a_b")} <= set(forth)


def test_a_built_in_tool_keeps_its_name() -> None:
    ((name, remote),) = names(specs_of(McpServer("search", "http://x/"), [listed("conversation")]))
    assert name.startswith("search_conversation_")
    assert remote == "conversation"


def test_of_two_tools_with_one_name_the_first_is_meant() -> None:
    one, other = specs_of(OTHER, [listed("go")]).tools[0], specs_of(GITHUB, [listed("go")]).tools[0]
    both = Catalogue("", (one, replace(other, name=one.name)))
    profile = profile_named("assistant")
    assert both.named()[one.name] is one
    assert offered_tools(profile, (), both)[one.name].server == one.server
    own = in_house_specs(profile)
    usurper = replace(one, name=own[0].name)
    assert offered_tools(profile, own, Catalogue("", (usurper,)))[own[0].name] is own[0]


def test_tools_that_cannot_be_offered_are_left_out_with_the_reason() -> None:
    no_object = ListedTool("bad", "", freeze({"type": "string"}), hints={"readOnlyHint": True})
    union = ListedTool(
        "union", "", freeze({"type": "object", "anyOf": [{"required": ["a"]}]}), {"readOnlyHint": True}
    )
    invalid = ListedTool("wrong", "", freeze({"type": "object", "required": 7}), hints={"readOnlyHint": True})
    content = specs_of(OTHER, [no_object, union, invalid, listed("go"), listed("go"), listed("\ud800")])
    assert names(content) == [("other_go", "go"), ("other_union", "union")]
    assert dict(content.tools[1].input_schema) == {"type": "object"}
    reasons = {entry.name: entry.reason for entry in content.left_out}
    assert reasons == {
        "bad": "input_schema.type: Input should be 'object'",
        "wrong": "input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        "go": "the server lists it twice",
        "\ufffd": "its name is not valid Unicode",
    }


def test_a_server_offers_a_bounded_number_and_size() -> None:
    many = specs_of(OTHER, [listed(f"t{n:04}") for n in range(MAX_SERVER_TOOLS + MAX_LEFT_OUT + 5)])
    assert len(many.tools) == MAX_SERVER_TOOLS
    assert len(many.left_out) == MAX_LEFT_OUT + 1
    assert many.left_out[-1] == LeftOut("other", "*", "5 more cannot be offered")
    drawn = random.Random(1)
    content = specs_of(OTHER, [ListedTool(f"t{n}", drawn.randbytes(2_000).hex(), SCHEMA) for n in range(160)])
    assert 100 < len(content.tools) < 150
    assert len(zlib.compress(dump(content).encode(), 9)) < 300_000
    assert content.left_out[0].reason == "the server's tools have more than 300,000 bytes, compressed"


def test_what_is_left_out_is_stored(cache: CacheStore) -> None:
    stored(cache, (OTHER, NOW, [listed("go"), ListedTool("bad", "", freeze({"type": "string"}))]))
    module._DECODED.clear()
    catalogue = load_catalogue(cache, NOW)
    assert [tool.name for tool in catalogue.tools] == ["other_go"]
    assert [entry.name for entry in catalogue.left_out] == ["bad"]


def test_a_refused_tool_stays_out_until_the_listing_changes(cache: CacheStore) -> None:
    tools = [listed("go"), listed("no")]
    stored(cache, (GITHUB, NOW, [listed("get_me")]), (OTHER, NOW, tools))
    before = load_catalogue(cache, NOW)
    refused = before.named()["other_no"]
    version = leave_out(cache, before.version, refused, "refused", NOW, all_of=False)
    now = load_catalogue(cache, NOW)
    assert now.version == version != before.version
    assert [tool.name for tool in now.tools] == ["github_get_me", "other_go"]
    assert now.left_out == (LeftOut("other", "no", "refused"),)
    assert load_catalogue(cache, NOW, version=before.version) == before, "what is pinned stays"
    later = NOW + KEEP_VERSION - 10
    stored(cache, (GITHUB, later, [listed("get_me")]), (OTHER, later, tools))
    assert load_catalogue(cache, later) == now
    assert expires(cache, version.split("+")[1]) > later + 10
    stored(cache, (OTHER, later, [*tools, listed("new")]))
    assert "other_no" in load_catalogue(cache, later).named()


def expires(cache: CacheStore, version: str) -> int:
    key = {"pk": {"S": "mcp#catalogue"}, "sk": {"S": f"v#{version}"}}
    return int(cache.client.get_item(TableName=TABLE, Key=key)["Item"]["ttl"]["N"])


def test_all_tools_of_a_server_can_be_left_out(cache: CacheStore) -> None:
    stored(cache, (GITHUB, NOW, [listed("get_me")]), (OTHER, NOW, [listed("go"), listed("no")]))
    before = load_catalogue(cache, NOW)
    leave_out(cache, before.version, before.named()["other_no"], "refused", NOW, all_of=True)
    assert [tool.name for tool in load_catalogue(cache, NOW).tools] == ["github_get_me"]


def test_an_older_pin_does_not_bring_an_older_listing_back(cache: CacheStore) -> None:
    stored(cache, (OTHER, NOW, [listed("go"), listed("no")]))
    before = load_catalogue(cache, NOW)
    stored(cache, (OTHER, NOW, [listed("new")]))
    version = leave_out(cache, before.version, before.named()["other_no"], "refused", NOW, all_of=False)
    assert [tool.name for tool in load_catalogue(cache, NOW, version=version).tools] == ["other_go"]
    assert [tool.name for tool in load_catalogue(cache, NOW).tools] == ["other_new"]


def test_only_allowed_tools_are_offered() -> None:
    server = McpServer("docs", "http://docs/mcp", tools=("find",))
    assert names(specs_of(server, [listed("find"), listed("drop")])) == [("docs_find", "find")]
    assert specs_of(GITHUB, [listed("issue_write", read_only=False)]) == ServerTools()


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
