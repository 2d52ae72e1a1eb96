"""Clients of OpenAI's API as they are: what the model was sent, how many conversations there are, what was charged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.drivers.documents import ROOT
from tests.drivers.openai_clients import (
    ENVIRONMENTS,
    SUITE,
    WITH_OUTPUT,
    WITH_TOOLS,
    Question,
    Story,
    documented,
    run_typescript,
    told_by,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.drivers.openai_door import Door

CLIENTS = ROOT / "docs" / "clients.md"
LONG = "The long answer with DynamoDB and 42. " * 60
ASKED = [Question("First?"), Question("Second?", stream=True), Question("Third?")]


def story(door: Door, user: str, *questions: Question) -> Story:
    return Story(f"{door.url}/openai/v1", door.key(user), questions)


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_a_conversation_that_is_resent_is_one_with_two_tracks(door: Door, client: str) -> None:
    answers = [LONG.strip(), "Two, \n\nor so.", "Three."]
    for text in answers:
        door.world.model.script.add(ScriptedResponse(match="turn", text=text))
    assert told_by(client, story(door, client, *ASKED)) == answers
    (conversation,) = door.conversations(client)
    assert conversation.queries == 3
    assert door.world.stores.ledger.load(client).used_day == 15
    first, second, third = door.sent()
    for sent, question in zip((first, second, third), ASKED, strict=True):
        assert sum(question.text in block for block in sent) == 1
        assert sum("You are terse." in block for block in sent) == 1, "behind the running query alone"
    assert any("ref:q1-r" in block for block in third)
    assert not any(LONG.strip() in block for block in (*second, *third)), "the past is sent as summaries"


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_a_clients_tool_is_run_by_it_within_one_chat(door: Door, client: str) -> None:
    user = client + WITH_TOOLS
    call = {"type": "tool_use", "name": "weather", "input": {"city": "Oslo"}}
    door.world.model.script.add(ScriptedResponse(match="turn", content=(call,)))
    door.world.model.script.add(ScriptedResponse(match="turn", text="Take an umbrella."))
    assert told_by(user, story(door, user, Question("What to wear in Oslo?"))) == ["Take an umbrella."]
    (conversation,) = door.conversations(user)
    assert conversation.queries == 1
    assert door.world.stores.ledger.load(user).used_day == 5
    door.machine.wait()
    asked, told = [request.body for request in door.world.model.requests][:2]
    assert "weather" in [offered["name"] for offered in asked["tools"]]
    assert "Rain in Oslo, 11 degrees." in json.dumps(told["messages"])


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_an_answer_that_does_not_fit_a_clients_schema_is_asked_for_again(door: Door, client: str) -> None:
    user = client + WITH_OUTPUT
    for text in ('{"name": "Oslo"}', '{"name": "Oslo", "people": 717710}'):
        door.world.model.script.add(ScriptedResponse(text=text))
    assert told_by(user, story(door, user, Question("Which town?"))) == ["Oslo 717710"]
    (conversation,) = door.conversations(user)
    assert conversation.queries == 1
    assert door.world.stores.ledger.load(user).used_day == 5
    door.machine.wait()
    assert any("people" in json.dumps(request.body) for request in door.world.model.requests)


def test_every_kind_of_the_open_responses_suite(door: Door) -> None:
    """Basic, streamed, a system message, a tool, a tool streamed, an image, several turns: as its specification says,
    and the model was sent each part."""
    call = {"type": "tool_use", "name": "weather", "input": {"city": "Oslo"}}
    for content in ("Hello, my friend.", "1 2 3 4 5", "Ahoy."):
        door.world.model.script.add(ScriptedResponse(match="turn", text=content))
    door.world.model.script.add(*(ScriptedResponse(match="turn", content=(call,)) for _ in range(2)))
    for content in ("One pixel.", "Alice."):
        door.world.model.script.add(ScriptedResponse(match="turn", text=content))
    assert told_by("openai_responses" + SUITE, story(door, "suite")) == [
        "completed message Hello, my friend.",
        "completed message 1 2 3 4 5",
        "completed message Ahoy.",
        "completed function_call",
        "completed function_call",
        "completed message One pixel.",
        "completed message Alice.",
    ]
    assert len(door.conversations("suite")) == 7
    assert door.world.stores.ledger.load("suite").used_day == 25, (
        "calls that nobody answered are not charged yet"
    )
    sent = door.sent()
    assert any("You are a pirate." in block for block in sent[2])
    assert "Hello Alice!" in "".join(sent[6])
    requests = [request.body for request in door.world.model.requests]
    assert [sum(part["type"] == "image" for part in parts_of(body)) for body in requests].count(1) == 1
    offered = [[tool["name"] for tool in body.get("tools", ())] for body in requests]
    assert sum("weather" in names for names in offered) == 2


def parts_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for message in body["messages"] for part in message["content"]]


def test_the_documents_programs_for_node_run_as_written(door: Door) -> None:
    answers = ("It hides the message.", "As said.")
    for text in answers:
        door.world.model.script.add(ScriptedResponse(match="turn", text=text))
    asked = story(door, "reader")
    printed = run_typescript(documented(CLIENTS, "typescript", "new OpenAI", asked))
    assert printed.strip() == answers[0]
    question = "What does a visibility timeout do?"
    messages = [
        {"id": str(n), "role": role, "parts": [{"type": "text", "text": text}]}
        for n, (role, text) in enumerate([("user", question), ("assistant", answers[0]), ("user", "Sure?")])
    ]
    route = documented(CLIENTS, "typescript", "export async function POST", asked)
    events = json.loads(run_typescript(route, {"messages": messages})).split("\n\n")
    said = [json.loads(event[6:]) for event in events if event.startswith("data: {")]
    assert "".join(event["delta"] for event in said if event["type"] == "text-delta") == answers[1]
    (conversation,) = door.conversations("reader")
    assert conversation.queries == 2
