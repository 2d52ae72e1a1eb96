"""The tools that a client brings, through the function itself: what is refused, and who may send results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tools.mcp.catalogue import ServerTools, store_listing
from dualtrack.tools.registry import IN_HOUSE

from tests.drivers.world import ref_of

if TYPE_CHECKING:
    from tests.clients.api_client import Api

TOOL = {
    "name": "look_up",
    "description": "Looks a word up.",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def paused(api: Api, **more: Any) -> dict[str, Any]:
    """A chat that waits for its client, as POST /v1/chats has answered it."""
    message = f"What is a dinghy, {api.user}?"
    use = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"word": "dinghy"}}
    api.world.model.script.add(
        {"match": message, "content": [use]}, {"match": message, "text": "A small boat."}
    )
    started = api.call("POST", "/v1/chats", {"message": message, "tools": [TOOL], **more}).json
    assert turn(api, started, 0) == "paused"
    return started


def turn(api: Api, started: dict[str, Any], recorded: int) -> str:
    """The Turn state behind a turn; what follows."""
    return api.world.take_turn(replace(ref_of(api.chat(started["chat_id"])), turn=recorded))["next"]


def test_a_client_runs_its_own_tool(api: Api) -> None:
    started = paused(api)
    chat = api.get(started["url"])
    call = {"id": "q1-t1", "tool": "look_up", "input": {"word": "dinghy"}, "kind": "client_tool"}
    assert (chat["status"], chat["pause"]["calls"]) == ("paused", [call])
    body = {"decisions": [{"id": "q1-t1", "result": "", "is_error": True}]}
    for _ in range(2):
        answer = api.call("POST", f"{started['url']}/decisions", body)
        assert (answer.status, answer.json["status"]) == (200, "running")
    assert turn(api, started, 1) == "answered"
    (ran,) = api.get(started["url"])["tool_calls"]
    assert (ran["tool"], ran["is_error"]) == ("look_up", True)
    record = api.get(f"/v1/conversations/{started['conversation_id']}/records/q1-t1")
    assert record["result"] == "(the tool returned nothing)"


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([{**TOOL, "name": "look up"}], "tools.0.name"),
        ([{**TOOL, "name": "x" * 65}], "tools.0.name"),
        ([TOOL, {**TOOL, "input_schema": {"type": "string"}}], "tools.1.input_schema.type"),
        ([{**TOOL, "input_schema": {"type": "object", "required": 1}}], "tools.0.input_schema"),
        ([{**TOOL, "input_schema": {"type": "object", "oneOf": [{}]}}], "tools.0.input_schema"),
        (
            [{**TOOL, "input_schema": {"type": "object", "properties": {"$top": {}}}}],
            "tools.0.input_schema.properties",
        ),
        ([{**TOOL, "input_schema": {"type": "object", "title": "x" * 50_000}}], "tools.0.input_schema"),
        ([{**TOOL, "description": "x" * 4_001}], "tools.0.description"),
        ([{**TOOL, "more": 1}], "tools.0.more"),
        ([{"name": "look_up", "input_schema": TOOL["input_schema"]}], "tools.0.description"),
        ([TOOL, TOOL], "tools.1.name"),
        ([{**TOOL, "name": "retrieve_full_context"}], "tools.0.name"),
        ([{**TOOL, "name": "search_course_content"}], "tools.0.name"),
        ([{**TOOL, "name": "kit_note"}], "tools.0.name"),
        ([{**TOOL, "name": f"tool_{number}"} for number in range(21)], "tools"),
        ([{**TOOL, "name": f"tool_{number}", "description": "x" * 4_000} for number in range(20)], "tools"),
        ({"look_up": TOOL}, "tools"),
    ],
)
def test_what_cannot_be_offered_is_refused_by_its_field(shared: Api, tools: Any, field: str) -> None:
    """Nothing is admitted or held for it."""
    api = shared.of("wrong-tools")
    note = replace(IN_HOUSE["retrieve_full_context"], name="kit_note", server="kit", remote_name="note")
    store_listing(api.world.stores.cache, "kit", ServerTools((note,)), api.world.clock())
    answer = api.call("POST", "/v1/chats", {"message": "Hello.", "tools": tools})
    assert (answer.status, answer.json["error"]["message"].split(":")[0]) == (400, field)
    assert api.get("/v1/credits")["held"] == 0
    assert api.get("/v1/conversations")["conversations"] == []


def test_a_key_that_may_chat_sends_its_results_and_gives_no_leave(api: Api) -> None:
    """`chat` is enough for a chat that the key has started; leave needs `decide`."""
    mine, other = (api.by_key(api.make_key("chat")["key"]) for _ in range(2))
    started = paused(mine)
    path, result = f"{started['url']}/decisions", {"decisions": [{"id": "q1-t1", "result": "A small boat."}]}
    refused = mine.call("POST", path, {"decisions": [{"id": "q1-t1", "approve": True}]})
    assert (refused.status, refused.json["error"]["scope"]) == (403, "decide")
    foreign = other.call("POST", path, result)
    assert (foreign.status, foreign.json["error"]["scope"]) == (403, "read")
    assert mine.call("POST", path, result).json["status"] == "running"
