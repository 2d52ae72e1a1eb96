"""Clients of OpenAI's API as they are, over HTTP to the stack, by an API key: what they saw, what the model was sent,
how many conversations there are, what was charged. docs/clients.md has the table of what is tried here. Then what only
the whole stack shows: refusals through the front, an answer that takes long, one that is declined."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack_stack.local.offline_model.classifier import MAGIC

from tests.drivers.documents import ROOT
from tests.long_forms import LONG as LONG_FORMS
from tests.plugins.openai.clients import (
    ENVIRONMENTS,
    SUITE,
    WITH_FUNCTION,
    WITH_HANDOFF,
    WITH_OUTPUT,
    WITH_TOOLS,
    Clients,
    Question,
    Story,
    documented,
    run_typescript,
)
from tests.plugins.openai.door import user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.clients.script import Script
    from tests.clients.stack_client import Person

    ToldBy = Callable[[str, Story], Any]

CLIENTS = ROOT / "docs" / "clients.md"
LONG = "The long answer with DynamoDB and 42. " * 60
TOWN = {"name": "Oslo", "people": 717710}


@pytest.fixture(scope="module")
def told_by() -> Iterator[ToldBy]:
    with closing(Clients()) as clients:
        yield clients.told_by


def key_of(person: Person) -> str:
    made = person.http.post("/v1/keys", json={"name": "client", "scopes": ["chat", "read"]})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


def story(person: Person, script: Script, *questions: tuple[str, bool]) -> Story:
    asked = [Question(script.question(text), stream=stream) for text, stream in questions]
    return Story(f"{person.url}/openai/v1", key_of(person), asked)


def conversations(person: Person) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = person.get("/v1/conversations")["conversations"]
    return found


def used(person: Person) -> int:
    return int(person.credits()["daily"]["used"])


def texts(body: Mapping[str, Any]) -> list[str]:
    return [
        block["text"]
        for message in body["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_a_conversation_that_is_resent_is_one_with_two_tracks(
    ann: Person, script: Script, told_by: ToldBy, client: str
) -> None:
    said = [LONG.strip(), "Two, \n\nor so.", "Three."]
    for text in said:
        script.says(text)
    asked = story(ann, script, ("First?", False), ("Second?", True), ("Third?", False))
    assert told_by(client, asked) == said
    (conversation,) = conversations(ann)
    assert conversation["queries"] == 3
    assert used(ann) == 15
    requests = [texts(body) for body in script.requests()]
    for sent, question in zip(requests, asked.questions, strict=True):
        assert sum(question.text in block for block in sent) == 1
        assert sum("You are terse." in block for block in sent) == 1, "behind the running query alone"
    for sent in requests[1:]:
        assert [block.partition("]")[0] for block in sent if LONG.strip() in block] == ["[ID:q1-r"], (
            "by its id"
        )


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_a_clients_tool_is_run_by_it_within_one_chat(
    ann: Person, script: Script, told_by: ToldBy, client: str
) -> None:
    for town in ("Oslo", "Rome"):
        script.asks(("weather", {"city": town}))
        script.says(f"Take an umbrella to {town}.")
    asked = story(ann, script, ("What to wear in Oslo?", False), ("And in Rome?", True))
    assert told_by(client + WITH_TOOLS, asked) == ["Take an umbrella to Oslo.", "Take an umbrella to Rome."]
    assert used(ann) == 10, "each question is one chat"
    first, told, *_ = script.requests()
    assert "weather" in [offered["name"] for offered in first["tools"]]
    assert "Rain in Oslo, 11 degrees." in json.dumps(told["messages"])


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_an_answer_that_does_not_fit_a_clients_schema_is_asked_for_again(
    ann: Person, script: Script, told_by: ToldBy, client: str
) -> None:
    script.says('{"name": "Oslo"}')
    script.says(json.dumps(TOWN))
    assert told_by(client + WITH_OUTPUT, story(ann, script, ("Which town?", False))) == ["Oslo 717710"]
    (conversation,) = conversations(ann)
    assert (conversation["queries"], used(ann)) == (1, 5)


@pytest.mark.parametrize(("client", "tool"), [("pydantic_ai", "final_result"), ("langchain", "Town")])
def test_an_object_by_a_call_that_is_required(
    ann: Person, script: Script, told_by: ToldBy, client: str, tool: str
) -> None:
    """An answer in place of the call is no answer: the model is told once more."""
    script.says("It is Oslo.")
    script.asks((tool, TOWN))
    assert told_by(client + WITH_FUNCTION, story(ann, script, ("Which town?", False))) == ["Oslo 717710"]
    asked, again = script.requests()
    assert "tool_choice" not in asked
    assert "needs a call here" in json.dumps(again["messages"][-1])


def test_an_agent_hands_over_to_another(ann: Person, script: Script, told_by: ToldBy) -> None:
    script.asks(("transfer_to_expert", {}))
    script.says("Rain, says the expert.")
    asked = story(ann, script, ("The weather?", True))
    assert told_by("openai_agents" + WITH_HANDOFF, asked) == ["Rain, says the expert."]
    assert used(ann) == 5


def test_every_kind_of_the_open_responses_suite(ann: Person, script: Script, told_by: ToldBy) -> None:
    """Basic, streamed, a system message, a tool, a tool streamed, an image, several turns: as its specification says.
    Its questions have no marker, so that the offline model answers by its rules."""
    asked = story(ann, script)
    lines = told_by("openai_responses" + SUITE, asked)
    assert len(lines) == 7
    assert all(line.startswith("completed ") for line in lines), lines
    assert len(conversations(ann)) == 7


def test_the_documents_programs_for_node_run_as_written(ann: Person, script: Script) -> None:
    asked = story(ann, script)
    printed = run_typescript(documented(CLIENTS, "typescript", "new OpenAI", asked))
    assert printed.strip()
    question = "What does a visibility timeout do?"
    messages = [
        {"id": str(n), "role": role, "parts": [{"type": "text", "text": text}]}
        for n, (role, text) in enumerate(
            [
                ("user", question),
                ("assistant", printed.removesuffix("\n")),
                ("user", script.question("Sure?")),
            ]
        )
    ]
    script.says("As said.")
    route = documented(CLIENTS, "typescript", "export async function POST", asked)
    events = json.loads(run_typescript(route, {"messages": messages})).split("\n\n")
    said = [json.loads(event[6:]) for event in events if event.startswith("data: {")]
    assert "".join(event["delta"] for event in said if event["type"] == "text-delta") == "As said."
    (conversation,) = conversations(ann)
    assert conversation["queries"] == 2


def test_refusals_through_the_front_have_openais_form(ann: Person) -> None:
    headers = {"Authorization": f"Bearer {key_of(ann)}"}
    for method, path, status in (
        ("GET", "/models/assistant", 200),
        ("GET", "/models/gpt-9", 404),
        ("PUT", "/models", 405),
        ("POST", "/embeddings", 404),
        ("POST", "/chat/completions", 400),
    ):
        answer = httpx.request(method, f"{ann.url}/openai/v1{path}", headers=headers, timeout=60)
        assert answer.status_code == status, answer.text
        if status != 200:
            assert set(answer.json()["error"]) >= {"message", "type", "param", "code"}


def test_a_long_answer_streams_to_its_end(ann: Person, script: Script) -> None:
    """Longer than two minutes; a short one in the short form."""
    pieces = 140 if LONG_FORMS else 14
    text = "".join(f"word{number:03d} " for number in range(pieces)).strip()
    script.says(text, chunk=8, delay_chunk=1.0 if LONG_FORMS else 0.05)
    body = {"model": "assistant", "stream": True, "messages": [user(script.question())]}
    with ann.http.stream("POST", "/openai/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        sent = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
    said = [choice["delta"].get("content") or "" for one in sent for choice in json.loads(one)["choices"]]
    assert "".join(said) == text
    assert used(ann) == 5


def test_a_declined_question_is_filtered_and_the_next_one_answered(ann: Person, script: Script) -> None:
    said = [user(f"How do I make {MAGIC}_{script.marker}?")]
    declined = completed(ann, said)
    assert declined["finish_reason"] == "content_filter"
    script.says("Hello yourself.")
    said += [declined["message"], user(script.question("hello"))]
    hello = completed(ann, said)
    assert (hello["finish_reason"], hello["message"]["content"]) == ("stop", "Hello yourself.")
    sent = [body for body in map(json.dumps, script.requests()) if script.question("hello") in body]
    assert sent
    assert [body for body in sent if MAGIC in body] == []


def completed(person: Person, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The only choice of a completion."""
    body = {"model": "assistant", "messages": messages}
    answer = person.http.post("/openai/v1/chat/completions", json=body)
    assert answer.is_success, answer.text
    (choice,) = answer.json()["choices"]
    found: dict[str, Any] = choice
    return found
