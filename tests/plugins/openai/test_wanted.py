"""What a request asks of its answer: a call of a tool, an end at a text, fewer tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ApiError
from dualtrack.models.wanted import Wanted
from dualtrack.plugins.openai.wanted import wanted_of
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.plugins.openai.door import Door, answers, pieces, streamed, user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": CITY}} for name in ("weather", "final")
]
NAMED = {"type": "function", "function": {"name": "final"}}
FLAT = {"type": "function", "name": "final"}


def call(name: str, text: str = "") -> ScriptedResponse:
    said = ({"type": "text", "text": text},) if text else ()
    return ScriptedResponse(
        match="turn", content=(*said, {"type": "tool_use", "name": name, "input": {"city": "Oslo"}})
    )


def message_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


def called(message: Mapping[str, Any]) -> list[str]:
    return [one["function"]["name"] for one in message.get("tool_calls") or ()]


def turns(door: Door) -> list[Mapping[str, Any]]:
    door.machine.wait()
    return [one.body for one in door.world.model.requests if one.body.get("stream")]


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("choice", "first", "second"),
    [
        ("required", None, "weather"),
        (NAMED, None, "final"),
        (NAMED, "weather", "final"),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
            "weather",
            "final",
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [FLAT]}, "weather", "final"),
    ],
)
def test_a_choice_that_the_reply_does_not_follow_is_asked_for_once_more(
    door: Door, choice: object, first: str | None, second: str, *, is_streamed: bool
) -> None:
    name = f"ann-{is_streamed}-{len(json.dumps([choice, first]))}"
    key = door.key(name)
    door.world.model.script.add(call(first) if first else ScriptedResponse(match="turn", text="It rains."))
    door.world.model.script.add(call(second))
    response = door.post(key, [user("Oslo?")], tools=TOOLS, tool_choice=choice, stream=is_streamed)
    if is_streamed:
        chunks = [chunk["choices"][0] for chunk in pieces(response)]
        calls = [one for chunk in chunks for one in chunk["delta"].get("tool_calls", ())]
        assert [one["function"]["name"] for one in calls] == [second]
        assert chunks[-1]["finish_reason"] == "tool_calls"
        assert streamed(response) == "", "what is no answer is not shown"
    else:
        assert called(message_of(response)) == [second]
        assert message_of(response)["content"] is None
    asked, again = turns(door)
    assert asked["tools"] == again["tools"]
    assert "tool_choice" not in asked, "a forced choice would move the cached prefix"
    assert "tool_choice" not in again
    assert again["messages"][: len(asked["messages"]) - 1] == asked["messages"][:-1]
    assert json.dumps(again["messages"][-1]).count("the program that the user writes with") or json.dumps(
        again["messages"][-1]
    ).count("The program that the user writes with")
    assert door.world.stores.ledger.load(name).used_day == 0, "of the chat that waits"


def test_a_choice_that_is_followed_costs_no_further_call(door: Door) -> None:
    key = door.key("bea")
    door.world.model.script.add(call("weather", "Let me see."))
    message = message_of(door.post(key, [user("Oslo?")], tools=TOOLS, tool_choice="required"))
    assert (called(message), message["content"]) == (["weather"], "Let me see.")
    assert len(turns(door)) == 1


def test_each_request_has_its_own_choice(door: Door) -> None:
    """pydantic-ai asks with each request, openai-agents with the first alone; an answer without a call stays one if the
    model insists."""
    key, history = door.key("cy"), [user("Oslo?")]
    door.world.model.script.add(call("weather"))
    first = message_of(door.post(key, history, tools=TOOLS, tool_choice="required"))
    history += [first, {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "Rain."}]
    answers(door, "It rains.")
    door.world.model.script.add(call("final"))
    second = message_of(door.post(key, history, tools=TOOLS, tool_choice="required"))
    assert called(second) == ["final"]
    history += [second, {"role": "tool", "tool_call_id": second["tool_calls"][0]["id"], "content": "ok"}]
    answers(door, "Done.")
    third = message_of(door.post(key, history, tools=TOOLS))
    assert (called(third), third["content"]) == ([], "Done.")
    assert len(turns(door)) == 4
    assert door.world.stores.ledger.load("cy").used_day == 5, "one chat"

    answers(door, "No.", "No, I said. ")
    insists = message_of(door.post(key, [user("Rome?")], tools=TOOLS, tool_choice="required"))
    assert (called(insists), insists["content"]) == ([], "No, I said. ")
    answers(door, "Yes.")
    said = [user("Rome?"), insists, user("Sure?")]
    assert message_of(door.post(key, said))["content"] == "Yes."
    assert [each.queries for each in door.conversations("cy")] == [2, 1]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_ends_at_a_text(door: Door, *, is_streamed: bool) -> None:
    key = door.key(f"di{is_streamed}")
    answers(door, "One.\nEND two.")
    response = door.post(key, [user("Count.")], stop=["END", "three"], stream=is_streamed)
    assert (streamed(response) if is_streamed else message_of(response)["content"]) == "One.\n"
    finish = pieces(response)[-1]["choices"][0] if is_streamed else response.json()["choices"][0]
    assert finish["finish_reason"] == "stop"
    assert turns(door)[0]["stop_sequences"] == ["END", "three"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_fewer_tokens_than_the_profiles_count(door: Door, field: str) -> None:
    key = door.key(f"ed-{field}")
    body = {"model": "assistant", "messages": [user("Say much.")]}
    response = door.send(key, {**body, field: 3})
    assert response.json()["choices"][0]["finish_reason"] == "length"
    assert 0 < len(message_of(response)["content"]) <= 12
    *_, last = turns(door)
    assert last["max_tokens"] == 3
    door.send(key, {**body, field: 10_000_000})
    assert turns(door)[-1]["max_tokens"] < 10_000_000, "the profile's limit holds"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, None),
        ({"tool_choice": "auto", "stop": None, "max_tokens": None}, None),
        ({"stop": "a"}, Wanted(stop=("a",))),
        ({"max_tokens": 9, "max_completion_tokens": 7}, Wanted(7)),
        ({"tools": TOOLS, "tool_choice": "required"}, Wanted(must_call=True)),
        ({"tools": TOOLS, "tool_choice": FLAT}, Wanted(must_call=True, tools=("final",))),
        ({"tools": TOOLS, "tool_choice": "none"}, Wanted(tools=())),
    ],
)
def test_what_a_body_asks_for(body: dict[str, Any], expected: Wanted | None) -> None:
    assert wanted_of(body) == expected


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"stop": 1}, "stop"),
        ({"stop": ["a"] * 5}, "stop: at most 4"),
        ({"stop": ["a" * 201]}, "stop"),
        ({"stop": "\n"}, "stop: white space"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": True}, "max_completion_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"tool_choice": "required"}, "tool_choice: there are no tools"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "other"}}, "'other' is none of"),
        ({"tools": TOOLS, "tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "x"}}, "tool_choice.mode"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.tools"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": [1]}}, "tool_choice.tools"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_its_name(body: dict[str, Any], named: str) -> None:
    with pytest.raises(ApiError, match=named) as refused:
        wanted_of(body)
    assert refused.value.status == 400


def responses_of(door: Door, key: str, sent: Sequence[object] | str, **more: Any) -> httpx.Response:
    import httpx as client

    body = {"model": "assistant", "input": sent, **more}
    headers = {"Authorization": f"Bearer {key}"}
    return client.post(f"{door.url}/openai/v1/responses", json=body, headers=headers, timeout=30)


def test_responses_take_the_same(door: Door) -> None:
    key = door.key("flo")
    flat = [{"type": "function", "name": "final", "parameters": CITY}]
    answers(door, "It rains.")
    door.world.model.script.add(call("final"))
    made = responses_of(door, key, "Oslo?", tools=flat, tool_choice=FLAT, max_output_tokens=900).json()
    assert [item["type"] for item in made["output"]] == ["function_call"]
    assert (made["tool_choice"], made["max_output_tokens"]) == (FLAT, 900)
    refused = responses_of(door, key, "Say much.", max_output_tokens=0)
    assert refused.json()["error"]["message"].startswith("max_output_tokens: ")
    cut = responses_of(door, key, "Say much.", max_output_tokens=3).json()
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
