"""Open decisions and what is decided, through the function itself (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api


@pytest.fixture
def api(shared: Api, request: pytest.FixtureRequest) -> Api:
    """A user of the test's own."""
    return shared.of(f"user-{request.node.name}")


def decide(api: Api, started: dict[str, Any], *decisions: dict[str, Any]) -> Any:
    return api.call("POST", f"{started['url']}/decisions", {"decisions": [*decisions]})


def test_a_paused_chat_says_what_it_waits_for(api: Api) -> None:
    started = api.pause()
    chat = api.get(started["url"])
    call = {"id": "q1-t1", "tool": "retrieve_full_context", "input": {"id": "q1"}, "kind": "approval"}
    assert (chat["status"], chat["pause"]["calls"]) == ("paused", [{**call, "allowable": True}])
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
