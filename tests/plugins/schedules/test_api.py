"""/v1/schedules: made, listed with their next times, paused, deleted; what is refused, and who sees what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.plugins.schedules import bodies
from dualtrack.plugins.schedules.run import Starting, run_schedules

if TYPE_CHECKING:
    from tests.clients.api_client import Api

DAILY = {"message": "What is new?", "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin", "name": "morning"}


def made(api: Api, **more: Any) -> Any:
    answer = api.call("POST", "/v1/schedules", {"message": "What is new?", "rate": "1 hour", **more})
    assert answer.status == 201, answer
    return answer.json


def run(api: Api, seconds: int) -> None:
    world = api.world
    world.clock.now += seconds
    executions: Any = world.executions
    run_schedules(world.stores, Starting(executions), lambda: True)


def test_a_schedule_is_made_listed_paused_and_deleted(api: Api) -> None:
    schedule = api.call("POST", "/v1/schedules", DAILY).json
    assert schedule["status"] == "active"
    assert len(schedule["next"]) == 3
    assert schedule["runs"] == []
    path = f"/v1/schedules/{schedule['schedule_id']}"
    assert api.call("GET", "/v1/schedules").json == {"schedules": [schedule]}
    paused = api.call("PATCH", path, {"paused": True}).json
    assert (paused["status"], paused["next"]) == ("paused", [])
    assert api.call("PATCH", path, {"paused": True}).json == paused, "again"
    assert api.call("PATCH", path, {"paused": False}).json["status"] == "active"
    assert api.call("DELETE", path).status == 204
    assert [
        api.call(method, path, body).status
        for method, body in (("DELETE", None), ("GET", None), ("PATCH", {"paused": True}))
    ] == [404] * 3
    assert api.call("GET", "/v1/schedules").json == {"schedules": []}


@pytest.mark.parametrize(
    ("body", "due"),
    [
        (
            {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
            ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"],
        ),
        ({"at": "2027-03-27T00:00:00Z", "timezone": "Asia/Tokyo"}, ["2027-03-27T09:00:00+09:00"]),
        (
            {"rate": "2 days"},
            ["2027-03-28T12:00:00+00:00", "2027-03-30T12:00:00+00:00", "2027-04-01T12:00:00+00:00"],
        ),
    ],
)
def test_due_times_are_shown_in_their_zone_before_anything_is_made(
    api: Api, body: dict[str, Any], due: list[str]
) -> None:
    """Over the change to summer time too."""
    api.world.clock.now = datetime(2027, 3, 26, 12, tzinfo=UTC).timestamp()
    assert api.call("POST", "/v1/schedules/next", body).json == {"next": due}
    assert api.call("GET", "/v1/schedules").json == {"schedules": []}


def test_a_conversation_that_a_schedule_began_names_it(api: Api) -> None:
    schedule = made(api)
    api.world.ask("Hello?", api.user)
    run(api, 3_600)
    listed = api.call("GET", "/v1/conversations").json["conversations"]
    assert [each.get("schedule_id") for each in listed] == [schedule["schedule_id"], None]


def test_its_runs_have_their_chats_their_ends_and_their_costs(api: Api) -> None:
    schedule = made(api)
    run(api, 3_600)
    (started,) = api.call("GET", f"/v1/schedules/{schedule['schedule_id']}").json["runs"]
    assert (started["status"], started["chat_status"], started["credits"]) == ("started", "running", 0)
    chat = api.world.stores.chats.load(api.user, started["chat_id"])
    assert chat
    assert started["conversation_id"] == chat.conversation_id
    api.world.run(chat)
    (listed,) = api.call("GET", "/v1/schedules").json["schedules"]
    assert (listed["runs"][0]["chat_status"], listed["runs"][0]["credits"]) == ("done", 5)
    assert api.call("GET", f"/v1/chats/{started['chat_id']}").json["status"] == "done"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"cron": "0 8 * * *", "rate": "1 hour"}, "either cron, rate or at"),
        ({}, "either cron, rate or at"),
        ({"cron": "0 25 * * *"}, "hour"),
        ({"rate": "0 hours"}, "rate"),
        ({"at": "2001-01-01T00:00:00"}, "never"),
        ({"rate": "1 hour", "timezone": "Mars/Olympus"}, "timezone"),
        ({"rate": "1 hour", "message": ""}, "message"),
        ({"rate": "1 hour", "message": "x" * 8_001}, "message"),
        ({"rate": "1 hour", "profile": "nobody"}, "profile"),
        ({"rate": "1 hour", "paused": True}, "paused"),
    ],
)
def test_what_is_no_schedule_is_refused_and_stores_nothing(api: Api, body: dict[str, Any], word: str) -> None:
    answer = api.call("POST", "/v1/schedules", {"message": "Hello?", **body})
    assert answer.status == 400
    assert word in answer.json["error"]["message"]
    assert api.call("GET", "/v1/schedules").json == {"schedules": []}
    times = {name: text for name, text in body.items() if name in bodies.TimesBody.model_fields}
    if times == body:
        assert api.call("POST", "/v1/schedules/next", times).json == answer.json, "in the same words"


def test_its_conversation_must_be_there_and_have_its_agent(api: Api) -> None:
    chat = api.world.ask("Hello?", api.user)
    made(api, conversation_id=chat.conversation_id)
    wrong = {
        "message": "Hello?",
        "rate": "1 hour",
        "conversation_id": chat.conversation_id,
        "profile": "sessions",
    }
    assert api.call("POST", "/v1/schedules", wrong).status == 400
    elsewhere = {**wrong, "conversation_id": "cv_01jd8m3v5q0000000000000000"}
    assert api.call("POST", "/v1/schedules", elsewhere).status == 404


def test_others_see_and_change_nothing(api: Api, shared: Api) -> None:
    schedule = made(api)
    other, path = shared.of_new_user(), f"/v1/schedules/{schedule['schedule_id']}"
    assert other.call("GET", "/v1/schedules").json == {"schedules": []}
    tried = [("GET", None), ("PATCH", {"paused": True}), ("DELETE", None)]
    assert [other.call(method, path, body).status for method, body in tried] == [404] * 3
    assert api.call("GET", path).json["status"] == "active"


def test_a_key_that_cannot_read_sees_what_it_has_made(api: Api) -> None:
    own = made(api)
    key = api.make_key("chat", profiles=["sessions"])
    by_key = api.by_key(key["key"])
    assert by_key.call("POST", "/v1/schedules", {"message": "Hi", "rate": "1 day"}).status == 403
    ours = made(by_key, profile="sessions")
    assert ours["key_id"] == key["key_id"]
    assert [each["schedule_id"] for each in by_key.call("GET", "/v1/schedules").json["schedules"]] == [
        ours["schedule_id"]
    ]
    assert by_key.call("DELETE", f"/v1/schedules/{own['schedule_id']}").status == 403
    assert len(api.call("GET", "/v1/schedules").json["schedules"]) == 2
