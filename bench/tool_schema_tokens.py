"""What the schemas of GitHub's tools cost in context: all, the server's default, ours, a few, deferred.

``uv run --group test python -m bench.tool_schema_tokens``: needs the real server (.ci/install_github_mcp.sh)
and no network. Tokens are the library's plain estimate (four characters each); compare them with each other.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.frozen import dumps
from dualtrack.models.prices import rates_of
from dualtrack.settings import Settings
from dualtrack.text import estimate_tokens
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import Auth, McpServer, github_server
from dualtrack.tools.mcp.refresh import LISTING_TOKEN
from dualtrack.tools.mcp.specs import specs_of

from tests.servers.github_api import FakeGitHub
from tests.servers.github_mcp_server import GitHubMcpServer, binary

if TYPE_CHECKING:
    from dualtrack.tool_values import ToolSpec

FEW: Final = (
    "search_repositories",
    "search_code",
    "get_file_contents",
    "list_issues",
    "issue_read",
    "list_pull_requests",
    "pull_request_read",
    "list_commits",
)
CALLS: Final = 3
"""Model calls of a typical chat with tools."""

RATES: Final = rates_of(Settings().dualtrack_model)
"""Of the default model, for a prompt that is not long."""

CACHE_FLOOR: Final = 512
"""The shortest prefix that the default model caches."""

SEARCH_TOOL: Final = 250
FOUND: Final = 5
"""Deferred loading (assumed, not measured): tokens of the search tool's definition, and tools returned by a search."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to offer the tools."""

    name: str
    arguments: tuple[str, ...]
    server: McpServer


def choices(url: str) -> tuple[Choice, ...]:
    auth = Auth("github_connection")
    every = McpServer("github", url, auth)
    ours = github_server(url)
    return (
        Choice("every toolset", ("--toolsets", "all"), every),
        Choice("every toolset, reading", ("--toolsets", "all", "--read-only"), every),
        Choice("the server's default", (), every),
        Choice("the server's default, reading", ("--read-only",), every),
        Choice("dualtrack's default", ("--toolsets", "all", "--read-only"), ours),
        Choice(
            "eight tools", ("--toolsets", "all", "--read-only"), McpServer("github", url, auth, tools=FEW)
        ),
    )


def tokens_of(specs: tuple[ToolSpec, ...]) -> list[int]:
    """One estimate per tool, as in a request."""
    shown = [
        {"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}
        for spec in specs
    ]
    return [estimate_tokens(dumps(schema)) for schema in shown]


def dollars(tokens: int, *, warm: bool) -> float:
    """What the schemas cost in 1,000 chats of `CALLS` model calls, cached where the model caches.

    ``warm``: another chat has used the prefix within five minutes. Tools and system prompt are the same
    for every user, so under traffic nearly every chat is warm.
    """
    if tokens < CACHE_FLOOR:
        return tokens * CALLS * RATES.input / 1e3
    first = RATES.cache_read if warm else RATES.cache_write
    return tokens * (first + (CALLS - 1) * RATES.cache_read) / 1e3


def deferred(tokens: list[int]) -> tuple[int, float]:
    """The same with tool search: the search tool, and the schemas that one search returns.

    They differ from chat to chat, so they are never in the cache already. In favour of deferring, the search itself is
    assumed free and its results cached from then on.
    """
    tokens_found = SEARCH_TOOL + round(FOUND * statistics.mean(tokens))
    return tokens_found, tokens_found * (RATES.cache_write + (CALLS - 1) * RATES.cache_read) / 1e3


def main() -> None:
    if binary() is None:
        raise SystemExit("github-mcp-server is not installed: bash .ci/install_github_mcp.sh")
    print(f"{'offered':32} {'tools':>5} {'tokens':>7} {'$ cold':>8} {'$ warm':>8}   deferred {'$':>8}")
    with FakeGitHub({}) as github:
        for number in range(len(choices(""))):
            with GitHubMcpServer(github.url) as server:
                choice = choices(server.url)[number]
                server.kill()
                server.arguments = choice.arguments
                server.start()
                listed = McpClient().list_tools(choice.server, LISTING_TOKEN).tools
            tokens = tokens_of(specs_of(choice.server, listed).tools)
            later, later_dollars = deferred(tokens)
            cold, warm = dollars(sum(tokens), warm=False), dollars(sum(tokens), warm=True)
            print(
                f"{choice.name:32} {len(tokens):5} {sum(tokens):7} {cold:8.2f} {warm:8.2f}"
                f"   {later:8} {later_dollars:8.2f}"
            )


if __name__ == "__main__":
    main()
