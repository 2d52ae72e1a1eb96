"""OpenAI's chat completions and models."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.drivers.images import png
from tests.drivers.tour import stop
from tests.plugins.openai.door import pieces, streamed

if TYPE_CHECKING:
    import httpx

    from tests.drivers.tour import Visit

COMPLETIONS = "POST /openai/v1/chat/completions"
CONVERSATION = "X-Dualtrack-Conversation"
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Run by the client.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(answer: httpx.Response) -> str:
    """The text of a whole completion."""
    return str(answer.json()["choices"][0]["message"]["content"])


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def ask(visit: Visit, *messages: dict[str, Any], status: int = 200, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"model": "assistant", "messages": [*messages], **more}
    return visit.ask(body, headers=headers, status=status)


@stop("GET /openai/v1/models")
def the_models(visit: Visit) -> None:
    assert {"assistant", "small"} <= {model["id"] for model in visit.ask().json()["data"]}


@stop(COMPLETIONS, "model", "messages", "messages[].role", "messages[].content")
def a_completion(visit: Visit) -> None:
    visit.script.says("Forty-two.")
    program = {"role": "developer", "content": "Be terse."}
    answer = ask(visit, program, user(visit.script.question()), model="small")
    assert said(answer) == "Forty-two."
    conversation = visit.owner.get(f"/v1/conversations/{answer.headers[CONVERSATION]}")
    assert (conversation["profile"], conversation["queries"]) == ("small", 1)
    assert "Be terse." in repr(visit.script.requests()[-1])


@stop(COMPLETIONS, CONVERSATION)
def a_named_conversation(visit: Visit) -> None:
    visit.script.says("One.")
    first = ask(visit, user(visit.script.question())).headers[CONVERSATION]
    visit.script.says("Two.")
    again = ask(visit, user(visit.script.question("Again.")), headers={CONVERSATION: first})
    assert again.headers[CONVERSATION] == first
    assert visit.owner.get(f"/v1/conversations/{first}")["queries"] == 2


@stop(COMPLETIONS, "X-Dualtrack-Task")
def a_small_task(visit: Visit) -> None:
    visit.script.says("A title")
    answer = ask(visit, user(visit.script.question("Title?")), headers={"X-Dualtrack-Task": "title"})
    assert said(answer) == "A title"
    assert CONVERSATION not in answer.headers


@stop(COMPLETIONS, "x-stainless-retry-count")
def a_request_is_sent_again(visit: Visit) -> None:
    visit.script.says("Once.")
    first = ask(visit, user(visit.script.question()))
    again = ask(visit, user(visit.script.question()), headers={"x-stainless-retry-count": "1"})
    assert again.json()["id"] == first.json()["id"]


@stop(COMPLETIONS, "stream", "stream_options", "stream_options.include_usage")
def a_stream(visit: Visit) -> None:
    visit.script.asks(("kit_echo", {"text": "a"}), text="Let me look.")
    visit.script.says("There it is.")
    options = {"include_usage": True}
    answer = ask(visit, user(visit.script.question()), stream=True, stream_options=options)
    assert streamed(answer).endswith("There it is.")
    assert "kit_echo" in streamed(answer, "reasoning_content")
    assert pieces(answer)[-1]["usage"]["completion_tokens"] > 0


@stop(
    COMPLETIONS,
    *("messages[].content[].type", "messages[].content[].text", "messages[].content[].image_url"),
    *("messages[].content[].image_url.url", "messages[].content[].file"),
    *("messages[].content[].file.file_data", "messages[].content[].file.filename"),
)
def files(visit: Visit) -> None:
    visit.script.says("I see both.")
    parts = [
        {"type": "text", "text": visit.script.question("Look.")},
        {"type": "image_url", "image_url": {"url": data_url("image/png", png(b"x"))}},
        {"type": "file", "file": {"file_data": data_url("text/csv", b"a,b\n"), "filename": "a.csv"}},
    ]
    conversation = ask(visit, user(parts)).headers[CONVERSATION]
    kept = visit.owner.record(conversation, "q1")["attachments"]
    assert [file["media_type"] for file in kept] == ["image/png", "text/csv"]
    assert kept[1]["name"] == "a.csv"


@stop(
    COMPLETIONS,
    *("tools", "tools[].type", "tools[].function", "tools[].function.name", "tools[].function.description"),
    *("tools[].function.parameters", "tool_choice", "messages[].tool_calls", "messages[].tool_calls[].id"),
    *("messages[].tool_calls[].function", "messages[].tool_calls[].function.name"),
    *("messages[].tool_calls[].function.arguments", "messages[].tool_call_id"),
)
def tools_of_the_client(visit: Visit) -> None:
    visit.script.asks(("look", {"at": "it"}))
    question = user(visit.script.question())
    asked = ask(visit, question, tools=[LOOK], tool_choice="auto").json()["choices"][0]
    assert asked["finish_reason"] == "tool_calls"
    (call,) = asked["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("look", {"at": "it"})
    visit.script.says("I have seen it.")
    result = {"role": "tool", "tool_call_id": call["id"], "content": "It is blue."}
    answer = ask(visit, question, asked["message"], result, tools=[LOOK])
    assert said(answer) == "I have seen it."
    assert "It is blue." in repr(visit.script.requests()[-1]["messages"][-1])
    visit.script.says("Without.")
    ask(visit, user(visit.script.question("None.")), tools=[LOOK], tool_choice="none")
    assert "look" not in [tool["name"] for tool in visit.script.requests()[-1]["tools"]]


@stop(
    COMPLETIONS,
    *("response_format", "response_format.type", "response_format.json_schema"),
    "response_format.json_schema.schema",
)
def a_form(visit: Visit) -> None:
    visit.script.says('{"city": "Rome"}')
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    answer = ask(visit, user(visit.script.question()), response_format=form)
    assert json.loads(said(answer)) == {"city": "Rome"}


@stop("GET /openai/v1/models/{model}")
def a_model(visit: Visit) -> None:
    assert visit.ask(model="small").json()["id"] == "small"
    visit.ask(model="gpt-9", status=404)


@stop(COMPLETIONS, "stop", "max_tokens", "max_completion_tokens")
def a_shorter_answer(visit: Visit) -> None:
    visit.script.says("One. END Two.")
    answer = ask(
        visit, user(visit.script.question()), stop=["END"], max_tokens=900, max_completion_tokens=800
    )
    assert said(answer) == "One. "
    assert visit.script.requests()[-1]["max_tokens"] == 800


@stop(COMPLETIONS, "user", "safety_identifier")
def people_are_told_apart(visit: Visit) -> None:
    """By a key alone: whoever has a token is one person."""
    visit.script.says("Hello!")
    question = user(visit.script.question())
    first = ask(visit, question, user="ann").headers[CONVERSATION]
    history = [question, {"role": "assistant", "content": "Hello!"}, user(visit.script.question("Again."))]
    found = []
    ways: list[dict[str, Any]] = [{"user": "ben"}, {"safety_identifier": "ann"}]
    for more in ways:
        visit.script.says("And on.")
        found.append(ask(visit, *history, **more).headers[CONVERSATION] == first)
    assert found[0] == (visit.by == "token")
    assert found[1] or visit.by == "token"


UNSERVED = {
    "n": 2,
    "functions": [{"name": "look"}],
    "function_call": {"name": "look"},
    "logprobs": True,
    "top_logprobs": 2,
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy"},
    "web_search_options": {},
}


@stop(COMPLETIONS, *UNSERVED)
def what_is_not_served_is_refused_by_its_name(visit: Visit) -> None:
    for name, value in UNSERVED.items():
        refused = ask(visit, user("Hello."), status=400, **{name: value})
        assert refused.json()["error"]["message"].startswith(f"{name}: ")
