"""Client tools and structured output over OpenAI's API: what the model was sent, one conversation, its credits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.plugins.openai.door import Door, pieces, streamed, user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

COUNT = {
    "type": "function",
    "function": {
        "name": "count_files",
        "description": "Counts files.",
        "strict": True,
        "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}},
    },
}
SEARCH = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
AS_CITY = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}


def count(folder: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": "count_files", "input": {"folder": folder}}


def says(door: Door, *turns: str | Sequence[Mapping[str, Any]]) -> None:
    for turn in turns:
        content = ({"type": "text", "text": turn},) if isinstance(turn, str) else tuple(turn)
        door.world.model.script.add(ScriptedResponse(match="turn", content=content))


def message_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


def result(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def results_sent(door: Door) -> dict[str, Any]:
    """The results of the last turn's tools as the model was sent them."""
    door.machine.wait()
    turns = [one.body for one in door.world.model.requests if one.body.get("tools")]
    blocks = [block for message in turns[-1]["messages"] for block in message["content"]]
    return {
        block["tool_use_id"]: (json.dumps(block["content"]), block.get("is_error", False))
        for block in blocks
        if block["type"] == "tool_result"
    }


def refusal(response: httpx.Response) -> str:
    assert response.status_code == 400, response.text
    return str(response.json()["error"]["message"])


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_runs_its_tools_and_the_same_chat_goes_on(door: Door, *, is_streamed: bool) -> None:
    name = f"ann{is_streamed}"
    key = door.key(name)
    text = {"type": "text", "text": "Let me count."}
    says(door, [text, count("a"), count("b"), SEARCH], "Three in all.", "Yes.")
    history = [user("How many files?")]
    first = door.post(key, history, tools=[COUNT], stream=is_streamed)
    if is_streamed:
        *_, calling, last = pieces(first)
        calls = calling["choices"][0]["delta"]["tool_calls"]
        assert [call["index"] for call in calls] == [0, 1]
        finish, said = last["choices"][0]["finish_reason"], streamed(first)
        assert "The port is 8000." in streamed(first, "reasoning_content")
    else:
        message = message_of(first)
        calls, said = message["tool_calls"], message["content"]
        finish = first.json()["choices"][0]["finish_reason"]
        assert "The port is 8000." in message["reasoning_content"]
    assert (finish, said) == ("tool_calls", "Let me count.")
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"folder": "a"}, {"folder": "b"}]
    asked = {"role": "assistant", "content": said, "tool_calls": calls}
    history += [asked, result(calls[0], "one\0 file"), result(calls[1], "two files")]

    second = door.post(key, history, tools=[COUNT], stream=is_streamed)
    again = door.post(key, history, tools=[COUNT])
    answered = streamed(second) if is_streamed else message_of(second)["content"]
    assert answered == message_of(again)["content"] == "Three in all.", "what came before is not said again"
    assert [sent for sent, _ in results_sent(door).values() if "file" in sent] == [
        '[{"type": "text", "text": "[ID:q1-t1] one file"}]',
        '[{"type": "text", "text": "[ID:q1-t2] two files"}]',
    ]
    assert not any(is_error for _, is_error in results_sent(door).values())

    history += [{"role": "assistant", "content": answered}, user("Sure?")]
    assert message_of(door.post(key, history, tools=[COUNT]))["content"] == "Yes."
    (conversation,) = door.conversations(name)
    assert conversation.queries == 2
    assert len(door.sent()) == 3
    assert door.world.stores.ledger.load(name).used_day == 20, "two chats and a search"


def test_usage_is_that_of_each_answer_and_the_arguments_are_the_models(door: Door) -> None:
    key = door.key("bo")
    says(door, [count("a")], "None.")
    history = [user("How many?")]
    first = door.post(key, history, tools=[COUNT])
    calls = message_of(first)["tool_calls"]
    assert message_of(first)["content"] is None
    history += [{"role": "assistant", "content": None, "tool_calls": calls}, result(calls[0], "")]
    second = door.post(key, history, tools=[COUNT])
    door.machine.wait()
    (conversation,) = door.conversations("bo")
    chat = door.world.stores.chats.load("bo", second.json()["id"].removeprefix("chatcmpl-"))
    assert chat is not None
    assert chat.conversation_id == conversation.conversation_id
    whole = chat.usage
    counted = [response.json()["usage"]["completion_tokens"] for response in (first, second)]
    assert sum(counted) == whole["output_tokens"]
    assert min(counted) > 0
    retried = door.post(key, history[:1], {"x-stainless-retry-count": "1"}, tools=[COUNT])
    assert message_of(retried)["tool_calls"] == calls, "a retry gets the answer that it asked for"
    assert retried.json()["usage"] == first.json()["usage"]


def test_calls_without_a_result_are_declined(door: Door) -> None:
    key = door.key("cy")
    says(door, [count("a"), count("b")], "One.")
    history = [user("How many?")]
    calls = message_of(door.post(key, history, tools=[COUNT]))["tool_calls"]
    history += [{"role": "assistant", "tool_calls": calls}, result(calls[0], "one file")]
    assert message_of(door.post(key, history, tools=[COUNT]))["content"] == "One."
    one, other = results_sent(door).values()
    assert "one file" in one[0]
    assert "The user declined this call: The client sent no result." in other[0]
    assert other[1]
    other_result = [*history[:2], result(calls[0], "another")]
    refused = door.post(key, other_result, tools=[COUNT])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "already_decided")
    assert door.world.stores.ledger.load("cy").used_day == 5


def test_a_new_message_cancels_the_pause_in_the_same_conversation(door: Door) -> None:
    key = door.key("di")
    says(door, [count("a")], "Never mind then.")
    history = [user("How many?")]
    calls = message_of(door.post(key, history, tools=[COUNT]))["tool_calls"]
    history += [{"role": "assistant", "content": "", "tool_calls": calls}, user("Never mind.")]
    assert message_of(door.post(key, history))["content"] == "Never mind then."
    (conversation,) = door.conversations("di")
    assert conversation.queries == 2
    assert door.world.stores.ledger.load("di").used_day == 10
    assert not door.world.stores.paused.of("di")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_results_that_come_with_a_new_message_are_kept_and_the_other_calls_declined(
    door: Door, number: int
) -> None:
    name = f"dot{number}"
    key = door.key(name)
    says(door, [count("a"), count("b")], "Noted.")
    history = [user("How many?")]
    calls = message_of(door.post(key, history, tools=[COUNT]))["tool_calls"]
    brought = [result(call, f"{call['id'][-1]} files") for call in calls[:number]]
    history += [{"role": "assistant", "content": "", "tool_calls": calls}, *brought, user("Never mind.")]
    assert message_of(door.post(key, history))["content"] == "Noted."
    door.machine.wait()
    (conversation,) = door.conversations(name)
    assert conversation.queries == 2
    records = door.world.stores.history.query_records(name, conversation.conversation_id, 1)
    kept = {record.record_id: record.content for record in records if record.call}
    came = {"q1-t1": "1 files", "q1-t2": "2 files"}
    assert kept == dict([*came.items()][:number])
    asked = door.world.stores.chats.load_with_turns(name, f"ch_{calls[0]['id'].split('_')[1]}")
    assert asked is not None
    chat, (turn,) = asked
    outcomes = ["answered"] * number + ["declined"] * (2 - number if number else 0)
    assert [call.verdict.outcome for call in turn.calls if call.verdict] == outcomes
    assert chat.status == "cancelled"
    sent = json.dumps(door.world.model.requests[-1].body["messages"])
    assert [text in sent for text in came.values()] == [place < number for place in range(2)]
    assert door.world.stores.ledger.load(name).used_day == 10
    assert not door.world.stores.paused.of(name)


def test_nobody_else_decides(door: Door) -> None:
    key = door.key("ed")
    says(door, [count("a")])
    calls = message_of(door.post(key, [user("How many?")], tools=[COUNT]))["tool_calls"]
    history = [user("How many?"), {"role": "assistant", "tool_calls": calls}, result(calls[0], "mine")]
    assert "no chat waits" in refusal(door.post(door.key("eve"), history))
    assert door.post(door.key("ed", "chat"), history).status_code == 403
    assert len(door.world.stores.paused.of("ed")) == 1


def test_past_tool_calls_of_a_foreign_history_become_records(door: Door) -> None:
    key = door.key("flo")
    foreign = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
    }
    odd = {"id": "call_2", "type": "function", "function": {"name": "a b", "arguments": "not json"}}
    history = [
        user("How warm?"),
        {"role": "assistant", "content": "Let me see.", "tool_calls": [foreign, odd]},
        result(foreign, "It is 31 degrees. " * 100),
        {"role": "assistant", "content": "Warm."},
        user("And tomorrow?"),
    ]
    says(door, "Also.")
    assert message_of(door.post(key, history))["content"] == "Also."
    (conversation,) = door.conversations("flo")
    records = door.world.stores.history.query_records("flo", conversation.conversation_id, 1)
    assert [record.record_id for record in records] == ["q1", "q1-t1", "q1-t2", "q1-r"]
    call = records[1].call
    assert call is not None
    assert (call.tool, dict(call.input)) == ("weather", {"city": "Rome"})
    (sent,) = door.sent()
    assert any("ref:q1-t1" in block and "(data from weather)" in block for block in sent)
    history += [{"role": "assistant", "content": "Also."}, user("Sure?")]
    says(door, "Yes.")
    door.post(key, history)
    assert [each.queries for each in door.conversations("flo")] == [3]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_that_fits_a_schema(door: Door, *, is_streamed: bool) -> None:
    name = f"gil{is_streamed}"
    key, form = door.key(name), {"response_format": AS_CITY, "stream": is_streamed}
    text = {"type": "text", "text": "Let me look."}

    def content(response: httpx.Response) -> str:
        return streamed(response) if is_streamed else message_of(response)["content"]

    says(door, [text, SEARCH], 'It is "Rome".', '{"city": "Rome"}')
    assert json.loads(content(door.post(key, [user("Where?")], **form))) == {"city": "Rome"}
    forced = door.world.model.requests[2].body["output_config"]["format"]
    assert forced["type"] == "json_schema"
    says(door, "nowhere", "still nowhere")
    missed = door.post(key, [user("Where then?")], **form)
    if is_streamed:
        assert streamed(missed) == ""
        assert streamed(missed, "refusal") == "The answer did not fit the schema."
    else:
        assert message_of(missed)["content"] is None
        assert message_of(missed)["refusal"] == "The answer did not fit the schema."
    says(door, '{"any": 1}')
    any_object = {"response_format": {"type": "json_object"}, "stream": is_streamed}
    assert json.loads(content(door.post(key, [user("Any?")], **any_object))) == {"any": 1}
    assert door.world.stores.ledger.load(name).used_day == 25, "three chats and a search"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"tools": [COUNT], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [{"type": "custom"}]}, "tools.0.type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools.0.function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "x"}}}]},
            "tools.0.function.parameters.type",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "retrieve_documentation"}}]},
            "there is a tool",
        ),
        ({"tools": [COUNT, COUNT]}, "there twice"),
        ({"tools": [COUNT] * 21}, "at most 20"),
        ({"functions": [{"name": "a"}]}, "functions"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/no"}}}},
            "response_format",
        ),
        (
            {"messages": [user("x"), {"role": "tool", "tool_call_id": "call_1", "content": "x"}]},
            "the last one",
        ),
    ],
)
def test_what_is_not_taken_is_refused_by_its_name(door: Door, changed: dict[str, Any], named: str) -> None:
    body = {"model": "assistant", "messages": [user("x")], **changed}
    assert named in refusal(door.send(door.key("hal"), body))
    assert door.conversations("hal") == []
