"""The deployed workflow: its states, parallel tools, the limit of turns, its payloads."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.executions import owner_of
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.clock import iso
from dualtrack.ids import execution_name, new_conversation_id, query_id, response_id, summary_id, tool_id
from dualtrack.memory.full_history import MemorySums
from dualtrack.memory.records import QueryTrack, Record, ToolCallDetail, TrackBlock
from dualtrack.runtime.executions import Executions
from dualtrack.storage.conversations import Conversation, list_position

from tests.drivers.world import store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer

STATE_LIMIT = 2 * 1024


def states(history: list[dict[str, Any]]) -> int:
    """The states that an execution without retries went through.

    The emulator lists states inside a Map only as tasks: tasks beyond those of the top-level states ran there.
    """
    kinds = [str(event["type"]) for event in history]
    inside = kinds.count("TaskScheduled") - kinds.count("TaskStateEntered")
    return sum(kind.endswith("StateEntered") for kind in kinds) + inside


def payloads(history: list[dict[str, Any]]) -> Iterator[str]:
    """Every payload in a history, as JSON text."""
    for event in history:
        for details in event.values():
            if isinstance(details, dict):
                yield from (details[key] for key in ("input", "output", "parameters") if key in details)


def test_a_question_without_tools_takes_three_states(root: Root, ann: Person, script: Script) -> None:
    script.says("Forty-two.")
    chat = ann.ask(script.question())
    assert (chat["status"], chat["stop"], chat["turns"], chat["response"]) == (
        "done",
        "complete",
        1,
        "Forty-two.",
    )
    assert (chat["credits_used"], chat["credits_remaining"]) == (5, 45)
    assert states(root.history(chat["chat_id"])) == 3


def test_two_parallel_tools_take_eight_states(root: Root, ann: Person, script: Script) -> None:
    script.asks(("kit_echo", {"text": "a"}), ("kit_echo", {"text": "b"}), text="Let me look.")
    script.says("Both.")
    chat = ann.ask(script.question())
    assert (chat["status"], chat["turns"], chat["response"]) == ("done", 2, "Both.")
    assert chat["credits_used"] == 5 + 2 + 2
    assert states(root.history(chat["chat_id"])) == 8
    kept = [record["record_id"] for record in ann.records(chat["conversation_id"])]
    assert kept == ["q1", "q1-a1", "q1-t1", "q1-t2", "q1-r"]


def test_documentation_then_two_tools_take_twelve_states(root: Root, ann: Person, script: Script) -> None:
    script.asks(("retrieve_documentation", {"query": "How do I set up OAuth for X ads?"}))
    script.asks(("kit_echo", {"text": "a"}), ("kit_echo", {"text": "b"}))
    script.says("Done.")
    chat = ann.ask(script.question())
    assert (chat["status"], chat["turns"], chat["credits_used"]) == ("done", 3, 5 + 10 + 2 + 2)
    assert states(root.history(chat["chat_id"])) == 12


def test_all_tools_of_a_turn_run_in_parallel(tools: ToolServer, ann: Person, script: Script) -> None:
    size = 4
    meet = ("kit_meet", {"group": script.marker, "size": size})
    script.asks(*[meet] * size)
    script.says("They met.")
    chat = ann.ask(script.question())
    assert [call["is_error"] for call in chat["tool_calls"]] == [False] * size
    assert tools.calls[f"meet:{script.marker}"] == size
    assert ann.record(chat["conversation_id"], "q1-t4")["result"] == (
        f"All {size} of {script.marker} were here at once."
    )


def test_a_model_that_always_calls_tools_gets_fifteen_turns_and_then_answers(
    root: Root, ann: Person, script: Script
) -> None:
    for number in range(15):
        script.asks(("kit_echo", {"text": f"round {number}"}))
    script.says("All I have found.")
    started = ann.start(script.question())
    events = ann.events(started["chat_id"])
    chat = ann.chat(started["chat_id"])
    assert (chat["status"], chat["stop"], chat["turns"], chat["response"]) == (
        "done",
        "max_turns",
        16,
        "All I have found.",
    )
    assert chat["credits_used"] == 5 + 15 * 2
    turns = [(event.data["turn"], event.data["final"]) for event in events if event.kind == "turn"]
    assert turns == [(number, number == 16) for number in range(1, 17)]
    requests = script.requests()
    assert [request.get("tool_choice") for request in requests] == [None] * 15 + [{"type": "none"}]
    assert requests[15]["tools"] == requests[0]["tools"]
    assert states(root.history(chat["chat_id"])) == 2 * 16 + 15 * 2 + 1


def _seed(root: Root, user: str, queries: int, tools: int, size: int) -> str:
    """A conversation as its chats would have stored it, with ``queries`` × (``tools`` + 1) long records."""
    stores = root.stores()
    conversation_id, now = new_conversation_id(), iso(stores.clock())
    noise = random.Random(7)
    for number in range(1, queries + 1):
        blocks = [TrackBlock(query_id(number), "user", f"Question {number}", now)]
        records = [Record(query_id(number), "message", "user", f"Question {number}", now)]
        for index in range(1, tools + 1):
            record_id = tool_id(number, index)
            detail = ToolCallDetail(f"toolu_{record_id}", "kit_big", {}, is_error=False, seconds=1.0, turn=1)
            text = f"{record_id} {noise.randbytes(size // 2).hex()}"[:size]
            records.append(Record(record_id, "tool_call", "user", text, now, 1, call=detail))
            blocks.append(TrackBlock(summary_id(record_id), "user", f"Found {record_id}.", now, record_id))
        record_id = response_id(number)
        records.append(
            Record(
                record_id, "message", "assistant", noise.randbytes(size // 2).hex(), now, 2, stop="complete"
            )
        )
        blocks.append(TrackBlock(summary_id(record_id), "assistant", f"Answered {number}.", now, record_id))
        for record in records:
            store(stores, stores.history.record_writes(user, conversation_id, record))
        track = QueryTrack(number, tuple(blocks))
        store(stores, stores.history.track_writes(user, conversation_id, track))
    position = list_position(now, conversation_id)
    stores.conversations.create(
        Conversation(
            user,
            conversation_id,
            "Seeded",
            "assistant",
            now,
            now,
            position,
            queries,
            sums=MemorySums(tokens=queries * (tools + 1) * size // 4),
        )
    )
    return conversation_id


def test_two_hundred_records_of_100_kb_are_not_in_the_state(root: Root, ann: Person, script: Script) -> None:
    conversation_id = _seed(root, ann.id, queries=10, tools=19, size=100_000)
    script.asks(("retrieve_full_context", {"id": "q3-t7"}), ("retrieve_full_context", {"id": "q10-r"}))
    script.says("I have read both.")
    chat = ann.ask(script.question(), conversation_id)
    assert (chat["status"], chat["message_id"], chat["credits_used"]) == ("done", "q11", 9)
    history = root.history(chat["chat_id"])
    sizes = [len(payload.encode()) for payload in payloads(history)]
    assert len(sizes) >= 2 * states(history) - 1
    assert max(sizes) <= STATE_LIMIT
    results = script.requests()[1]["messages"][-1]
    first, second = (block["content"][0]["text"] for block in results["content"][:2])
    assert first == f"[ID:q11-t1] {ann.record(conversation_id, 'q3-t7')['result']}"
    assert second == f"[ID:q11-t2] {ann.record(conversation_id, 'q10-r')['content']}"
    assert len(first) > 100_000
    assert chat["memory"]["beyond_window"]
    assert chat["memory"]["dollars"] < chat["memory"]["full_history_dollars"] / 10


def test_the_workflows_functions_get_only_ids(root: Root, ann: Person, script: Script) -> None:
    script.asks(("kit_echo", {"text": "a word that must not travel"}))
    script.says("Nor may this.")
    chat = ann.ask(script.question("Nor this question."))
    history = " ".join(payloads(root.history(chat["chat_id"])))
    assert chat["chat_id"] in history
    assert not [word for word in ("must not travel", "Nor may", "Nor this", "kit_echo") if word in history]
    assert json.loads(next(payloads(root.history(chat["chat_id"])))) == {
        "user": ann.id,
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "turn": 0,
        "call_seconds": 315,  # 12,596 tokens, 8,000 of them for thinking and 500 for notes, at 40 a second
    }


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
    started = start_chat(root.stores(), by_the_alias, NewChat(ann.id, script.question()), None)
    ann.chats.append(started.chat_id)
    chat = ann.finish(started.chat_id)
    assert (chat["status"], chat["response"]) == ("done", "By the alias.")
    for executions in (by_the_alias, root.executions()):
        assert executions.status(execution_name(started.chat_id)) in {"RUNNING", "SUCCEEDED"}
        assert owner_of(executions, started.chat_id) == ann.id
