"""Failures while a chat runs, and the outcomes of CONTRACT 8."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.storage.chats import chat_partition
from dualtrack.storage.dynamo import to_wire
from dualtrack.storage.stores import build_stores

from tests.clients.stack_client import ENDED, wait_for
from tests.servers.tool_server import big_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer

DAILY = 50
"""Credits a day of a new user."""

NOTHING_SPENT = (DAILY, 0)


class Nobody:
    """Executions that never start, as when the request dies between admission and start."""

    def start(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Do nothing."""


def assert_failed(person: Person, chat_id: str, code: str) -> None:
    """Failed, nothing charged, one `error` at the end, the query answered by the fixed record."""
    last = person.events(chat_id)[-1]
    assert (last.kind, last.data["code"]) == ("error", code)
    chat = person.chat(chat_id)
    assert (chat["status"], chat["error"]["code"], chat["response"]) == ("failed", code, None)
    assert chat["credits_used"] == 0
    record = person.record(chat["conversation_id"], f"{chat['message_id']}-r")
    assert record["content"] == "(no answer: failed)"


def balance(person: Person) -> tuple[int, int]:
    """Credits available and held."""
    credits_ = person.credits()
    return credits_["available"], credits_["held"]


def assert_free(person: Person, conversation_id: str, script: Script) -> None:
    """The next question of the conversation is answered."""
    following = script.branch("next")
    following.says("Well again.")
    chat = person.ask(following.question(), conversation_id)
    assert (chat["status"], chat["response"]) == ("done", "Well again.")
    (request,) = following.requests()
    texts = [block["text"] for message in request["messages"] for block in message["content"]]
    assert any(text.endswith("(no answer: failed)") for text in texts)


# ── the model's service ───────────────────────────────────────────────────────────────────────────


def test_transient_errors_of_the_models_service_are_retried(ann: Person, script: Script) -> None:
    script.refuses(500)
    script.says("Never to be seen whole. " * 20, cut_after=12)
    script.says("Well again.")
    started = ann.start(script.question())
    events = ann.events(started["chat_id"])
    begun = [event for event in events if event.kind == "turn"]
    assert [event.data["turn"] for event in begun] == [1, 1, 1]
    deltas = [event for event in events if event.kind == "delta"]
    # a repeated `turn` voids the text before it
    assert "".join(delta.data["text"] for delta in deltas if delta.id > begun[-1].id) == "Well again."
    voided = "".join(delta.data["text"] for delta in deltas if delta.id < begun[-1].id)
    assert ("Never to be seen whole. " * 20).startswith(voided)
    chat = ann.chat(started["chat_id"])
    assert (chat["status"], chat["response"]) == ("done", "Well again.")
    assert (chat["turns"], chat["credits_used"], ann.credits()["available"]) == (1, 5, DAILY - 5)


def test_a_persistent_model_error_fails_the_chat_and_a_refusal_fails_it_at_once(
    root: Root, ann: Person, script: Script
) -> None:
    away, refuses = script.branch("away"), script.branch("refuses")
    away.refuses(500, times=4)
    refuses.refuses(400)
    first, second = ann.start(away.question()), ann.start(refuses.question())
    assert_failed(ann, second["chat_id"], "internal")
    assert_failed(ann, first["chat_id"], "unavailable")
    assert away.left == refuses.left == 0
    assert balance(ann) == NOTHING_SPENT
    wait_for(lambda: root.execution_status(first["chat_id"]) == "FAILED")
    wait_for(lambda: root.execution_status(second["chat_id"]) == "FAILED")
    assert_free(ann, first["conversation_id"], away)


def test_waiting_for_a_busy_model_takes_three_states_and_costs_nothing(
    root: Root, ann: Person, script: Script
) -> None:
    script.model.script.add({"match": script.key, "status": 429, "retry_after": 1})
    script.says("Never to be seen whole. " * 20, error_after=12)
    script.says("Well again.")
    started = ann.start(script.question())
    events = ann.events(started["chat_id"])
    turns = [(event.kind, event.data["turn"]) for event in events if event.kind in ("turn", "retrying")]
    assert turns == [("turn", 1), ("retrying", 1), ("turn", 1), ("retrying", 1), ("turn", 1)]
    waits = [event.data for event in events if event.kind == "retrying"]
    assert [data["reason"] for data in waits] == ["rate_limited", "overloaded"]
    assert 2 <= waits[0]["seconds"] <= 4  # half to a whole step, whatever `retry-after` says
    chat = ann.chat(started["chat_id"])
    assert (chat["status"], chat["stop"], chat["response"]) == ("done", "complete", "Well again.")
    assert (chat["turns"], chat["credits_used"], ann.credits()["available"]) == (1, 5, DAILY - 5)
    entered = Counter(event["type"] for event in root.history(chat["chat_id"]))
    assert entered["WaitStateEntered"] == 2
    assert sum(count for kind, count in entered.items() if str(kind).endswith("StateEntered")) == 3 + 2 * 3


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def test_any_outcome_of_a_tool_is_sent_to_the_model_which_answers(ann: Person, script: Script) -> None:
    script.asks(
        ("kit_fail", {"reason": "the disk is full"}),
        ("kit_crash", {}),
        ("kit_big", {"megabytes": 2}),
        ("retrieve_full_context", {"id": "q9"}),
        ("kit_nothing_of_the_kind", {}),
        ("kit_big", {"megabytes": "many"}),
    )
    script.says("I have read all of it.")
    chat = ann.ask(script.question())
    assert (chat["status"], chat["stop"], chat["response"]) == ("done", "complete", "I have read all of it.")
    results = [ann.record(chat["conversation_id"], call["id"])["result"] for call in chat["tool_calls"]]
    assert [call["is_error"] for call in chat["tool_calls"]] == [True, True, False, True, True, True]
    assert results[0].startswith("Tool execution failed: ")
    assert "the disk is full" in results[0]
    assert results[1].startswith("Tool execution failed: ")
    assert "nobody should read this" not in results[1]
    assert results[2] == big_text(2)
    assert results[3] == "ID not found: q9"
    assert results[4] == "Unknown tool: kit_nothing_of_the_kind"
    assert results[5].startswith("Tool execution failed: ")
    # what did not run is free: the unknown tool and the call with wrong arguments
    assert chat["credits_used"] == 5 + 4 * 2
    *answered, ask = script.requests()[1]["messages"][-1]["content"]
    assert [block["type"] for block in answered] == ["tool_result"] * 6
    assert ask["text"].startswith("(Notes for later")


def test_a_read_only_call_whose_function_dies_is_run_again(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    name = script.marker
    script.asks(("kit_hold", {"name": name}))
    script.says("It held.")
    started = ann.start(script.question())
    assert tools.gate(name).arrived.wait(30)
    assert root.kill_workers("Mcp") > 0
    wait_for(lambda: tools.calls[f"hold:{name}"] == 2)
    tools.gate(name).released.set()
    chat = ann.finish(started["chat_id"])
    assert (chat["status"], chat["credits_used"]) == ("done", 7)
    assert ann.record(chat["conversation_id"], "q1-t1")["result"] == f"{name} was let go."


def test_a_call_with_side_effects_is_not_repeated_and_gets_an_error(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    held, written = f"{script.marker}-held", f"{script.marker}-written"
    script.asks(("kit_hold", {"name": held}), ("kit_write", {"name": written}))
    script.says("I do not know what became of it.")
    started = ann.start(script.question())
    assert tools.gate(held).arrived.wait(30)
    assert tools.gate(written).arrived.wait(30)
    assert root.kill_workers("Mcp") >= 2
    wait_for(lambda: tools.calls[f"hold:{held}"] == 2)
    ann.until(started["chat_id"], lambda event: event.kind == "tool_result")
    root.kill_workers("Mcp")
    chat = ann.finish(started["chat_id"])
    assert (chat["status"], chat["credits_used"]) == ("done", 9)
    assert tools.calls[f"write:{written}"] == 1
    no_result, unknown = (ann.record(chat["conversation_id"], f"q1-t{number}") for number in (1, 2))
    assert no_result["is_error"]
    assert no_result["result"].endswith("ended without a result.")
    assert unknown["is_error"]
    assert "may or may not have taken effect" in unknown["result"]


def test_tools_that_cannot_be_paid_are_not_run_and_the_next_call_is_the_last(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    stores = root.stores()
    account = stores.ledger.load(ann.id)
    stores.ledger.commit(account, account.hold("ch_elsewhere", DAILY - 10, stores.clock()))  # type: ignore[arg-type]
    texts = [f"{script.marker}-{number}" for number in range(4)]
    script.asks(*[("kit_echo", {"text": text}) for text in texts[:3]])
    script.asks(("kit_echo", {"text": texts[3]}))
    script.says("That is as far as your credits go.")
    started = ann.start(script.question())
    events = ann.events(started["chat_id"])
    chat = ann.chat(started["chat_id"])
    assert (chat["status"], chat["stop"], chat["turns"]) == ("done", "insufficient_credits", 3)
    assert (chat["credits_used"], ann.credits()["available"]) == (9, 1)
    assert [tools.calls[f"echo:{text}"] for text in texts] == [1, 1, 0, 0]
    assert [call["is_error"] for call in chat["tool_calls"]] == [False, False, True, True]
    short = [event.data for event in events if event.data.get("code") == "insufficient_credits"]
    assert [(data["required"], data["available"]) for data in short] == [(2, 1), (2, 1)]
    assert script.requests()[2]["tool_choice"] == {"type": "none"}


# ── the step after the answer ─────────────────────────────────────────────────────────────────────


def test_a_summariser_that_fails_for_good_leaves_an_extract(
    root: Root, model: OfflineModel, ann: Person, script: Script
) -> None:
    model.script.add({"match": script.marker, "kind": "summary", "status": 500, "always": True})
    script.says(f"{script.marker} is the name of the project. " + "It has a long history. " * 80)
    chat = ann.ask(script.question(), ann.opened("small"))
    assert (chat["status"], chat["credits_used"]) == ("done", 5)
    assert chat["summary"].startswith(script.marker)
    assert len(chat["summary"]) < len(chat["response"]) / 2
    assert chat["usage"]["summary_tokens"] == 0
    model.script.clear()
    assert root.execution_status(chat["chat_id"]) == "SUCCEEDED"


# ── the workflow itself ───────────────────────────────────────────────────────────────────────────


def test_a_stopped_execution_fails_its_chat(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    started = ann.start(script.question())
    assert tools.gate(script.marker).arrived.wait(30)
    assert ann.credits()["held"] == 7
    root.client("stepfunctions").stop_execution(executionArn=root.execution_arn(started["chat_id"]))
    assert_failed(ann, started["chat_id"], "internal")
    tools.gate(script.marker).released.set()
    assert balance(ann) == NOTHING_SPENT
    assert_free(ann, started["conversation_id"], script)
    assert len(ann.events(started["chat_id"])) == len(ann.events(started["chat_id"]))


def _admit(root: Root, person: Person, message: str, age: float, executions: Any = None) -> dict[str, str]:
    """A chat admitted ``age`` seconds ago, without an execution by default."""
    stores = build_stores(
        root.settings, root.client("dynamodb"), root.client("s3"), clock=lambda: time.time() - age
    )
    starter: Any = executions or Nobody()
    chat = start_chat(stores, starter, NewChat(person.id, message), None)
    person.chats.append(chat.chat_id)
    return {"chat_id": chat.chat_id, "conversation_id": chat.conversation_id}


def _let_its_time_pass(root: Root, person: Person, chat_id: str) -> None:
    """Move the deadline of a running chat into the past."""
    root.client("dynamodb").update_item(
        TableName=root.settings.chats_table,
        Key=to_wire({"pk": chat_partition(person.id, chat_id), "sk": "STATE"}),
        UpdateExpression="SET deadline = :past",
        ExpressionAttributeValues=to_wire({":past": int(time.time()) - 1}),
    )


def test_the_sweep_starts_chats_never_started_but_not_recent_or_running_ones(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    running = ann.start(script.question())
    assert tools.gate(script.marker).arrived.wait(30)
    late = script.branch("late")
    late.says("Late, but here.")
    young = _admit(root, ann, "I am being started right now.", age=0)
    forgotten = _admit(root, ann, late.question(), age=60)
    root.invoke("Sweep", {"source": "schedule"})
    chat = ann.finish(forgotten["chat_id"])
    assert (chat["status"], chat["response"], chat["credits_used"]) == ("done", "Late, but here.", 5)
    assert ann.chat(young["chat_id"])["status"] == ann.chat(running["chat_id"])["status"] == "running"
    assert ann.cancel(young["chat_id"])["credits_used"] == 0
    tools.gate(script.marker).released.set()
    assert ann.finish(running["chat_id"])["status"] == "done"


def test_the_sweep_ends_chats_past_their_deadline_or_without_an_execution(
    root: Root, tools: ToolServer, ann: Person, script: Script
) -> None:
    dead = _admit(root, ann, "I was never started.", age=CHAT_SECONDS + 1)
    script.asks(("kit_hold", {"name": script.marker}))
    stuck = _admit(root, ann, script.question(), age=0, executions=root.executions())
    assert tools.gate(script.marker).arrived.wait(30)
    _let_its_time_pass(root, ann, stuck["chat_id"])
    root.invoke("Sweep", {"source": "schedule"})
    assert_failed(ann, dead["chat_id"], "timeout")
    assert_failed(ann, stuck["chat_id"], "timeout")
    assert root.execution_status(stuck["chat_id"]) == "ABORTED"
    tools.gate(script.marker).released.set()
    assert balance(ann) == NOTHING_SPENT
    assert_free(ann, stuck["conversation_id"], script)
    swept = root.invoke("Sweep", {"source": "schedule"})
    assert swept["ended"] == 0


def test_a_chat_past_its_deadline_does_not_block_its_conversation(
    root: Root, ann: Person, script: Script
) -> None:
    dead = _admit(root, ann, "I was never started.", age=CHAT_SECONDS + 1)
    assert_free(ann, dead["conversation_id"], script)
    assert_failed(ann, dead["chat_id"], "timeout")


@pytest.mark.parametrize("step", ["Turn", "Summarise", "Abort", "Sweep", "Tool"])
def test_a_late_step_changes_nothing(root: Root, ann: Person, script: Script, step: str) -> None:
    script.asks(("retrieve_full_context", {"id": "q1"}))
    script.says("Done.")
    chat = ann.ask(script.question())
    before = ann.events(chat["chat_id"]), ann.chat(chat["chat_id"]), ann.credits()
    payload: dict[str, Any] = {
        "user": ann.id,
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "turn": 1,
        "call": {"id": "q1-t1", "fn": "tool"},
        "error": {"Error": "States.TaskFailed", "Cause": ""},
        "execution": f"{chat['chat_id']}.1",
    }
    answer = root.invoke(step, payload)
    if step == "Turn":
        assert answer == {"turn": 2, "next": "answered", "calls": []}
    assert (ann.events(chat["chat_id"]), ann.chat(chat["chat_id"]), ann.credits()) == before
    assert chat["status"] in ENDED


def test_no_secret_and_no_text_of_a_chat_is_in_the_logs(
    root: Root, ann: Person, script: Script, someone: Callable[[], Person]
) -> None:
    script.asks(("kit_fail", {"reason": f"{script.marker} failed"}))
    script.says(f"{script.marker} was the question.")
    ann.ask(script.question())
    logs = root.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    lines = [
        event["message"]
        for group in groups
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        for event in page["events"]
    ]
    assert any("Turn recorded" in line for line in lines)
    assert not [line for line in lines if script.marker in line]
    assert not [line for line in lines if "test-anthropic-key" in line or ann.identity.token in line]
