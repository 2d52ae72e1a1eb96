"""OpenAI's responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.drivers.images import png
from tests.drivers.tour import stop
from tests.plugins.openai.completion_stops import CONVERSATION, data_url, user

if TYPE_CHECKING:
    import httpx

    from tests.drivers.tour import Visit

RESPONSES = "POST /openai/v1/responses"
RESPONSE = "GET /openai/v1/responses/{response_id}"
LOOK = {
    "type": "function",
    "name": "look",
    "description": "Run by the client.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}


def ask(visit: Visit, said: object, *, status: int = 200, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    return visit.ask({"model": "assistant", "input": said, **more}, headers=headers, status=status)


def text_of(answer: dict[str, Any]) -> str:
    return "".join(
        part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]
    )


def made(visit: Visit, says: str = "Done.", **more: Any) -> dict[str, Any]:
    """A response of the caller's."""
    visit.script.says(says)
    body = {"model": "assistant", "input": visit.script.question(), **more}
    answer = visit.client.post("/openai/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def events_of(visit: Visit, text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    visit.saw(*(event["type"] for event in events))
    return events


@stop(RESPONSES, "model", "input", "instructions", "metadata")
def a_response(visit: Visit) -> None:
    visit.script.says("Forty-two.")
    more = {"instructions": "Be terse.", "metadata": {"a": "b"}}
    answer = ask(visit, visit.script.question(), **more)
    body = answer.json()
    assert (body["status"], text_of(body), body["metadata"]) == ("completed", "Forty-two.", {"a": "b"})
    assert visit.owner.get(f"/v1/conversations/{answer.headers[CONVERSATION]}")["queries"] == 1
    assert "Be terse." in repr(visit.script.requests()[-1])


@stop(RESPONSES, CONVERSATION, "conversation", "conversation.id", "previous_response_id")
def a_response_that_follows(visit: Visit) -> None:
    visit.script.says("One.")
    first = ask(visit, visit.script.question())
    conversation = first.headers[CONVERSATION]
    ways: list[dict[str, Any]] = [
        {"previous_response_id": first.json()["id"]},
        {"conversation": {"id": conversation}},
        {"headers": {CONVERSATION: conversation}},
    ]
    for way in ways:
        visit.script.says("And on.")
        assert ask(visit, visit.script.question("Again."), **way).headers[CONVERSATION] == conversation
    assert visit.owner.get(f"/v1/conversations/{conversation}")["queries"] == 4


@stop(RESPONSES, "x-stainless-retry-count")
def a_response_is_asked_for_again(visit: Visit) -> None:
    visit.script.says("Once.")
    first = ask(visit, visit.script.question()).json()
    again = ask(visit, visit.script.question(), headers={"x-stainless-retry-count": "1"}).json()
    assert again["id"] == first["id"]


@stop(
    RESPONSES,
    *("stream", "include", "event response.output_item.added", "event response.output_item.done"),
    *("event response.content_part.added", "event response.content_part.done"),
    *("event response.output_text.delta", "event response.output_text.done"),
)
def a_streamed_response(visit: Visit) -> None:
    visit.script.asks(("kit_echo", {"text": "a"}), text="Let me look.")
    visit.script.says("There it is.")
    more = {"stream": True, "include": ["dualtrack:tool_call"]}
    events = events_of(visit, ask(visit, visit.script.question(), **more).text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"
    assert text_of(events[-1]["response"]).endswith("There it is.")
    assert "dualtrack:tool_call" in [item["type"] for item in events[-1]["response"]["output"]]


@stop(RESPONSES, "event response.refusal.delta", "event response.refusal.done")
def an_answer_that_does_not_fit(visit: Visit) -> None:
    for _ in range(3):
        visit.script.says("Rome, or so.")
    form = {"type": "json_schema", "name": "place", "schema": {"type": "object", "required": ["city"]}}
    answer = ask(visit, visit.script.question(), stream=True, text={"format": form})
    said = [event for event in events_of(visit, answer.text) if event["type"] == "response.refusal.done"]
    assert [event["refusal"] for event in said] == ["The answer did not fit the schema."]


@stop(RESPONSES, "background")
def a_response_in_the_background(visit: Visit) -> None:
    visit.script.says("Later.")
    begun = ask(visit, visit.script.question(), background=True).json()
    assert (begun["status"], begun["background"]) == ("in_progress", True)
    visit.finish(begun["id"].replace("resp_", "ch_"))


@stop(
    RESPONSES,
    *("tools", "tools[].type", "tools[].name", "tools[].description", "tools[].parameters", "tool_choice"),
    *("input[].type", "input[].call_id", "input[].name", "input[].arguments", "input[].output"),
)
def tools_of_the_client(visit: Visit) -> None:
    visit.script.asks(("look", {"at": "it"}))
    question = user(visit.script.question())
    asked = ask(visit, [question], tools=[LOOK], tool_choice="auto").json()
    (call,) = [item for item in asked["output"] if item["type"] == "function_call"]
    assert (call["name"], json.loads(call["arguments"])) == ("look", {"at": "it"})
    visit.script.says("I have seen it.")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "It is blue."}
    answer = ask(visit, [question, call, result], tools=[LOOK]).json()
    assert text_of(answer) == "I have seen it."
    assert "It is blue." in repr(visit.script.requests()[-1]["messages"][-1])


@stop(
    RESPONSES,
    *("input[].role", "input[].content", "input[].content[].type", "input[].content[].text"),
    *("input[].content[].image_url", "input[].content[].file_data", "input[].content[].filename"),
    "input[].status",
)
def a_resent_history_and_files(visit: Visit) -> None:
    visit.script.says("I see both.")
    parts = [
        {"type": "input_text", "text": visit.script.question("Look.")},
        {"type": "input_image", "image_url": data_url("image/png", png(b"x"))},
        {"type": "input_file", "file_data": data_url("text/csv", b"a,b\n"), "filename": "a.csv"},
    ]
    history = [
        user("Hello."),
        {"role": "assistant", "content": "It broke o", "status": "incomplete"},
        {"role": "assistant", "content": "Hello to you."},
    ]
    conversation = ask(visit, [*history, user(parts)]).headers[CONVERSATION]
    kept = visit.owner.record(conversation, "q2")["attachments"]
    assert [file["media_type"] for file in kept] == ["image/png", "text/csv"]
    assert kept[1]["name"] == "a.csv"
    assert visit.owner.record(conversation, "q1-r")["content"] == "Hello to you."


@stop(RESPONSES, "input[].id")
def items_are_referred_to(visit: Visit) -> None:
    first = made(visit)
    visit.script.says("And on.")
    items = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    again = ask(visit, [*items, user(visit.script.question("Again."))]).headers[CONVERSATION]
    assert visit.owner.get(f"/v1/conversations/{again}")["queries"] == 2
    ask(visit, items, status=400)


@stop(
    RESPONSES,
    *(
        "text",
        "text.format",
        "text.format.type",
        "text.format.name",
        "text.format.schema",
        "text.format.strict",
    ),
)
def a_form(visit: Visit) -> None:
    visit.script.says('{"city": "Rome"}')
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = {"type": "json_schema", "name": "place", "schema": schema, "strict": True}
    body = ask(visit, visit.script.question(), text={"format": form}).json()
    assert json.loads(text_of(body)) == {"city": "Rome"}
    assert body["text"]["format"] == form


@stop(RESPONSE, "stream", "starting_after")
def a_response_is_read_again(visit: Visit) -> None:
    first = made(visit)
    assert visit.ask(response_id=first["id"]).json() == first
    events = events_of(visit, visit.ask(query={"stream": "true"}, response_id=first["id"]).text)
    after = {"stream": "true", "starting_after": 2}
    assert events_of(visit, visit.ask(query=after, response_id=first["id"]).text) == events[3:]


@stop("POST /openai/v1/responses/{response_id}/cancel")
def a_response_is_cancelled(visit: Visit) -> None:
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    body = {"model": "assistant", "input": visit.script.question(), "background": True}
    begun = visit.client.post("/openai/v1/responses", json=body).json()
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    assert visit.ask(response_id=begun["id"]).json()["status"] == "cancelled"


@stop(RESPONSES, "max_output_tokens")
def a_shorter_response(visit: Visit) -> None:
    visit.script.says("Short.")
    body = ask(visit, visit.script.question(), max_output_tokens=800).json()
    assert (text_of(body), body["max_output_tokens"]) == ("Short.", 800)
    assert visit.script.requests()[-1]["max_tokens"] == 800


@stop(RESPONSES, "user", "safety_identifier")
def people_are_told_apart(visit: Visit) -> None:
    """By a key alone: whoever has a token is one person."""
    visit.script.says("Hello!")
    question = user(visit.script.question())
    first = ask(visit, [question], user="ann").headers[CONVERSATION]
    history = [question, {"role": "assistant", "content": "Hello!"}, user(visit.script.question("Again."))]
    visit.script.says("And on.")
    other = ask(visit, history, safety_identifier="ben").headers[CONVERSATION]
    assert (other == first) == (visit.by == "token")


UNSERVED = {"prompt": {"id": "pmpt_1"}, "max_tool_calls": 3, "top_logprobs": 2}


@stop(RESPONSES, *UNSERVED)
def what_is_not_served_is_refused_by_its_name(visit: Visit) -> None:
    for name, value in UNSERVED.items():
        refused = ask(visit, "Hello.", status=400, **{name: value})
        assert refused.json()["error"]["message"].startswith(f"{name}: ")
