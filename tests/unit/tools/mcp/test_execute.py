"""A call for a user: whose token, which arguments, and the result for the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from dualtrack.frozen import freeze
from dualtrack.tool_values import Media, Source, ToolResult, ToolSpec, failed
from dualtrack.tools.mcp.config import Auth, McpServer, github_server
from dualtrack.tools.mcp.execute import CallTokens, execute_mcp_call
from dualtrack.tools.mcp.failures import McpFailure, RequestFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = freeze(
    {
        "type": "object",
        "properties": {"owner": {"type": "string"}, "page": {"type": "integer", "minimum": 1}},
        "required": ["owner"],
    }
)
READ = ToolSpec("github_list_issues", "", SCHEMA, "mcp", "github", True, "github", "list_issues")
WRITE = replace(READ, name="github_issue_write", repeatable=False, remote_name="issue_write")
KEYED = McpServer("docs", "http://docs/mcp", Auth("secret", "docs-key"), tools=("find",))
OPEN = McpServer("open", "http://open/mcp")
ARGUMENTS = freeze({"owner": "octo"})


@dataclass
class Calls:
    """A server with a scripted answer that records the token of each call."""

    answer: ToolResult | RequestFailure = field(default_factory=lambda: ToolResult("ok"))
    tokens: list[str | None] = field(default_factory=list)

    def call_tool(
        self, server: McpServer, spec: ToolSpec, arguments: Mapping[str, Any], token: str | None
    ) -> ToolResult:
        self.tokens.append(token)
        if isinstance(self.answer, RequestFailure):
            raise McpFailure(self.answer)
        return self.answer


def deps(
    calls: Calls,
    *,
    own: Mapping[str, str] = freeze({}),
    secrets: Mapping[str, str] = freeze({}),
    opted: str = "",
) -> tuple[tuple[McpServer, ...], Calls, CallTokens]:
    servers = (github_server("http://gh/"), KEYED, OPEN)
    return servers, calls, CallTokens(own.get, lambda name: secrets[name], opted)


def test_each_user_calls_with_their_own_token() -> None:
    calls = Calls()
    for user in ("ana", "ben"):
        execute_mcp_call(
            READ,
            ARGUMENTS,
            user,
            *deps(calls, own={"ana": "ghu_a", "ben": "ghu_b"}, secrets={"gh": "ghs_d"}, opted="gh"),
        )
    assert calls.tokens == ["ghu_a", "ghu_b"]


def test_a_user_without_one_calls_with_the_deployments_if_the_operator_opted_in() -> None:
    calls = Calls()
    execute_mcp_call(READ, ARGUMENTS, "ana", *deps(calls, secrets={"gh": "ghs_d"}, opted="gh"))
    assert calls.tokens == ["ghs_d"]


@pytest.mark.parametrize(("secrets", "opted"), [({}, ""), ({"gh": ""}, "gh")])
def test_without_any_token_the_result_says_what_the_user_must_do(secrets: dict[str, str], opted: str) -> None:
    calls = Calls()
    outcome = execute_mcp_call(READ, ARGUMENTS, "ana", *deps(calls, secrets=secrets, opted=opted))
    assert outcome.is_error
    assert "PUT /v1/connections/github" in outcome.content
    assert calls.tokens == []


def test_other_servers_never_see_a_users_github_token() -> None:
    calls = Calls()
    known = deps(calls, own={"ana": "ghu_a"}, secrets={"docs-key": "k"})
    execute_mcp_call(replace(READ, server="docs", remote_name="find"), ARGUMENTS, "ana", *known)
    execute_mcp_call(replace(READ, server="open"), ARGUMENTS, "ana", *known)
    assert calls.tokens == ["k", None]


def test_a_server_no_longer_configured_is_not_called() -> None:
    calls = Calls()
    for spec in (replace(READ, server="gone"), replace(READ, server="docs", remote_name="drop")):
        assert execute_mcp_call(spec, ARGUMENTS, "ana", *deps(calls)).is_error
    assert calls.tokens == []


def test_wrong_arguments_are_never_sent() -> None:
    calls = Calls()
    outcome = execute_mcp_call(READ, freeze({"page": 0}), "ana", *deps(calls, own={"ana": "ghu_a"}))
    assert outcome == failed(
        "bad arguments: $: 'owner' is a required property; $.page: 0 is less than the minimum of 1"
    )
    assert calls.tokens == []


@pytest.mark.parametrize(
    ("spec", "reached", "unknown"), [(READ, True, False), (WRITE, True, True), (WRITE, False, False)]
)
def test_after_a_failed_writing_call_the_outcome_is_unknown(
    spec: ToolSpec, reached: bool, unknown: bool
) -> None:
    calls = Calls(RequestFailure("timeout", "github", reached=reached))
    outcome = execute_mcp_call(spec, ARGUMENTS, "ana", *deps(calls, own={"ana": "ghu_a"}))
    assert outcome.is_error
    assert ("not known" in outcome.content) is unknown


@pytest.mark.parametrize(
    "answer",
    [
        failed("failed to list issues: non-200 OK status code: 401 Unauthorized"),
        failed("GET https://api.github.com/user: 401 Bad credentials []"),
        RequestFailure("unauthorized", "github", status=401),
    ],
)
def test_for_a_refused_token_the_result_says_what_to_do(answer: ToolResult | RequestFailure) -> None:
    outcome = execute_mcp_call(READ, ARGUMENTS, "ana", *deps(Calls(answer), own={"ana": "ghu_a"}))
    assert "PUT /v1/connections/github" in outcome.content


def test_a_rate_limit_keeps_its_reset() -> None:
    answer = failed("search: GitHub API rate limit exceeded. Retry after 10m0s.")
    outcome = execute_mcp_call(READ, ARGUMENTS, "ana", *deps(Calls(answer), own={"ana": "ghu_a"}))
    assert "Retry after 10m0s" in outcome.content
    assert "do not repeat the call" in outcome.content


def test_a_result_that_only_mentions_tokens_is_unchanged() -> None:
    answer = ToolResult("the rate limit; 401 Bad credentials", sources=(Source("octo"),))
    assert execute_mcp_call(READ, ARGUMENTS, "ana", *deps(Calls(answer), own={"ana": "ghu_a"})) == answer


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"owner": "octo", "repo": "hello"}, "octo/hello"),
        ({"owner": "octo", "repo": "hello", "path": "/src/app.py"}, "octo/hello/src/app.py"),
        ({"owner": "octo", "repo": "hello", "issue_number": 7}, "octo/hello#7"),
        ({"query": "language:python"}, "GitHub: language:python"),
    ],
)
def test_the_subject_of_a_github_call_is_its_source(arguments: dict[str, Any], title: str) -> None:
    anything = replace(READ, input_schema=freeze({"type": "object"}))
    outcome = execute_mcp_call(anything, freeze(arguments), "ana", *deps(Calls(), own={"ana": "ghu_a"}))
    assert outcome.sources == (Source(title),)


def test_no_source_without_an_answer_or_beside_the_servers_own() -> None:
    own = ToolResult("ok", sources=(Source("Guide", "https://docs.test/"),))
    for answer in (failed("no"), own):
        outcome = execute_mcp_call(READ, ARGUMENTS, "ana", *deps(Calls(answer), own={"ana": "ghu_a"}))
        assert outcome.sources == answer.sources


def test_githubs_advice_is_only_for_github() -> None:
    answer = failed("401 Unauthorized")
    open_read = replace(READ, server="open")
    assert execute_mcp_call(open_read, ARGUMENTS, "ana", *deps(Calls(answer))) == answer


def test_a_token_echoed_by_the_server_is_not_recorded() -> None:
    """Neither in the text nor in other fields, nor as part of an address."""
    secret = "ghu_secret/+"
    echo = ToolResult(
        f"Authorization: Bearer {secret}",
        sources=(
            Source(f"Page for {secret}", f"https://docs.test/?token={quote(secret, safe='')}#{secret}"),
        ),
        media=(Media(f"image/png; {secret}", "AAAA"),),
    )
    outcome = execute_mcp_call(READ, ARGUMENTS, "ana", *deps(Calls(echo), own={"ana": secret}))
    assert outcome == ToolResult(
        "Authorization: Bearer [token]",
        sources=(Source("Page for [token]", "https://docs.test/?token=[token]#[token]"),),
        media=(Media("image/png; [token]", "AAAA"),),
    )
