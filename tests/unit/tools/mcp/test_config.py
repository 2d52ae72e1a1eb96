"""MCP_SERVERS: what is accepted, what is refused, and that dumping and parsing agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dualtrack.tools.mcp.config import (
    Auth,
    dump_servers,
    find_server,
    github_server,
    parse_servers,
)


def server_list(**fields: Any) -> str:
    return json.dumps([{"name": "docs", "url": "https://docs.example/mcp", **fields}])


def test_a_second_server_needs_configuration_only() -> None:
    second = json.loads(server_list(auth={"type": "secret", "secret_id": "docs-key"}, tools=["find"]))
    servers = parse_servers(
        json.dumps([*json.loads(dump_servers((github_server("http://gh:8082/"),))), *second])
    )
    assert [server.name for server in servers] == ["github", "docs"]
    assert servers[1].auth == Auth("secret", "docs-key")
    assert (servers[1].prefix, servers[1].price_class) == ("docs", "other")


def test_github_is_read_only_by_default_and_charged_as_github() -> None:
    server = github_server("http://gh:8082/")
    assert server.price_class == "github"
    assert server.allows("list_issues", read_only=True)
    assert not server.allows("issue_write", read_only=False)
    assert server.headers["X-MCP-Readonly"] == "true"


def test_a_dumped_list_is_parsed_back() -> None:
    servers = (
        github_server("http://gh:8082/"),
        *parse_servers(server_list(auth={"type": "secret", "secret_id": "s"})),
    )
    assert parse_servers(dump_servers(servers)) == servers


@pytest.mark.parametrize("text", ["", "  ", "[]"])
def test_no_servers(text: str) -> None:
    assert parse_servers(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        "[{}]",
        server_list(name="Docs"),
        server_list(name="docs\n"),
        server_list(url="ftp://x/"),
        server_list(url="https://user:pw@x/"),
        server_list(url=7),
        server_list(extra=1),
        server_list(auth={"type": "secret"}),
        server_list(auth={"type": "none", "secret_id": "x"}),
        server_list(auth={"type": "basic"}),
        server_list(auth="none"),
        server_list(price_class="documentation"),
        server_list(tool_prefix="Bad-Prefix"),
        server_list(tools="find"),
        server_list(tools=[1]),
        server_list(headers={"Authorization": "Bearer x"}),
        server_list(headers={"MCP-Protocol-Version": "1"}),
        server_list(headers={"X-A": 1}),
        server_list(read_only="yes"),
        json.dumps([*json.loads(server_list()), *json.loads(server_list())]),
        json.dumps(
            [*json.loads(server_list(name="a-b")), *json.loads(server_list(name="other", tool_prefix="a_b"))]
        ),
        json.dumps([{"name": f"s{n}", "url": "http://x/"} for n in range(21)]),
    ],
)
def test_a_wrong_list_is_refused_entirely(text: str) -> None:
    with pytest.raises(ValueError, match="MCP_SERVERS"):
        parse_servers(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "git"}, {"name": "git-hub"}),
        ({"name": "git-hub"}, {"name": "git"}),
        ({"name": "a", "tool_prefix": "git"}, {"name": "b", "tool_prefix": "git_"}),
        ({"name": "a", "tool_prefix": "x"}, {"name": "x"}),
    ],
)
def test_prefixes_that_overlap_are_refused(one: dict[str, str], other: dict[str, str]) -> None:
    """``git_hub_find`` would be ``hub_find`` of the one or ``find`` of the other."""
    listed = json.dumps([{"url": "http://x/", **one}, {"url": "http://y/", **other}])
    with pytest.raises(
        ValueError, match=rf"prefixes \w+ of {one['name']} and \w+ of {other['name']} overlap"
    ):
        parse_servers(listed)


def test_prefixes_that_only_begin_alike_are_taken() -> None:
    listed = json.dumps([{"name": "git", "url": "http://x/"}, {"name": "github", "url": "http://y/"}])
    assert [server.prefix for server in parse_servers(listed)] == ["git", "github"]


def test_find_server() -> None:
    servers = parse_servers(server_list())
    assert find_server(servers, "docs") is servers[0]
    assert find_server(servers, "github") is None
