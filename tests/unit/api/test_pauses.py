"""Open decisions and what is decided, through the function itself (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.clients.api_client import Api


def decide(api: Api, started: dict[str, Any], *decisions: dict[str, Any]) -> Any:
    return api.call("POST", f"{started['url']}/decisions", {"decisions": [*decisions]})


def test_a_paused_chat_says_what_it_waits_for(api: Api) -> None:
    started = api.pause()
    chat = api.get(started["url"])
    call = {"id": "q1-t1", "tool": "retrieve_full_context", "input": {"id": "q1"}, "kind": "approval"}
    assert (chat["status"], chat["pause"]["calls"]) == (
        "paused",
        [{**call, "effect": "reads", "allowable": True}],
    )
    assert chat["tool_calls"] == []
    (listed,) = api.get("/v1/pauses")["pauses"]
    assert listed == {
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "message_id": "q1",
        "profile": "assistant",
        "paused_at": listed["paused_at"],
        **chat["pause"],
    }


def test_other_users_see_and_decide_nothing(api: Api) -> None:
    started, other = api.pause(), api.of("somebody-else")
    assert other.get("/v1/pauses") == {"pauses": []}
    assert decide(other, started, {"id": "q1-t1", "approve": True}).status == 404
    assert api.get(started["url"])["status"] == "paused"


def test_a_decided_chat_goes_on_and_a_repeat_shows_it_again(api: Api) -> None:
    started = api.pause()
    for _ in range(2):
        answer = decide(api, started, {"id": "q1-t1", "approve": False, "reason": "No."})
        assert (answer.status, answer.json["status"], "pause" in answer.json) == (200, "running", False)
    assert api.get("/v1/pauses") == {"pauses": []}
    assert api.turn(started, 1) == "answered"
    assert decide(api, started, {"id": "q1-t1", "approve": True}).json["error"]["code"] == "already_decided"


OF_IT = {"chat_id", "conversation_id", "message_id", "profile", "status"}


def by(api: Api, started: dict[str, Any]) -> list[str]:
    """Who has decided, by the chat's events."""
    events = api.world.stores.log(api.chat(started["chat_id"])).events()
    return [event.data["by"] for event in events if event.event == "resumed"]


@pytest.mark.parametrize(
    ("scopes", "reads"),
    [(["decide"], False), (["decide", "chat"], False), (["decide", "read"], True)],
)
def test_a_key_that_may_not_read_the_chat_decides_and_sees_none_of_its_texts(
    api: Api, scopes: list[str], reads: bool
) -> None:
    """Its ids, status and pause: what it has to know to decide."""
    started, key = api.pause(calls=2), api.by_key(api.make_key(*scopes)["key"])
    first = decide(key, started, {"id": "q1-t1", "approve": True})
    assert (first.status, [call["id"] for call in first.json["pause"]["calls"]]) == (200, ["q1-t2"])
    last = decide(key, started, {"id": "q1-t2", "approve": False})
    assert (last.status, last.json["status"], "response" in last.json) == (200, "running", reads)
    assert last.json.keys() >= OF_IT if reads else last.json.keys() == OF_IT
    assert by(api, started) == ["key"]


def test_a_key_decides_within_its_scopes_and_agents(api: Api) -> None:
    started = api.pause()
    for made in (api.make_key("chat", "read"), api.make_key("decide", profiles=["courses"])):
        answer = decide(api.by_key(made["key"]), started, {"id": "q1-t1", "approve": True})
        assert (answer.status, answer.json["error"]["code"]) == (403, "forbidden")
    own = api.by_key(api.make_key("decide", "chat")["key"])
    begun = own.pause()
    assert "response" in decide(own, begun, {"id": "q1-t1", "approve": True}).json, (
        "it may read what it began"
    )


def test_the_owner_of_a_service_decides_for_its_end_users(api: Api) -> None:
    """He sees what waits, not the chat; to the end user and the service's key it is a chat like any."""
    key = api.make_key("chat", "decide", "read", acts_for="any")["key"]
    ann, ben = api.by_key(key, "ann"), api.by_key(key, "ben")
    started = ann.pause(calls=2)
    (listed,) = api.get("/v1/pauses")["pauses"]
    assert (listed["chat_id"], len(listed["calls"])) == (started["chat_id"], 2)
    assert ben.get("/v1/pauses") == {"pauses": []}
    approve = {"id": "q1-t1", "approve": True}
    assert [decide(other, started, approve).status for other in (ben, api.of("somebody"))] == [404, 404]
    assert api.call("GET", started["url"]).status == 404
    assert decide(ann, started, approve).json["status"] == "paused"
    answer = decide(api, started, approve, {"id": "q1-t2", "approve": False})
    assert (answer.status, answer.json.keys(), answer.json["status"]) == (200, OF_IT, "running")
    assert by(ann, started) == ["owner"]
    assert decide(ann, started, approve).json["status"] == "running", "the same again, by the service"
    assert decide(api, started, approve).status == 404, "it does not wait any more"


def test_a_tool_is_allowed_for_the_conversation_and_taken_back(api: Api) -> None:
    """Listed in the conversation object from the decision on; taken back twice as well as once."""
    started = api.pause()
    path = f"/v1/conversations/{started['conversation_id']}"
    assert api.get(path)["allowed"] == []
    answer = decide(api, started, {"id": "q1-t1", "approve": True, "for": "conversation"})
    assert (answer.status, answer.json["status"]) == (200, "running")
    (listed,) = api.get("/v1/conversations")["conversations"]
    assert listed["allowed"] == api.get(path)["allowed"] == ["retrieve_full_context"]
    assert api.of("somebody-else").call("DELETE", f"{path}/allowed/retrieve_full_context").status == 404
    for _ in range(2):
        assert api.call("DELETE", f"{path}/allowed/retrieve_full_context").status == 204
    assert api.get(path)["allowed"] == []


def test_a_wait_returns_at_the_pause(api: Api) -> None:
    started = api.pause()
    again = api.call("GET", started["url"])
    assert again.json["status"] == "paused"
    refused = api.call(
        "POST", "/v1/chats", {"message": "And?", "conversation_id": started["conversation_id"]}
    )
    assert (refused.status, refused.json["error"]["code"]) == (409, "conversation_paused")
    assert refused.json["error"]["chat_id"] == started["chat_id"]
    body = {"message": "And?", "conversation_id": started["conversation_id"], "on_pause": "cancel"}
    assert api.call("POST", "/v1/chats", body).status == 202
    assert api.get(started["url"])["status"] == "cancelled"


def test_a_request_repeated_with_its_key_is_answered_with_the_chat_that_waits(api: Api) -> None:
    """Neither as a message to a conversation that is taken, nor by cancelling what it had begun itself."""
    first = api.pause()
    named = {"conversation_id": first["conversation_id"], "on_pause": "cancel"}
    headers = {"Idempotency-Key": f"key-{first['chat_id']}"}
    message = f"And this, {first['chat_id']}."
    use = {"type": "tool_use", "id": "toolu_0", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add({"match": message, "content": [use]})
    body = {"message": message, **named}
    following = api.call("POST", "/v1/chats", body, headers=headers)
    assert following.status == 202, following.text
    assert api.turn(following.json, 0) == "paused"
    assert api.get(first["url"])["status"] == "cancelled"
    again = api.call("POST", "/v1/chats", body, headers=headers)
    assert (again.status, again.json["chat_id"]) == (200, following.json["chat_id"])
    assert api.get(following.json["url"])["status"] == "paused"
    other = api.call("POST", "/v1/chats", {**body, "message": "Another."}, headers=headers)
    assert (other.status, api.get(following.json["url"])["status"]) == (409, "paused")


def test_deletion_takes_what_waits_with_it(api: Api) -> None:
    """The conversation's; and all of an end user's, by the owner, whose credits were held for it."""
    started = api.pause()
    assert api.call("DELETE", f"/v1/conversations/{started['conversation_id']}").status == 204
    assert api.get("/v1/pauses") == {"pauses": []}
    assert decide(api, started, {"id": "q1-t1", "approve": True}).status == 404
    key = api.make_key("chat", "decide", "read", acts_for="any")["key"]
    ann = api.by_key(key, "ann")
    begun = ann.pause()
    assert api.get("/v1/credits")["held"] == 5
    assert api.call("DELETE", "/v1/me/users/ann").status in (202, 204)
    assert api.get("/v1/pauses") == {"pauses": []}
    assert api.get("/v1/credits")["held"] == 0
    assert decide(api, begun, {"id": "q1-t1", "approve": True}).status == 404


@pytest.mark.parametrize(
    ("decision", "field"),
    [
        ({"approve": True}, "decisions.0.id"),
        ({"id": "q1-t1"}, "decisions.0"),
        ({"id": "q1-t1", "approve": True, "input": {}}, "decisions.0"),
        ({"id": "q1-t1", "approve": "yes"}, "decisions.0.approve"),
        ({"id": "q1-t1", "approve": False, "reason": "x" * 1_001}, "decisions.0.reason"),
        ({"id": "q1-t1", "approve": True, "reason": "x"}, "decisions.0"),
        ({"id": "q1-t1", "approve": False, "for": "conversation"}, "decisions.0"),
        ({"id": "q1-t1", "approve": True, "for": "ever"}, "decisions.0.for"),
        ({"id": "q1-t1", "approve": True, "lasts": "conversation"}, "decisions.0.lasts"),
        ({"id": "q1-t1", "input": {"id": 1}}, "decisions.0.input"),
        ({"id": "q1-t1", "input": {"id": "x" * 40_000}}, "decisions.0"),
        ({"id": "q1-t2", "approve": True}, "decisions.0.id"),
        ({"id": "q1-t1", "result": "x"}, "decisions.0.result"),
        ({"id": "q1-t1", "answer": "x"}, "decisions.0.answer"),
        ({"id": "q1-t1", "answer": ""}, "decisions.0.answer"),
        ({"id": "q1-t1", "approve": True, "result": "x"}, "decisions.0"),
        ({"id": "q1-t1", "approve": True, "is_error": True}, "decisions.0"),
        ({"id": "q1-t1", "approve": True, "more": 1}, "decisions.0.more"),
    ],
)
def test_a_wrong_decision_is_refused_by_its_field(shared: Api, decision: dict[str, Any], field: str) -> None:
    api = shared.of("wrong-decisions")
    (listed,) = api.get("/v1/pauses")["pauses"] or [None]
    started = api.pause() if listed is None else {"url": f"/v1/chats/{listed['chat_id']}"}
    answer = decide(api, started, decision)
    assert (answer.status, answer.json["error"]["message"].split(":")[0]) == (400, field)


def test_a_chat_that_waits_for_nothing_cannot_be_decided(api: Api) -> None:
    started = api.start("Hello.")
    answer = decide(api, started, {"id": "q1-t1", "approve": True})
    assert (answer.status, answer.json["error"]["code"]) == (409, "not_paused")
