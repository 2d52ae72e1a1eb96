"""GitHub through the whole stack: the API, the workflow, the real github-mcp-server, a fake GitHub.

The deployed stack is configured with the server only by ``GITHUB_MCP_URL``, as by an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack

from tests.clients.stack_client import Person, Root
from tests.e2e.test_workflow import states
from tests.servers.github_api import FakeGitHub
from tests.servers.github_mcp_server import GitHubMcpServer, required_binary
from tests.servers.provider import model_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script

HELLO = {"owner": "octo", "repo": "hello"}
ISSUES = ("github_list_issues", HELLO)
README = ("github_get_file_contents", {**HELLO, "path": "README.md"})
PLAN = ("github_get_file_contents", {"owner": "ana", "repo": "plans", "path": "PLAN.md"})


@dataclass(frozen=True, slots=True)
class World:
    """The stack, the MCP server and GitHub."""

    root: Root
    mcp: GitHubMcpServer
    github: FakeGitHub


@pytest.fixture(scope="module")
def world(model: OfflineModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    required_binary()
    state_dir = tmp_path_factory.mktemp("github-stack")
    tokens = {"github_pat_ana": "ana", "github_pat_ben": "ben"}
    with FakeGitHub(tokens) as github, GitHubMcpServer(github.url) as mcp, serve_sample_docs() as documents:
        environment = {
            **model_settings(model),
            "CONTEXT7_BASE_URL": documents,
            "GITHUB_MCP_URL": mcp.url,
        }
        with LocalStack(state_dir, environment=environment) as stack:
            root = Root(stack, state_dir)
            assert root.invoke("Mcp", {"action": "refresh"}) == {"servers": {"github": "listed 23"}}
            yield World(root, mcp, github)
        assert github.unexpected == []
    # No token in the tables, objects, events and logs that the emulator has on disk.
    assert not [path for path in state_dir.rglob("*") if path.is_file() and _holds_a_token(path)]


def _holds_a_token(path: Path) -> bool:
    content = path.read_bytes()
    return any(token in content for token in (b"github_pat_ana", b"github_pat_ben", b"github_pat_wrong"))


@pytest.fixture
def user(world: World) -> Iterator[Callable[[str], Person]]:
    """A user, with a GitHub connection if a token is given."""
    people: list[Person] = []

    def make(token: str = "") -> Person:
        person = Person(world.root.stack.url, world.root.stack.token(f"user-{len(people)}-{id(people)}"))
        people.append(person)
        if token:
            put = person.http.put("/v1/connections/github", json={"token": token})
            assert put.is_success, put.text
            assert token not in put.text
        return person

    yield make
    for person in people:
        person.close()


def test_documentation_then_two_github_tools_cost_21_credits_and_take_twelve_states(
    world: World, user: Callable[[str], Person], script: Script
) -> None:
    ana = user("github_pat_ana")
    script.asks(("retrieve_documentation", {"query": "How do I set up OAuth for X ads?"}))
    script.asks(ISSUES, README)
    script.says("Here is what I found.")
    chat = ana.ask(script.question())
    assert (chat["status"], chat["turns"], chat["credits_used"]) == ("done", 3, 21)
    assert states(world.root.history(chat["chat_id"])) == 12
    assert [(call["id"], call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [
        ("q1-t1", "retrieve_documentation", False),
        ("q1-t2", "github_list_issues", False),
        ("q1-t3", "github_get_file_contents", False),
    ]
    conversation = chat["conversation_id"]
    assert "Crash on start" in ana.record(conversation, "q1-t2")["result"]
    assert "The answer is 42." in ana.record(conversation, "q1-t3")["result"]
    assert [source["title"] for source in chat["sources"]][-2:] == ["octo/hello", "octo/hello/README.md"]
    summarised = [record["record_id"] for record in ana.records(conversation, "summarised")]
    assert summarised == ["q1", "q1-t1-sum", "q1-t2-sum", "q1-t3-sum", "q1-r-sum"]


def test_the_tools_are_listed_with_their_price(user: Callable[[str], Person]) -> None:
    tools = {tool["name"]: tool for tool in user("").get("/v1/tools")["tools"]}
    assert tools["github_list_issues"]["price"] == 3
    assert "owner" in tools["github_list_issues"]["input_schema"]["properties"]
    assert not [name for name in tools if name.endswith(("_write", "_create"))]


def test_a_connection_is_stored_shown_and_deleted(user: Callable[[str], Person], script: Script) -> None:
    ana = user("github_pat_ana")
    shown = ana.http.get("/v1/connections/github")
    assert shown.is_success
    assert "github_pat" not in shown.text
    assert ana.http.delete("/v1/connections/github").is_success
    script.asks(ISSUES)
    script.says("You are not connected.")
    chat = ana.ask(script.question())
    result = ana.record(chat["conversation_id"], "q1-t1")
    assert result["is_error"]
    assert "PUT /v1/connections/github" in result["result"]


def test_a_refusal_by_github_never_fails_a_chat(
    world: World, user: Callable[[str], Person], script: Script
) -> None:
    ben, eve = user("github_pat_ben"), user("github_pat_wrong")
    missing = ("github_list_issues", {"owner": "octo", "repo": "nope"})
    script.asks(missing, ("github_list_issues", {"owner": 7}), ("github_no_such_tool", {}))
    script.says("Nothing there.")
    chat = ben.ask(script.question())
    assert chat["status"] == "done"
    results = {call["id"]: ben.record(chat["conversation_id"], call["id"]) for call in chat["tool_calls"]}
    assert all(record["is_error"] for record in results.values())
    assert "octo/nope" in results["q1-t1"]["result"]
    assert "Unknown tool: github_no_such_tool" in results["q1-t3"]["result"]

    world.github.limited.add("ben")
    limited, wrong = script.branch("limited"), script.branch("wrong")
    try:
        limited.asks(("github_search_repositories", {"query": "hello"}))
        limited.says("Later.")
        ended = ben.ask(limited.question())
    finally:
        world.github.limited.clear()
    assert "Retry after" in ben.record(ended["conversation_id"], "q1-t1")["result"]

    wrong.asks(ISSUES)
    wrong.says("Your token is wrong.")
    ended = eve.ask(wrong.question())
    result = eve.record(ended["conversation_id"], "q1-t1")["result"]
    assert "did not accept the token" in result
    assert "github_pat_wrong" not in result


def test_two_concurrent_users_see_only_their_own(user: Callable[[str], Person], script: Script) -> None:
    ana, ben = user("github_pat_ana"), user("github_pat_ben")
    started = {}
    for name, person in (("ana", ana), ("ben", ben)):
        own = script.branch(name)
        own.asks(PLAN, PLAN)
        own.says("Done.")
        started[name] = person.start(own.question())
    chats = {"ana": ana.finish(started["ana"]["chat_id"]), "ben": ben.finish(started["ben"]["chat_id"])}
    assert [call["is_error"] for call in chats["ana"]["tool_calls"]] == [False, False]
    assert [call["is_error"] for call in chats["ben"]["tool_calls"]] == [True, True]
    assert "Ana's plan" in ana.record(chats["ana"]["conversation_id"], "q1-t2")["result"]


def test_a_server_that_dies_in_the_middle_costs_one_result(
    world: World, user: Callable[[str], Person], script: Script
) -> None:
    ana = user("github_pat_ana")
    script.asks(ISSUES)
    script.asks(README)
    script.says("Half of it.")
    world.mcp.kill()
    try:
        started = ana.start(script.question())
        # Restarted as soon as the first call has its result, so the second one meets a new server.
        ana.until(started["chat_id"], lambda event: event.kind == "tool_result")
    finally:
        world.mcp.start()
    chat = ana.finish(started["chat_id"])
    assert chat["status"] == "done"
    first, second = (ana.record(chat["conversation_id"], f"q1-t{number}") for number in (1, 2))
    assert first["is_error"]
    assert "cannot be reached" in first["result"]
    assert not second["is_error"]
    assert "The answer is 42." in second["result"]
