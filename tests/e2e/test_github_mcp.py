"""The real github-mcp-server in HTTP mode, between our client and a fake GitHub."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.frozen import freeze
from dualtrack.profiles import profile_named
from dualtrack.tools.mcp.client import McpClient, Retries
from dualtrack.tools.mcp.config import McpServer, github_server
from dualtrack.tools.mcp.execute import CallTokens, execute_mcp_call
from dualtrack.tools.mcp.hints import believed
from dualtrack.tools.mcp.refresh import LISTING_TOKEN
from dualtrack.tools.mcp.specs import specs_of

from tests.servers.github_api import FakeGitHub
from tests.servers.github_mcp_server import GitHubMcpServer, required_binary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.tool_values import ToolResult, ToolSpec

TOKENS = {"github_pat_ana": "ana", "github_pat_ben": "ben"}
USERS = {"ana": "github_pat_ana", "ben": "github_pat_ben", "eve": "github_pat_wrong"}
HELLO = {"owner": "octo", "repo": "hello"}


class Stack:
    """One GitHub, one MCP server, one client; calls are made as different users."""

    def __init__(self, github: FakeGitHub, mcp: GitHubMcpServer) -> None:
        self.github, self.mcp = github, mcp
        self.server = github_server(mcp.url)
        self.client = McpClient(seconds=20)
        self.deps = (self.server,), self.client, CallTokens(USERS.get, lambda _: "")
        self.specs = self.listed(self.server)

    def listed(self, server: McpServer) -> dict[str, ToolSpec]:
        listed = self.client.list_tools(server, LISTING_TOKEN).tools
        tools = specs_of(server, listed).tools
        return {spec.name: believed(spec, profile_named("assistant")) for spec in tools}

    def call(self, user: str, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        return execute_mcp_call(self.specs[tool], freeze(arguments), user, *self.deps)


@pytest.fixture
def stack() -> Iterator[Stack]:
    required_binary()
    with FakeGitHub(dict(TOKENS)) as github, GitHubMcpServer(github.url) as mcp:
        yield Stack(github, mcp)
        assert github.unexpected == []


def test_listing_offers_only_reading_tools_and_sends_github_nothing(stack: Stack) -> None:
    assert stack.github.requests == []
    assert {"github_search_repositories", "github_get_file_contents", "github_list_issues"} <= set(
        stack.specs
    )
    assert "github_get_repository_tree" in stack.specs, "the toolset git is enabled"
    assert not {name for name in stack.specs if "create" in name or "write" in name or "delete" in name}
    assert all(
        spec.does == "reads" and spec.repeatable and spec.price_class == "github"
        for spec in stack.specs.values()
    )


def test_the_three_most_common_calls(stack: Stack) -> None:
    repositories = stack.call("ana", "github_search_repositories", {"query": "hello"})
    assert '"full_name":"octo/hello"' in repositories.content
    file = stack.call("ana", "github_get_file_contents", {**HELLO, "path": "README.md"})
    assert "The answer is 42." in file.content
    assert file.content.count("The answer is 42.") == 1
    issues = stack.call("ana", "github_list_issues", HELLO)
    assert "Crash on start" in issues.content
    assert "Document the flags" in issues.content
    assert not any(result.is_error for result in (repositories, file, issues))
    assert stack.github.logins() == {"ana"}


def test_a_missing_resource_is_an_error_result(stack: Stack) -> None:
    missing = stack.call("ana", "github_list_issues", {"owner": "octo", "repo": "nope"})
    assert missing.is_error
    assert "octo/nope" in missing.content
    assert stack.call("ana", "github_get_file_contents", {**HELLO, "path": "nope.md"}).is_error


def test_a_used_up_rate_limit_says_when_it_resets(stack: Stack) -> None:
    stack.github.limited.add("ben")
    limited = stack.call("ben", "github_search_repositories", {"query": "hello"})
    assert limited.is_error
    assert "rate limit exceeded" in limited.content
    assert "Retry after" in limited.content
    assert "do not repeat the call" in limited.content
    assert not stack.call("ana", "github_search_repositories", {"query": "hello"}).is_error


@pytest.mark.parametrize("tool", ["github_search_repositories", "github_list_issues"])
def test_a_wrong_token_comes_with_what_to_do(stack: Stack, tool: str) -> None:
    arguments = {"query": "hello"} if tool == "github_search_repositories" else HELLO
    refused = stack.call("eve", tool, arguments)
    assert refused.is_error
    assert "PUT /v1/connections/github" in refused.content
    assert "github_pat_wrong" not in refused.content


def test_two_concurrent_users_see_only_their_own(stack: Stack) -> None:
    plan = {"owner": "ana", "repo": "plans", "path": "PLAN.md"}
    users = ["ana", "ben"] * 6
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda user: stack.call(user, "github_get_file_contents", plan), users))
    seen = {
        (user, result.is_error, "Ana's plan" in result.content)
        for user, result in zip(users, results, strict=True)
    }
    assert seen == {("ana", False, True), ("ben", True, False)}


def test_the_client_waits_for_a_restarting_server(stack: Stack) -> None:
    stack.mcp.kill()
    down = (stack.server,), McpClient(retries=Retries(waits=())), CallTokens(USERS.get, lambda _: "")
    gone = execute_mcp_call(stack.specs["github_list_issues"], freeze(HELLO), "ana", *down)
    assert gone.is_error
    assert "cannot be reached" in gone.content

    back = Retries(sleep=lambda _: None if stack.mcp.running else stack.mcp.start())
    waiting = (stack.server,), McpClient(retries=back), CallTokens(USERS.get, lambda _: "")
    again = execute_mcp_call(stack.specs["github_list_issues"], freeze(HELLO), "ana", *waiting)
    assert "Crash on start" in again.content


def test_tools_and_toolsets_are_chosen_by_configuration(stack: Stack) -> None:
    chosen = McpServer(
        "github",
        stack.mcp.url,
        stack.server.auth,
        "github",
        headers=freeze({"X-MCP-Toolsets": "issues"}),
        read_only=True,
    )
    assert "github_list_issues" in stack.listed(chosen)
    assert "github_search_repositories" not in stack.listed(chosen)
    only_me = McpServer("github", stack.mcp.url, stack.server.auth, "github", tools=("get_me",))
    assert list(stack.listed(only_me)) == ["github_get_me"]


def test_writing_tools_are_offered_only_when_enabled_and_are_not_repeatable() -> None:
    required_binary()
    with FakeGitHub(dict(TOKENS)) as github, GitHubMcpServer(github.url, ("--toolsets", "issues")) as mcp:
        server = McpServer("github", mcp.url, github_server("http://x/").auth, "github")
        stack = Stack(github, mcp)
        assert "github_issue_write" not in stack.specs, "the default configuration reads only"
        stack.specs = stack.listed(server)
        for name, does in (("github_issue_write", "changes"), ("github_list_issues", "reads")):
            assert (stack.specs[name].does, stack.specs[name].repeatable) == (does, does == "reads")
        new = {**HELLO, "method": "create", "title": "New"}
        assert stack.call("ana", "github_issue_write", new).is_error, "a reading configuration cannot write"
        assert github.created == []
        stack.deps = (server,), stack.client, CallTokens(USERS.get, lambda _: "")
        assert not stack.call("ana", "github_issue_write", new).is_error
        assert github.created == [("ana", "New")]
