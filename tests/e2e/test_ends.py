"""How an answer ends that was declined or cut off, and what comes after it: through the gateway, on the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dualtrack_stack.local.offline_model.classifier import MAGIC

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script
    from tests.clients.stack_client import Person

LEFT_OUT = "(declined by the model's service; left out)"


def wire_of(model: OfflineModel, words: str) -> list[str]:
    """The requests for a turn that have these words, oldest first."""
    bodies = [
        json.dumps(call.body["messages"]) for call in model.requests if call.path.endswith("/v1/messages")
    ]
    return [body for body in bodies if words in body]


def test_after_a_declined_question_hello_is_answered(
    ann: Person, model: OfflineModel, script: Script
) -> None:
    forbidden = f"{MAGIC}_{script.marker}"
    declined = ann.ask(f"How do I make {forbidden}?")
    assert (declined["status"], declined["stop"], declined["credits_used"]) == ("done", "refusal", 5)
    assert declined["refusal"] == {"category": "general_harms"}
    script.says("Hello yourself.")
    hello = ann.ask(script.question("hello"), declined["conversation_id"])
    assert (hello["stop"], hello["response"]) == ("complete", "Hello yourself.")
    sent = wire_of(model, script.question("hello"))
    assert sent
    assert [body for body in sent if MAGIC in body] == []
    assert f"[ID:q1] {LEFT_OUT}" in sent[-1]
    shown = {
        track: json.dumps(ann.records(hello["conversation_id"], track)) for track in ("full", "summarised")
    }
    assert forbidden in shown["full"], "the user keeps it"
    assert MAGIC not in shown["summarised"]
    assert LEFT_OUT in shown["summarised"]


def test_an_answer_with_the_words_is_left_out_and_comes_back_by_no_tool(
    ann: Person, model: OfflineModel, script: Script
) -> None:
    script.says(f"An answer with {MAGIC}, and a quince.")
    conversation = ann.ask(script.question("Tell me of quinces."))["conversation_id"]
    assert ann.ask(script.question("What is 2+2?"), conversation)["stop"] == "refusal"
    script.asks(
        ("search_conversation", {"query": "answer with a quince"}),
        ("retrieve_full_context", {"id": "q1-r"}),
    )
    script.says("Six.")
    harmless = script.question("What is 3+3?")
    helped = ann.ask(harmless, conversation)
    assert (helped["stop"], helped["response"]) == ("complete", "Six.")
    told = [event.data for event in ann.events(helped["chat_id"]) if event.kind == "left_out"]
    assert [event["query"] for event in told] == ["q1"]
    assert [MAGIC in body for body in wire_of(model, harmless)] == [True, False, False]
    found = [json.dumps(ann.record(conversation, f"q3-t{n}")) for n in (1, 2)]
    assert "q1-r" not in found[0]
    assert "is left out" in found[1]
    assert MAGIC in json.dumps(ann.records(conversation, "full"))
    assert MAGIC not in json.dumps(ann.records(conversation, "summarised"))


def test_a_cut_answer_goes_on(ann: Person, model: OfflineModel, script: Script) -> None:
    script.says("One, two,", stop_reason="max_tokens")
    cut = ann.ask(script.question("Count."))
    assert (cut["stop"], cut["response"]) == ("max_tokens", "One, two,")
    model.script.add({"match": "turn", "text": "three."})  # what goes on has none of the question's words
    body = {"continue": True, "conversation_id": cut["conversation_id"]}
    started = ann.http.post("/v1/chats", json=body).raise_for_status().json()
    rest = ann.finish(started["chat_id"])
    assert (rest["stop"], rest["response"]) == ("complete", "three.")
    assert "One, two," in wire_of(model, "Continue the answer q1-r")[-1]
    again = ann.http.post("/v1/chats", json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "nothing_to_continue")
