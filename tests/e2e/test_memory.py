"""A second question in a conversation, over HTTP and with the README's command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.stack_client import PATIENCE
from tests.servers.provider import ON_BEDROCK
from tests.servers.tool_server import big_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

FIRST = "How do I set up OAuth for Twitter ads?"
SECOND = "Show me the full code from earlier"


def _command(root: Root, person: Person, *args: str) -> dict[str, Any]:
    """``dualtrack chat --json``; the chat object alone on its standard output."""
    command = Path(sys.executable).with_name("dualtrack")
    options = ["--json", "--url", root.stack.url, "--token", person.identity.token]
    done = subprocess.run(
        [str(command), "chat", *options, *args], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_command_continues_a_conversation_and_the_model_reads_an_earlier_record(
    root: Root, ann: Person
) -> None:
    first = _command(root, ann, FIRST)
    assert (first["status"], first["stop"], first["message_id"]) == ("done", "complete", "q1")
    assert first["response"]
    assert [call["tool"] for call in first["tool_calls"]] == ["retrieve_documentation"]
    second = _command(root, ann, "--conversation", first["conversation_id"], SECOND)
    assert (second["status"], second["message_id"]) == ("done", "q2")
    assert second["conversation_id"] == first["conversation_id"]
    (call,) = second["tool_calls"]
    assert call["tool"] == "retrieve_full_context"
    assert call["input"]["id"] in ("q1-t1", "q1-r")
    assert not call["is_error"]


def test_a_question_sends_the_previous_questions_start_as_its_prefix(ann: Person, script: Script) -> None:
    script.asks(("kit_echo", {"text": "The port is 8443, the host is lantern.example. " * 40}))
    script.says("The port is 8443. " + "It is written in the settings of the service. " * 30)
    script.says("As I said.")
    script.says("Once more.")
    conversation_id = ann.ask(script.question("one"))["conversation_id"]
    ann.ask(script.question("two"), conversation_id)
    ann.ask(script.question("three"), conversation_id)
    starts = [_blocks(request) for request in script.requests() if _blocks(request)[-1][0] == "user"]
    first, _after_tools, second, third = starts
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [text.split("]")[0] for _, text in second] == [
        "[ID:q1",
        "[ID:q1-t1-sum, ref:q1-t1, 2 KB",
        "[ID:q1-r",
        "[ID:q2",
    ]


@pytest.mark.skipif(ON_BEDROCK, reason="Bedrock's endpoint has no cache diagnostics")
def test_the_service_itself_finds_nothing_changed_that_was_sent_before(ann: Person, script: Script) -> None:
    """By its own word in the receipts: of each turn that goes on from the one before, and of a query that goes on from
    one without tools. What was summarised meanwhile is not compared."""
    script.asks(("kit_echo", {"text": "The port is 8443, the host is lantern.example. " * 40}))
    script.asks(("kit_echo", {"text": "Both are written in the settings. " * 40}))
    script.says("The port is 8443.")
    script.says("As I said.")
    script.asks(("kit_echo", {"text": "again"}))
    script.says("Once more.")
    chats = [ann.ask(script.question("one"))]
    for name in ("two", "three"):
        chats.append(ann.ask(script.question(name), chats[0]["conversation_id"]))
    receipts = [ann.get(f"/v1/chats/{chat['chat_id']}/receipt") for chat in chats]
    said = [
        [line.get("cache_miss", "not asked") for line in receipt["lines"] if line["kind"] == "model"]
        for receipt in receipts
    ]
    assert said == [["not asked", None, None], ["not asked"], [None, None]]


def _blocks(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (message["role"], block.get("text") or json.dumps(block, sort_keys=True))
        for message in request["messages"]
        for block in message["content"]
    ]


def test_an_id_of_another_conversation_or_user_is_not_found(
    someone: Callable[[], Person], script: Script
) -> None:
    ann, bob = someone(), someone()
    script.asks(("kit_echo", {"text": "a secret of Ann's"}))
    script.says("Kept.")
    ann.ask(script.question())
    other = script.branch("other")
    for person in (ann, bob):
        other.asks(("retrieve_full_context", {"id": "q1-t2"}))
        other.says("Nothing there.")
        chat = person.ask(other.question())
        record = person.record(chat["conversation_id"], "q1-t1")
        assert (record["is_error"], record["result"]) == (True, "ID not found: q1-t2")


def test_two_megabytes_are_stored_whole_cut_for_the_model_and_read_by_offset(
    root: Root, ann: Person, script: Script, model: OfflineModel
) -> None:
    script.asks(("kit_big", {"megabytes": 2}))
    script.asks(("retrieve_full_context", {"id": "q1-t1", "offset": 1_900_000}))
    script.says("Read.")
    chat = ann.ask(script.question())
    assert [call["is_error"] for call in chat["tool_calls"]] == [False, False]
    whole = big_text(2)
    assert len(whole) == 2_000_000
    assert ann.record(chat["conversation_id"], "q1-t1")["result"] == whole
    _, second, third, *_ = script.requests()
    cut = second["messages"][-1]["content"][0]["content"][0]["text"]
    assert cut.startswith(f"[ID:q1-t1] {whole[:1000]}")
    assert whole[99_900:100_000] in cut
    assert '"offset": 100000' in cut
    assert len(cut) < 100_500
    read_on = third["messages"][-1]["content"][0]["content"][0]["text"]
    assert whole[1_900_000:] in read_on
    assert ann.record(chat["conversation_id"], "q1-t2")["result"] == whole[1_900_000:]
    stored = root.stores().history.record(ann.id, chat["conversation_id"], "q1-t2")
    assert stored is not None
    assert len(stored.content) < 200  # a reference, not a copy
    assert not [
        request.refused
        for request in model.requests
        if request.refused and script.marker in json.dumps(request.body)
    ]
