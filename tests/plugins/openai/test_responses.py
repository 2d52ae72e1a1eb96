"""Responses over whole chats: what the model was sent, how many conversations there are, what was charged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.events import (
    Event,
    StoredEvent,
    answer,
    delta,
    error,
    paused,
    resumed,
    tool_result,
    turn_begins,
)
from dualtrack.plugins.openai.responses import ResponseStream
from dualtrack.plugins.openai.transcript import AnswerTranscript
from dualtrack.storage.chats import Chat
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.plugins.openai.door import Door, answers, user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.answers import OpenCall

SEARCH = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
COUNT = {
    "type": "function",
    "name": "count_files",
    "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}},
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
AS_CITY = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}
WORK = {"include": ["dualtrack:tool_call"]}


def create(
    door: Door, key: str, said: object, headers: Mapping[str, str] | None = None, **more: Any
) -> httpx.Response:
    given = {"Authorization": f"Bearer {key}", **(headers or {})}
    body = {"model": "assistant", "input": said, **more}
    return httpx.post(f"{door.url}/openai/v1/responses", json=body, headers=given, timeout=30)


def made(door: Door, key: str, said: object, **more: Any) -> dict[str, Any]:
    response = create(door, key, said, **more)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def read(door: Door, key: str, response_id: str, query: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"{door.url}/openai/v1/responses/{response_id}{query}", headers=headers, timeout=30)


def cancelled(door: Door, key: str, response_id: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{door.url}/openai/v1/responses/{response_id}/cancel", headers=headers, timeout=30)


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def text_of(body: Mapping[str, Any]) -> str:
    """The answer: the text of the complete messages."""
    return "".join(
        part["text"]
        for item in body["output"]
        if item["type"] == "message" and item["status"] == "completed"
        for part in item["content"]
    )


def past(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer as AI SDK sends it again."""
    return [{"type": "item_reference", "id": item["id"]} for item in body["output"]]


def adds_up(events: Sequence[Mapping[str, Any]]) -> None:
    """The numbers have no gaps, and what was streamed is what was returned."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    last = events[-1]["response"]
    for index, item in enumerate(last["output"]):
        mine = [event for event in events if event.get("output_index") == index]
        assert mine[0]["type"] == "response.output_item.added"
        assert mine[-1] == {**mine[-1], "type": "response.output_item.done", "item": item}
        if item["type"] == "message":
            sent = [event["delta"] for event in mine if event["type"] == "response.output_text.delta"]
            assert "".join(sent) == "".join(part["text"] for part in item["content"])


def test_an_answer_whole_streamed_and_read_again(door: Door) -> None:
    key = door.key("ann")
    answers(door, "Forty-two.", "Forty-three, \n\nor so. ")
    body = made(door, key, "How many?", instructions="Be terse.", metadata={"a": "b"})
    chat = door.world.stores.chats.load("ann", body["id"].replace("resp_", "ch_"))
    assert chat is not None
    assert (body["status"], text_of(body), body["metadata"]) == ("completed", "Forty-two.", {"a": "b"})
    counts = chat.usage
    prompt = counts["input_tokens"] + counts["cache_read_tokens"] + counts["cache_write_tokens"]
    assert body["usage"]["input_tokens"] == prompt > 0
    assert body["usage"]["output_tokens"] == counts["output_tokens"] > 0
    assert read(door, key, body["id"]).json() == body
    assert "Be terse." in door.sent()[0][1]

    stream = create(door, key, "And?", previous_response_id=body["id"], stream=True)
    events = events_of(stream)
    adds_up(events)
    assert events[-1]["type"] == "response.completed"
    last = events[-1]["response"]
    assert text_of(last) == "Forty-three, \n\nor so. "
    assert last["previous_response_id"] == body["id"]
    (conversation,) = door.conversations("ann")
    assert conversation.queries == 2
    assert not any("Be terse." in block for block in door.sent()[1])
    assert door.world.stores.ledger.load("ann").used_day == 10


def test_a_stream_goes_on_behind_every_event(door: Door) -> None:
    key = door.key("bea")
    content = ({"type": "text", "text": "Let me look. \n"}, SEARCH)
    door.world.model.script.add(ScriptedResponse(match="turn", content=content))
    answers(door, "It is 8000.")
    events = events_of(create(door, key, "Which port?", stream=True, **WORK))
    adds_up(events)
    last = events[-1]["response"]
    kinds = [item["type"] for item in last["output"]]
    assert kinds == ["message", "dualtrack:tool_call", "message"]
    assert text_of(last) == "Let me look. \n\n\nIt is 8000."
    assert last["output"][1]["output"] == "The port is 8000."
    for event in events[:-1]:
        number = event["sequence_number"]
        again = read(door, key, last["id"], f"?stream=true&starting_after={number}")
        assert events_of(again) == events[number + 1 :]
    answers(door, "Yes.")
    resent = [user("Which port?"), *last["output"], user("Sure?")]
    assert text_of(made(door, key, resent)) == "Yes."
    (conversation,) = door.conversations("bea")
    assert conversation.queries == 2, "found by what was said, tools' items passed over"


def test_without_being_asked_for_the_tools_work_is_no_item(door: Door) -> None:
    key = door.key("cy")
    content = ({"type": "text", "text": "Let me look."}, SEARCH)
    door.world.model.script.add(ScriptedResponse(match="turn", content=content))
    answers(door, "It is 8000.")
    body = made(door, key, "Which port?")
    assert [item["type"] for item in body["output"]] == ["message"]
    assert text_of(body) == "Let me look.\n\nIt is 8000."


def test_references_to_past_answers_are_followed(door: Door) -> None:
    """As AI SDK sends them: the system prompt is an item, past answers are references."""
    key, system = door.key("di"), {"role": "system", "content": "You are kind."}
    answers(door, "One.", "Two.", "Two again.")
    one = made(door, key, [system, user("First?")])
    history = [system, user("First?"), *past(one), user("Second?")]
    made(door, key, history)
    (conversation,) = door.conversations("di")
    assert conversation.queries == 2
    last = door.sent()[-1]
    assert sum("First?" in block for block in last) == 1
    assert "You are kind." in last[-1]
    assert text_of(made(door, key, history)) == "Two again."
    assert len(door.conversations("di")) == 2, "answered again: a fork"
    assert not any("Two." in block for block in door.sent()[-1])
    foreign = [user("First?"), {"type": "item_reference", "id": "msg_68af3c"}, user("Second?")]
    lost = create(door, key, foreign)
    assert lost.status_code == 404, "a past that is not found is not left out in silence"
    assert "msg_68af3c" in lost.json()["error"]["message"]


def test_a_conversation_is_named_and_a_resent_history_found(door: Door) -> None:
    key = door.key("ed")
    answers(door, "One.", "Two.", "Three.")
    one = made(door, key, [user("First?")])
    two = made(door, key, "Second?", conversation=one["conversation"]["id"])
    assert two["conversation"] == one["conversation"]
    resent = [user("First?"), *one["output"], user("Second?"), *two["output"], user("Third?")]
    assert made(door, key, resent)["conversation"] == one["conversation"]
    (conversation,) = door.conversations("ed")
    assert conversation.queries == 3
    both = create(door, key, "x", conversation=one["conversation"], previous_response_id=one["id"])
    assert both.status_code == 400


def test_in_the_background_a_response_is_made_read_and_cancelled(door: Door) -> None:
    key = door.key("flo")
    answers(door, "One.", "Two.")
    door.machine.held = True
    try:
        begun = made(door, key, "First?", background=True)
        assert (begun["status"], begun["background"], begun["output"]) == ("in_progress", True, [])
        assert read(door, key, begun["id"]).json() == begun
        door.machine.release()
        door.machine.wait()
        ended = read(door, key, begun["id"]).json()
        assert (ended["status"], text_of(ended)) == ("completed", "One.")
        resent = [user("First?"), *ended["output"], user("Second?")]
        second = made(door, key, resent, background=True)
        assert second["conversation"] == begun["conversation"], "noted as it was read"
        stopped = cancelled(door, key, second["id"]).json()
        assert stopped["status"] == "cancelled"
        assert cancelled(door, key, second["id"]).json() == stopped
        assert read(door, key, second["id"], "?stream=true").text.count("response.incomplete") == 2
        assert cancelled(door, key, begun["id"]).json() == ended, "an ended one stays as it is"
        door.machine.release()  # its execution finds it cancelled
    finally:
        door.machine.held = False


def asked_to_count(door: Door) -> None:
    calls = [{"type": "tool_use", "name": "count_files", "input": {"folder": folder}} for folder in "ab"]
    door.world.model.script.add(
        ScriptedResponse(match="turn", content=({"type": "text", "text": "Let me count."}, *calls))
    )


def output_of(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


@pytest.mark.parametrize("form", ["previous", "references", "items", "interleaved"])
def test_a_client_runs_its_tools_and_the_same_chat_goes_on(door: Door, form: str) -> None:
    name = f"tools-{form}"
    key = door.key(name)
    asked_to_count(door)
    answers(door, "Three in all.", "Yes.")
    first = events_of(create(door, key, "How many?", tools=[COUNT], stream=True))
    adds_up(first)
    one = first[-1]["response"]
    message, *calls = one["output"]
    assert (one["status"], text_of(one)) == ("completed", "Let me count.")
    assert [json.loads(call["arguments"]) for call in calls] == [{"folder": "a"}, {"folder": "b"}]
    results = [output_of(calls[0], "one file"), output_of(calls[1], "two files")]
    said: dict[str, Any] = {
        "previous": {"said": results, "previous_response_id": one["id"]},
        "references": {"said": [user("How many?"), *past(one), *results]},
        "items": {"said": [user("How many?"), message, *calls, *results]},
        "interleaved": {"said": [user("How many?"), message, calls[0], results[0], calls[1], results[1]]},
    }[form]
    second = events_of(create(door, key, tools=[COUNT], stream=True, metadata={"n": "2"}, **said))
    adds_up(second)
    two = second[-1]["response"]
    assert (text_of(two), two["metadata"]) == ("Three in all.", {"n": "2"})
    assert two["id"] == f"{one['id']}_1"
    assert two["output"][0]["id"] not in {item["id"] for item in one["output"]}
    assert read(door, key, two["id"]).json() == two
    assert read(door, key, one["id"]).json() == one, "the first one stays what it was"
    again = read(door, key, two["id"], "?stream=true&starting_after=3")
    assert events_of(again) == second[4:]
    chat = door.world.stores.chats.load(name, one["id"].replace("resp_", "ch_"))
    assert chat is not None
    spent = [each["usage"]["output_tokens"] for each in (one, two)]
    assert sum(spent) == chat.usage["output_tokens"]
    assert all(spent)
    made(door, key, [user("How many?"), *past(one), *results, *past(two), user("Sure?")])
    (conversation,) = door.conversations(name)
    assert conversation.queries == 2
    assert door.world.stores.ledger.load(name).used_day == 10


def test_a_message_behind_calls_cancels_them_in_the_same_conversation(door: Door) -> None:
    key = door.key("mia")
    asked_to_count(door)
    answers(door, "Fine.")
    one = made(door, key, "How many?", tools=[COUNT])
    calls = one["output"][1:]
    said = [*past(one), *(output_of(call, "none") for call in calls), user("Never mind.")]
    assert text_of(made(door, key, said)) == "Fine."
    (conversation,) = door.conversations("mia")
    assert conversation.queries == 2
    other = create(door, door.key("ned"), [output_of(calls[0], "x")], previous_response_id=one["id"])
    assert other.status_code == 400
    assert door.conversations("ned") == []


def test_results_and_a_message_behind_a_response_that_is_named(door: Door) -> None:
    key = door.key("moe")
    asked_to_count(door)
    answers(door, "Fine.")
    one = made(door, key, "How many?", tools=[COUNT])
    said = [*(output_of(call, "eleven, counted by moe") for call in one["output"][1:]), user("Never mind.")]
    assert text_of(made(door, key, said, previous_response_id=one["id"])) == "Fine."
    (conversation,) = door.conversations("moe")
    assert conversation.queries == 2
    assert "counted by moe" in json.dumps(door.sent())


def test_an_answer_that_fits_a_schema_or_a_refusal(door: Door) -> None:
    key = door.key("pia")
    answers(door, "Rome it is.", '{"city": "Rome"}', "No.", "No again.")
    events = events_of(create(door, key, "Which city?", text=AS_CITY, stream=True))
    adds_up(events)
    body = events[-1]["response"]
    assert json.loads(text_of(body)) == {"city": "Rome"}
    assert body["text"] == AS_CITY
    events = events_of(create(door, key, "Which other?", text=AS_CITY, stream=True))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    (message,) = events[-1]["response"]["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "The answer did not fit the schema."}]
    assert read(door, key, events[-1]["response"]["id"]).json() == events[-1]["response"]
    wrong = create(door, key, "x", text={"format": {"type": "json_schema"}})
    assert wrong.json()["error"]["message"].startswith("text.format")


def test_a_client_that_is_cut_off_goes_on_where_it_was(door: Door) -> None:
    key = door.key("oz")
    answers(door, "Still here.")
    door.machine.held = True
    try:
        headers = {"Authorization": f"Bearer {key}"}
        body = {"model": "assistant", "input": "Are you?", "stream": True}
        with httpx.stream("POST", f"{door.url}/openai/v1/responses", json=body, headers=headers) as cut:
            lines = (line for line in cut.iter_lines() if line.startswith("data: "))
            first = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]
        door.machine.release()
    finally:
        door.machine.held = False
    rest = events_of(read(door, key, first[0]["response"]["id"], "?stream=true&starting_after=1"))
    adds_up([*first, *rest])
    assert text_of(rest[-1]["response"]) == "Still here."
    assert len(door.conversations("oz")) == 1
    assert door.world.stores.ledger.load("oz").used_day == 5


def test_nothing_is_shared_between_keys_and_users(door: Door) -> None:
    key, other, narrow = door.key("gus"), door.key("hal"), door.key("gus", "chat")
    answers(door, "Mine.", "Yours.")
    mine = made(door, key, "Mine?")
    refusals = [
        read(door, other, mine["id"]),
        read(door, other, mine["id"], "?stream=true"),
        cancelled(door, other, mine["id"]),
        create(door, other, "x", previous_response_id=mine["id"]),
        create(door, other, "x", conversation=mine["conversation"]),
        create(door, other, [*past(mine), user("x")]),
        create(door, key, "x", conversation="c" * 3_000),
        read(door, key, "resp_junk"),
    ]
    assert [refusal.status_code for refusal in refusals] == [404] * 8
    assert all(refusal.json()["error"]["code"] == "not_found" for refusal in refusals)
    assert read(door, narrow, mine["id"]).status_code == 403
    assert create(door, narrow, "x", previous_response_id=mine["id"]).status_code == 403
    assert door.conversations("hal") == []
    assert door.world.stores.ledger.load("hal").used_day == 0
    made(door, other, [user("Mine?"), *mine["output"], user("Whose?")])
    assert [each.queries for each in door.conversations("hal")] == [2], "imported"
    assert [each.queries for each in door.conversations("gus")] == [1]


def test_files_are_taken(door: Door) -> None:
    key = door.key("ida")
    answers(door, "Seen.")
    text = "data:text/plain;base64,SGVsbG8gZmlsZQ=="
    parts = [
        {"type": "input_text", "text": "Look."},
        {"type": "input_file", "filename": "b.txt", "file_data": text},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    made(door, key, [user(parts)])
    assert sum("Hello file" in block for block in door.sent()[0]) == 1
    blocks = [
        block for message in door.world.model.requests[0].body["messages"] for block in message["content"]
    ]
    assert [block["source"]["media_type"] for block in blocks if block["type"] == "image"] == ["image/png"]
    far = [{"type": "input_image", "image_url": "https://files.example/a.png"}]
    assert "data URL" in create(door, key, [user(far)]).json()["error"]["message"]


def test_what_fails_is_an_error_while_it_can_be_and_failed_in_the_object(door: Door) -> None:
    key = door.key("jo")
    door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
    refused = create(door, key, "Fail?")
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "server_error")
    answers(door, "Now.")
    again = create(door, key, "Fail?", {"x-stainless-retry-count": "1"})
    assert text_of(again.json()) == "Now."
    door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
    events = events_of(create(door, key, "Fail streamed?", stream=True))
    adds_up(events)
    last = events[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == "server_error"
    assert read(door, key, last["response"]["id"]).json() == last["response"]
    assert door.world.stores.ledger.load("jo").used_day == 5


def test_a_response_outlives_its_events(door: Door) -> None:
    key = door.key("kim")
    content = ({"type": "text", "text": "Let me look."}, SEARCH)
    door.world.model.script.add(ScriptedResponse(match="turn", content=content))
    answers(door, "It is 8000.")
    body = made(door, key, "Which port?", metadata={"a": "b"})
    door.machine.wait()
    chats = door.world.stores.chats
    pk = f"CHAT#kim#{body['id'].replace('resp_', 'ch_')}"
    listed = chats.client.query(
        TableName=chats.table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :ev)",
        ExpressionAttributeValues={":pk": {"S": pk}, ":ev": {"S": "EV#"}},
    )
    for item in listed["Items"]:
        chats.client.delete_item(TableName=chats.table, Key={"pk": item["pk"], "sk": item["sk"]})
    assert read(door, key, body["id"]).json() == body


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": "x" * 32_001}, "input"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input.0.role"),
        ({"input": [{"type": "video", "id": "x"}]}, "video"),
        ({"input": "x", "instructions": 1}, "instructions"),
        ({"input": "x", "metadata": {"a": 1}}, "metadata"),
        ({"input": "x", "include": 1}, "include"),
        ({"input": "x", "conversation": 1}, "conversation"),
    ],
)
def test_what_is_not_taken_is_refused_by_its_name(door: Door, changed: dict[str, Any], named: str) -> None:
    body = {"model": "assistant", **changed}
    headers = {"Authorization": f"Bearer {door.key('lea')}"}
    response = httpx.post(f"{door.url}/openai/v1/responses", json=body, headers=headers, timeout=30)
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]
    assert door.conversations("lea") == []


def followed(*events: Event, after: int = 0) -> list[dict[str, Any]]:
    """The stream of a chat that wrote these events, behind the turn ``after``."""
    chat = Chat("u", f"ch_{'0' * 26}", "cv_x", 1, "assistant", "2026-11-23T00:00:00Z", 0)
    stream = ResponseStream(chat, {}, AnswerTranscript(is_streamed=True, after=after))
    sent = stream.begin()
    for number, event in enumerate(events, start=1):
        sent += stream.take(StoredEvent(number, event.event, event.data))
    return [*sent, *stream.end({})]


@pytest.mark.parametrize(
    ("repeated", "said"),
    [
        ([delta(1, "It is 9."), answer("It is 9.", (), "complete", 1)], "It is 9."),
        ([answer("Other.", (), "complete", 1)], "Other."),
        ([delta(1, "It"), turn_begins(2, 9, final=False), answer("Yes.", (), "complete", 2)], "It\n\nYes."),
    ],
)
def test_where_a_repeated_turn_does_not_go_on_another_message_begins(
    repeated: list[Event], said: str
) -> None:
    begun = [turn_begins(1, 9, final=False), delta(1, "It is 8"), turn_begins(1, 9, final=False)]
    events = followed(*begun, *repeated)
    adds_up(events)
    last = events[-1]["response"]
    assert [item["status"] for item in last["output"]] == ["incomplete", "completed"]
    assert last["output"][0]["content"][0]["text"] == "It is 8"
    assert text_of(last) == said


def test_a_turn_that_says_the_same_again_is_one_message() -> None:
    begun = [turn_begins(1, 9, final=False), delta(1, "It is 8"), turn_begins(1, 9, final=False)]
    events = followed(*begun, delta(1, "It is 8000."), answer("It is 8000.", (), "complete", 1))
    adds_up(events)
    assert [text_of(events[-1]["response"])] == ["It is 8000."]


def test_a_response_that_waits_for_people_stays_what_it_was_after_their_decision() -> None:
    call: OpenCall = {"id": "q1-t1", "tool": "delete_all", "input": {}, "kind": "approval"}
    before = [turn_begins(1, 9, final=False), delta(1, "May I?"), paused(1, [call], "2026-11-24T00:00:00Z")]
    behind = [
        resumed(1, "user", ()),
        turn_begins(2, 9, final=False),
        delta(2, "It is done."),
        answer("It is done.", (), "complete", 2),
    ]
    waits = followed(*before)
    adds_up(waits)
    assert waits == followed(*before, *behind)
    assert text_of(waits[-1]["response"]).startswith("May I?\n\n(This waits for your approval:\n- delete_all")
    rest = followed(*before, *behind, after=1)
    adds_up(rest)
    assert text_of(rest[-1]["response"]) == "It is done."


def test_what_waits_is_told_with_nothing_hidden() -> None:
    """On a line of its own, with the end of a long input."""
    given = {"to": "ann\u202e\u200b", "text": "x" * 2_000 + " and Mallory"}
    call: OpenCall = {"id": "q1-t1", "tool": "pay\u2066", "input": given, "kind": "approval"}
    said = text_of(
        followed(turn_begins(1, 9, final=False), paused(1, [call], "2026-11-24T00:00:00Z"))[-1]["response"]
    )
    line = next(line for line in said.splitlines() if line.startswith("- "))
    assert line.startswith('- pay\\u2066 {"to": "ann\\u202e\\u200b"')
    assert line.endswith(' and Mallory"}')
    assert "more characters" in line


def test_what_fails_late_leaves_its_message_incomplete() -> None:
    begun = [
        turn_begins(1, 9, final=False),
        delta(1, "It is"),
        tool_result("q1-t9", "x", 1, "y", "done", is_error=False),
    ]
    events = followed(*begun, error("timeout", "It took too long."))
    adds_up(events)
    last = events[-1]["response"]
    assert (last["status"], last["output"][0]["status"]) == ("failed", "incomplete")
