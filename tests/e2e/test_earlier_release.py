"""Executions started before a deployment: old definition, new functions, and both names of a tool kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.executions import owner_of, start_execution
from dualtrack.chat.start_chat import NewChat, start_chat
from dualtrack.requests import ChatRef
from dualtrack.runtime.executions import Executions
from dualtrack.storage.chats import turn_key

from tests.drivers.earlier_machine import machine_of_release_1
from tests.drivers.world import NoExecutions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

    from tests.clients.stack_client import Person, Root
    from tests.e2e.conftest import Script
    from tests.servers.tool_server import ToolServer


@pytest.fixture
def old_executions(root: Root) -> Iterator[Executions]:
    """A machine with release 1's definition."""
    with machine_of_release_1(root) as executions:
        yield executions


def admitted(root: Root, person: Person, message: str, executions: Any) -> Chat:
    """A chat as POST /v1/chats admits it, started by these executions."""
    chat = start_chat(root.stores(), executions, NewChat(person.id, message), None)
    person.chats.append(chat.chat_id)
    return chat


def test_an_execution_of_release_1_runs_every_kind_of_tool(
    root: Root, ann: Person, script: Script, tools: ToolServer, old_executions: Executions
) -> None:
    script.asks(
        ("retrieve_documentation", {"query": "How do I set up OAuth for X ads?"}),
        ("retrieve_full_context", {"id": "q1"}),
        ("kit_echo", {"text": script.marker}),
    )
    script.refuses(529)  # it has no state to wait in; the step's retry succeeds
    script.says("All three.")
    started = admitted(root, ann, script.question(), old_executions)
    chat = ann.finish(started.chat_id)
    assert (chat["status"], chat["response"], chat["credits_used"]) == ("done", "All three.", 5 + 10 + 2 + 2)
    assert [(call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [
        ("retrieve_documentation", False),
        ("retrieve_full_context", False),
        ("kit_echo", False),
    ]
    assert tools.calls[f"echo:{script.marker}"] == 1
    assert old_executions.status(started.chat_id) in {"RUNNING", "SUCCEEDED"}  # it ends after the last event
    assert root.executions().status(started.chat_id) is None


@pytest.fixture
def by_the_alias(root: Root) -> Iterator[Executions]:
    """The stack's machine under a version and an alias, as in stages on AWS (docs/releases.md)."""
    client = root.client("stepfunctions")
    version = client.publish_state_machine_version(stateMachineArn=root.machine)["stateMachineVersionArn"]
    alias = client.create_state_machine_alias(
        name="live", routingConfiguration=[{"stateMachineVersionArn": version, "weight": 100}]
    )["stateMachineAliasArn"]
    yield Executions(client, alias)
    client.delete_state_machine_alias(stateMachineAliasArn=alias)
    client.delete_state_machine_version(stateMachineVersionArn=version)


def test_an_execution_started_by_the_alias_is_found_by_alias_and_machine(
    root: Root, ann: Person, script: Script, by_the_alias: Executions
) -> None:
    """By callers of the alias, and by callers of the machine, such as another release's sweep."""
    script.says("By the alias.")
    started = admitted(root, ann, script.question(), by_the_alias)
    chat = ann.finish(started.chat_id)
    assert (chat["status"], chat["response"]) == ("done", "By the alias.")
    for executions in (by_the_alias, root.executions()):
        assert executions.status(started.chat_id) in {"RUNNING", "SUCCEEDED"}
        assert owner_of(executions, started.chat_id) == ann.id


def test_a_call_recorded_by_the_next_release_is_run(
    root: Root, ann: Person, script: Script, tools: ToolServer
) -> None:
    """It records ``mcp`` where this one records ``github``."""
    script.asks(("kit_echo", {"text": script.marker}))
    script.says("Heard.")
    started = admitted(root, ann, script.question(), NoExecutions())
    ref = ChatRef(ann.id, started.chat_id, started.conversation_id)
    outcome = root.invoke("Turn", asdict(ref))
    assert outcome["calls"] == [{"id": "q1-t1", "fn": "github"}]
    rename_kind(root, started)
    outcome = root.invoke("Turn", asdict(ref))
    assert outcome["calls"] == [{"id": "q1-t1", "fn": "mcp"}]
    start_execution(root.executions(), ref)
    chat = ann.finish(started.chat_id)
    assert (chat["status"], chat["response"], chat["credits_used"]) == ("done", "Heard.", 5 + 2)
    assert [(call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [("kit_echo", False)]
    assert tools.calls[f"echo:{script.marker}"] == 1


def rename_kind(root: Root, chat: Chat) -> None:
    """Change the recorded turn to the next release's form."""
    client, table = root.client("dynamodb"), root.settings.chats_table
    key = {"pk": {"S": chat.pk}, "sk": {"S": turn_key(1)}}
    item = client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
    (name,) = [name for name, value in item.items() if '"fn":"github"' in value.get("S", "")]
    item[name]["S"] = item[name]["S"].replace('"fn":"github"', '"fn":"mcp"')
    client.put_item(TableName=table, Item=item)
