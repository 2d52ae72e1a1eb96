"""Notes in the turn through gateway, roles and front: asked for, hidden from all, sent in place of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.memory.notes import mark_of

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person
    from tests.servers.tool_server import ToolServer

PAGE = "What the page says, in words that nobody summarises. " * 1_200
SAID = "It says that the port is 80."


def ask(person: Person, script: Script, text: str, **more: Any) -> dict[str, Any]:
    body = {"message": script.question(text), "profile": "careful", **more}
    chat: dict[str, Any] = person.http.post("/v1/chats", json=body).json()
    return chat


def test_notes_are_asked_for_hidden_and_sent(ann: Person, script: Script, tools: ToolServer) -> None:
    tools.pages[script.marker] = PAGE
    script.asks(("kit_page", {"name": script.marker}))
    script.says(SAID, notes=True)
    started = ask(ann, script, "What does the page say?")
    events = ann.events(started["chat_id"])
    mark = mark_of(started["chat_id"])
    assert "".join(event.data["text"] for event in events if event.kind == "delta") == SAID
    kinds = [event.kind for event in events]
    assert kinds.index("written") < kinds.index("answer")
    assert mark not in str([event.data for event in events])
    asking = script.requests()[-1]["messages"][-1]["content"]
    assert asking[-1]["text"].startswith("(Notes for later")
    assert mark in asking[-1]["text"]
    chat = ann.get(started["url"])
    assert (chat["response"], chat["summary"], chat["summary_form"]) == (SAID, SAID, "whole")
    where = f"/v1/conversations/{started['conversation_id']}"
    track = ann.get(f"{where}?track=summarised")["records"]
    assert [record["form"] for record in track] == ["whole", "note", "whole"]
    receipt = ann.get(f"{started['url']}/receipt")
    assert [line["kind"] for line in receipt["lines"] if line["kind"] in ("model", "summary")] == [
        "model"
    ] * 2
    script.says("As I said, 80.")
    again = ask(ann, script, "Which port?", conversation_id=started["conversation_id"])
    ann.events(again["chat_id"])
    sent = str(script.requests()[-1]["messages"])
    assert "kit_page was called" in sent, "the note of the offline model"
    assert PAGE[:200] not in sent
    assert mark not in sent


def test_no_client_of_openai_sees_them(ann: Person, script: Script, tools: ToolServer) -> None:
    tools.pages[script.marker] = PAGE
    script.asks(("kit_page", {"name": script.marker}))
    script.says(SAID, notes=True)
    messages = [{"role": "user", "content": script.question("What does the page say?")}]
    answered = ann.http.post(
        "/openai/v1/chat/completions", json={"model": "careful", "messages": messages}, timeout=60
    )
    assert answered.json()["choices"][0]["message"]["content"].endswith(SAID)
    assert "[[notes:" not in answered.text
