"""POST, GET and DELETE /v1/chats through the function itself (CONTRACT 4, 8)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.start_chat import IDEMPOTENCY_SECONDS, first_chat
from dualtrack.credits.plans import CHAT_PRICE
from dualtrack.storage.leases import WAITS

from tests.clients.api_client import Api, items, objects
from tests.drivers.images import GIF, JPEG, WEBP, pdf, png, png_of

if TYPE_CHECKING:
    from collections.abc import Callable

PNG = png(bytes(range(200)))
PDF = pdf(b"x" * 300_000)
MEGABYTE = 1024 * 1024


def attached(media_type: str, data: bytes) -> dict[str, str]:
    return {"media_type": media_type, "data": base64.b64encode(data).decode()}


# ── starting ──────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_that_was_cut_off_goes_on(api: Api) -> None:
    api.world.model.script.add(
        {"text": "One, t", "stop_reason": "max_tokens"}, {"match": "turn", "text": "wo."}
    )
    first = api.call("POST", "/v1/chats", {"message": "Count."}).json
    api.world.run(api.chat(first["chat_id"]))
    body = {"conversation_id": first["conversation_id"], "continue": True}
    started = api.call("POST", "/v1/chats", body, {"Idempotency-Key": "on"})
    assert started.status == 202
    assert api.call("POST", "/v1/chats", body, {"Idempotency-Key": "on"}).json == started.json
    api.world.run(api.chat(started.json["chat_id"]))
    assert api.get(started.json["url"])["response"] == "wo."
    records = api.get(f"/v1/conversations/{first['conversation_id']}?track=full")["records"]
    assert [record.get("continues") for record in records] == [None, None, "q1-r", None]
    refused = api.call("POST", "/v1/chats", body)
    assert (refused.status, refused.code) == (409, "nothing_to_continue")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"continue": True}, "conversation_id"),
        ({"continue": True, "message": "And?"}, "takes no message"),
        ({"continue": True, "output": {"schema": {}}}, "no output"),
        ({"continue": True, "attachments": [attached("image/png", PNG)]}, "no attachments"),
        ({"continue": False}, "message"),
        ({}, "message"),
        ({"continue": 1, "message": "And?"}, "continue"),
    ],
)
def test_a_message_or_the_wish_to_go_on(api: Api, body: dict[str, Any], said: str) -> None:
    named = {"conversation_id": "cv_01k85vghgii92hv5uhf9a1ad89"} if "takes" in said or "no " in said else {}
    refused = api.call("POST", "/v1/chats", body | named)
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert said in refused.json["error"]["message"]


def test_a_chat_is_accepted_with_its_ids_and_addresses(api: Api) -> None:
    answer = api.call("POST", "/v1/chats", {"message": "Hello."})
    body = answer.json
    url = f"/v1/chats/{body['chat_id']}"
    assert answer.status == 202
    assert answer.headers["Location"] == url
    assert body == {
        "chat_id": body["chat_id"],
        "conversation_id": body["conversation_id"],
        "message_id": "q1",
        "status": "running",
        "url": url,
        "events_url": f"{url}/events",
    }


def test_an_answer_that_has_to_fit_a_schema_is_a_value_of_the_chat_object(api: Api) -> None:
    """The offline model answers with a small value; the schema is part of what an Idempotency-Key stands for."""
    body = {"message": "List it.", "output": {"schema": {"type": "array", "items": {"type": "integer"}}}}
    headers = {"Idempotency-Key": "list"}
    started = api.call("POST", "/v1/chats", body, headers).json
    api.world.run(api.chat(started["chat_id"]))
    chat = api.get(started["url"])
    assert (chat["output"], chat["response"], chat["stop"]) == ([0], "[0]", "complete")
    other = body | {"output": {"schema": {"type": "array"}}}
    assert api.call("POST", "/v1/chats", other, headers).code == "idempotency_conflict"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({}, "output.schema: Field required"),
        ({"schema": []}, "output.schema: Input should be a valid dictionary"),
        ({"schema": {"$ref": "https://example.com/s"}}, "output.schema: each $ref must name"),
        ({"schema": {"enum": ["x" * 40_000]}}, "output.schema: it has more than 32,768 bytes"),
        ({"schema": {}, "strict": True}, "output.strict: Extra inputs are not permitted"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(api: Api, output: Any, said: str) -> None:
    refused = api.call("POST", "/v1/chats", {"message": "List it.", "output": output})
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert refused.json["error"]["message"].startswith(said)


def test_a_running_chat_is_shown_whole(api: Api) -> None:
    started = api.start()
    chat = api.get(started["url"])
    assert chat == {
        "chat_id": started["chat_id"],
        "conversation_id": started["conversation_id"],
        "message_id": "q1",
        "profile": "assistant",
        "status": "running",
        "stop": None,
        "response": None,
        "output": None,
        "summary": None,
        "sources": [],
        "tool_calls": [],
        "turns": 0,
        "credits_used": 0,
        "credits_remaining": 45,
        "usage": dict.fromkeys(chat["usage"], 0),
        "memory": chat["memory"],
        "summary_form": None,
        "summary_made": chat["summary_made"],
        "fictional": False,
        "created_at": chat["created_at"],
        "ended_at": None,
    }
    assert not any(chat["memory"][name] for name in ("dollars", "full_history_dollars", "beyond_window"))
    assert chat["created_at"].endswith("Z")


def test_the_second_chat_of_a_conversation_is_its_next_query(api: Api) -> None:
    first = api.ask("One.")
    second = api.start("Two.", conversation_id=first["conversation_id"])
    assert (second["conversation_id"], second["message_id"]) == (first["conversation_id"], "q2")


def test_a_conversation_takes_one_chat_at_a_time(api: Api) -> None:
    first = api.start()
    answer = api.call("POST", "/v1/chats", {"message": "Two.", "conversation_id": first["conversation_id"]})
    assert (answer.status, answer.code) == (409, "conversation_busy")
    busy = answer.json["error"]
    assert (busy["chat_id"], busy["url"]) == (first["chat_id"], f"/v1/chats/{first['chat_id']}"), (
        "to follow or stop"
    )
    assert api.get("/v1/credits")["held"] == CHAT_PRICE


def test_a_dead_chat_frees_its_conversation(api: Api) -> None:
    first = api.start()
    api.world.clock.now += 901
    second = api.start("Two.", conversation_id=first["conversation_id"])
    assert second["message_id"] == "q2"
    dead = api.get(first["url"])
    assert (dead["status"], dead["credits_used"], dead["error"]["code"]) == ("failed", 0, "timeout")


def test_the_profile_belongs_to_the_conversation(api: Api) -> None:
    first = api.ask(profile="assistant")
    known = {"message": "Hi.", "conversation_id": first["conversation_id"], "profile": "assistant"}
    assert api.call("POST", "/v1/chats", known).status == 202
    unknown = api.call("POST", "/v1/chats", {"message": "Hi.", "profile": "nobody"})
    assert (unknown.status, unknown.code) == (400, "invalid_request")


def test_a_chat_whose_execution_cannot_start_costs_nothing_and_may_be_repeated(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"Idempotency-Key": "again"}
    with monkeypatch.context() as patch:
        patch.setattr(
            api.module, "executions", type(api.module.executions)(api.module.step_functions, "arn:none")
        )
        refused = api.call("POST", "/v1/chats", {"message": "Hi."}, key)
    assert (refused.status, refused.code) == (503, "unavailable")
    assert (api.get("/v1/credits")["available"], api.get("/v1/credits")["held"]) == (50, 0)
    assert api.call("POST", "/v1/chats", {"message": "Hi."}, key).status == 202


# ── credits ───────────────────────────────────────────────────────────────────────────────────────


def test_without_five_credits_a_chat_is_refused_with_what_to_do(api: Api) -> None:
    for _ in range(10):
        api.ask()
    answer = api.call("POST", "/v1/chats", {"message": "Hi."})
    error = answer.json["error"]
    assert (answer.status, answer.code) == (402, "insufficient_credits")
    assert (error["required"], error["available"]) == (5, 0)
    assert error["resets_at"].endswith("T00:00:00.000Z")
    assert set(error["upgrade"]) == {"message", "plans", "packs"}
    assert {"free", "pro"} == {plan["name"] for plan in error["upgrade"]["plans"]}


# ── repeated requests ─────────────────────────────────────────────────────────────────────────────


def test_a_repeated_request_returns_the_first_chat_before_any_other_check(api: Api) -> None:
    key = {"Idempotency-Key": "k"}
    body = {"message": "Hello."}
    first = api.call("POST", "/v1/chats", body, key).json
    again = api.call("POST", "/v1/chats", body, key)
    assert (again.status, again.json) == (202, first)
    busy = api.call("POST", "/v1/chats", raw='{ "message" : "Hello." }', headers=key)
    assert busy.json["chat_id"] == first["chat_id"], "the same body in another spelling"
    api.run(first["chat_id"])
    ended = api.call("POST", "/v1/chats", body, key)
    assert (ended.status, ended.json["chat_id"], ended.json["status"]) == (200, first["chat_id"], "done")
    assert api.get("/v1/credits")["daily"]["used"] == CHAT_PRICE


def test_a_repeat_is_recognised_before_the_conversation_is_checked(api: Api) -> None:
    conversation = api.call("POST", "/v1/conversations", {}).json["conversation_id"]
    body = {"message": "Hello.", "conversation_id": conversation}
    first = api.call("POST", "/v1/chats", body, {"Idempotency-Key": "k"}).json
    assert api.call("POST", "/v1/chats", body, {"Idempotency-Key": "k"}).json == first


def test_the_same_request_twice_at_once_is_one_chat(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second arrives between the first's lookup of the key and its commit: the conversation is then busy."""
    conversation = api.call("POST", "/v1/conversations", {}).json["conversation_id"]
    body = {"message": "Hello.", "conversation_id": conversation}
    key = {"Idempotency-Key": "k"}
    looks: list[Any] = []

    def other_is_faster(*arguments: Any) -> Any:
        existing = first_chat(*arguments)
        if not looks:
            looks.append(existing)
            looks.append(api.call("POST", "/v1/chats", body, key).json)
        return existing

    monkeypatch.setattr("dualtrack.api.routes.chats.first_chat", other_is_faster)
    mine = api.call("POST", "/v1/chats", body, key)
    assert looks[0] is None
    assert (mine.status, mine.json) == (202, looks[1])


def test_a_key_with_another_body_is_a_conflict_even_if_the_body_is_wrong(api: Api) -> None:
    key = {"Idempotency-Key": "k"}
    api.call("POST", "/v1/chats", {"message": "Hello."}, key)
    for body in ({"message": "Other."}, {"message": ""}, {}):
        answer = api.call("POST", "/v1/chats", body, key)
        assert (answer.status, answer.code) == (409, "idempotency_conflict")


def test_a_refusal_is_not_kept(api: Api) -> None:
    key = {"Idempotency-Key": "k"}
    assert api.call("POST", "/v1/chats", {"message": ""}, key).status == 400
    assert api.call("POST", "/v1/chats", {"message": "Hello."}, key).status == 202


def test_a_key_is_the_users_own_and_is_kept_for_a_day(api: Api) -> None:
    key = {"Idempotency-Key": "k"}
    mine = api.call("POST", "/v1/chats", {"message": "Hello."}, key).json["chat_id"]
    theirs = api.of("user-somebody-else").call("POST", "/v1/chats", {"message": "Hello."}, key)
    assert (theirs.status, theirs.json["chat_id"] == mine) == (202, False)
    api.run(mine)
    api.world.clock.now += IDEMPOTENCY_SECONDS - 60
    assert api.call("POST", "/v1/chats", {"message": "Hello."}, key).json["chat_id"] == mine
    api.world.clock.now += 120
    assert api.call("POST", "/v1/chats", {"message": "Hello."}, key).json["chat_id"] != mine


@pytest.mark.parametrize(("key", "status"), [("", 400), ("k" * 255, 202), ("k" * 256, 400)])
def test_a_key_has_1_to_255_characters(api: Api, key: str, status: int) -> None:
    assert api.call("POST", "/v1/chats", {"message": "Hello."}, {"idempotency-key": key}).status == status


# ── waiting ───────────────────────────────────────────────────────────────────────────────────────


def test_wait_returns_as_soon_as_the_chat_has_ended(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualtrack.api.chats.time.sleep", lambda _: api.run(api.chat_ids()[0]))
    answer = api.call("POST", "/v1/chats?wait=25", {"message": "Hello."})
    assert (answer.status, answer.json["status"]) == (200, "done")
    assert answer.json["response"]


def test_a_chat_that_takes_longer_than_wait_is_a_202(api: Api) -> None:
    assert api.call("POST", "/v1/chats?wait=0.001", {"message": "Hello."}).status == 202


@pytest.mark.parametrize(("ago", "status"), [(28, 202), (20, 200)])
def test_the_wait_ends_before_the_gateway_gives_up(
    api: Api, monkeypatch: pytest.MonkeyPatch, ago: int, status: int
) -> None:
    """A function that had to be started first is asked late: its client would get a 504 for a chat that runs."""
    monkeypatch.setattr("dualtrack.api.chats.time.sleep", lambda _: api.run(api.chat_ids()[0]))
    event = api.event("POST", "/v1/chats?wait=25", json.dumps({"message": "Hello."}))
    event["requestContext"]["requestTimeEpoch"] = int((api.world.clock() - ago) * 1000)
    assert api.module.handler(event, api.context)["statusCode"] == status


def test_a_fourth_waiting_request_is_answered_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(caller: Api, key: str) -> int:
        def answer(_: float) -> None:
            for chat_id in caller.chat_ids():
                caller.run(chat_id)

        monkeypatch.setattr("dualtrack.api.chats.time.sleep", answer)
        return caller.call(
            "POST", "/v1/chats?wait=25", {"message": "Hello."}, {"Idempotency-Key": key}
        ).status

    leases = api.world.stores.leases
    held = [leases.take(api.user, WAITS) for _ in range(WAITS.limit)]
    assert (ask(api, "a"), ask(api, "a")) == (202, 202), "the same when repeated"
    assert ask(api.of(f"{api.user}-2"), "a") == 200
    leases.free(held[0])
    assert ask(api, "b") == 200
    leases.take(api.user, WAITS)  # the request that was answered has released its lease


@pytest.mark.parametrize("wait", ["-1", "26", "25.01", "nan", "inf", "-inf", "x", "1e999", "5s"])
def test_wait_is_0_to_25(api: Api, wait: str) -> None:
    answer = api.call("POST", f"/v1/chats?wait={wait}", {"message": "Hello."})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.get("/v1/conversations") == {"conversations": []}


# ── attachments ───────────────────────────────────────────────────────────────────────────────────


def test_files_are_sent_after_the_text_of_their_query_and_later_on_demand(api: Api) -> None:
    first = api.ask(
        "What is this?", attachments=[attached("image/png", PNG), attached("application/pdf", PDF)]
    )
    sent = turns_of(api, "What is this?")[0]["messages"][0]["content"]
    assert [block["type"] for block in sent] == ["text", "image", "document"]
    assert sent[0]["text"].startswith("[ID:q1] What is this?")
    assert sent[1]["source"] == {"type": "base64", **attached("image/png", PNG)}
    assert base64.b64decode(sent[2]["source"]["data"]) == PDF

    conversation = first["conversation_id"]
    record = api.get(f"/v1/conversations/{conversation}/records/q1")
    assert record["attachments"] == [
        {"media_type": "image/png", "size": len(PNG)},
        {"media_type": "application/pdf", "size": len(PDF)},
    ]
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add(
        {"match": "And now?", "content": [fetch]}, {"match": "And now?", "text": "A picture."}
    )
    api.ask("And now?", conversation_id=conversation)
    later = turns_of(api, "And now?")
    past = later[0]["messages"][0]["content"]
    assert [block["type"] for block in past] == ["text"], "a placeholder replaces the files"
    assert "image/png" in past[0]["text"]
    result = later[1]["messages"][-1]["content"][0]
    assert [block["type"] for block in result["content"]] == ["text", "image", "document"]
    assert result["content"][1]["source"]["data"] == attached("image/png", PNG)["data"]


def turns_of(api: Api, message: str) -> list[dict[str, Any]]:
    """The model calls of the query with this message."""
    bodies = [
        request.body
        for request in api.world.model.requests
        if not request.refused and request.body.get("stream")
    ]
    return [body for body in bodies if message in json.dumps(body["messages"])]


def test_files_share_a_limit_of_4_mb(api: Api) -> None:
    png = png_of(MEGABYTE)
    fits = [attached("image/png", png)] * 4
    assert api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": fits}).status == 202
    over = [*fits[:3], attached("image/png", png_of(MEGABYTE + 1))]
    answer = api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": over})
    assert (answer.status, answer.code) == (413, "too_large")


@pytest.mark.parametrize(
    "files",
    [
        [attached("image/png", PNG)] * 6,
        [attached("image/webp", b"RIFF\0\0\0\0WAVEfmt ")],
        [attached("application/pdf", b"<html>")],
        [attached("image/svg+xml", b"<svg/>")],
        [attached("image/png", png_of(3_932_161))],
        [attached("image/png", PNG), attached("image/png", PNG[:-20])],
        [attached("image/jpeg", JPEG[:100])],
        [attached("image/gif", b"GIF89a" + bytes(20))],
        [attached("image/webp", WEBP[:-4])],
        [attached("image/png", png(width=8_001))],
        [{"media_type": "image/png", "data": "not base64!"}],
        [{"media_type": "image/png", "data": "iVBORw0KGgo"}],
        [{"media_type": "image/png", "data": ""}],
        [{"media_type": "image/png", "data": "💡"}],
        [{"media_type": "image/png"}],
        [{**attached("image/png", PNG), "name": 7}],
        [{**attached("image/png", PNG), "name": "a\0b"}],
        [{**attached("image/png", PNG), "name": "x" * 1_001}],
        [{**attached("image/png", PNG), "file": "x.png"}],
        [attached("text/plain", b"")],
        [attached("text/plain", b"caf\xe9")],
        [attached("text/plain", b"\xef\xbb\xbfa\0b")],
        [attached("text/plain; charset=latin-1", b"a")],
        [attached("application/zip", b"PK")],
        [attached("application/octet-stream", b"a")],
        [attached("text/", b"a")],
        [attached("text/plain\n", b"a")],
        {},
        "x",
    ],
)
def test_invalid_files_are_refused_and_nothing_is_stored(api: Api, files: Any) -> None:
    answer = api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": files})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.get("/v1/conversations") == {"conversations": []}
    assert api.get("/v1/credits")["held"] == 0


@pytest.mark.parametrize(
    ("media_type", "data"), [("image/webp", WEBP), ("image/gif", GIF), ("image/jpeg", JPEG)]
)
def test_every_kind_of_image_is_accepted(api: Api, media_type: str, data: bytes) -> None:
    files = [attached(media_type, data)]
    assert api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": files}).status == 202


def test_a_broken_image_is_refused_by_its_place_and_name(api: Api) -> None:
    files = [attached("image/png", PNG), attached("image/png", PNG[:-20]) | {"name": "a/chart.png"}]
    answer = api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": files})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.json["error"]["message"] == "attachments.1 (chart.png): the image is broken: it is cut off"


# ── cancelling ────────────────────────────────────────────────────────────────────────────────────


def test_a_chat_cancelled_before_its_first_call_is_free(api: Api) -> None:
    chat_id = api.start()["chat_id"]
    chat = api.call("DELETE", f"/v1/chats/{chat_id}").json
    assert (chat["status"], chat["stop"], chat["credits_used"]) == ("cancelled", "cancelled", 0)
    assert api.get("/v1/credits")["available"] == 50
    assert api.world.turn(api.chat(chat_id), 0)["next"] == "failed", "a late step stops"


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_chat_cancelled_at_any_step_pays_for_what_had_begun(api: Api, steps: int) -> None:
    ask = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add({"match": f"Go {steps}.", "content": [ask, ask]})
    chat = api.chat(api.start(f"Go {steps}.")["chat_id"])
    done: list[Callable[[], object]] = [
        lambda: api.world.turn(chat, 0),
        lambda: api.world.tool(chat, 1, "q1-t1"),
        lambda: api.world.tool(chat, 1, "q1-t2"),
    ]
    for step in done[:steps]:
        step()
    cancelled = api.call("DELETE", f"/v1/chats/{chat.chat_id}").json
    assert (cancelled["status"], cancelled["credits_used"]) == ("cancelled", 5 + 2 + 2)
    for late in done:
        late()
    assert api.world.turn(chat, 1)["next"] == "failed"
    assert api.get(f"/v1/chats/{chat.chat_id}") == cancelled
    balance = api.get("/v1/credits")
    assert (balance["held"], balance["daily"]["used"]) == (0, 9)
    again = api.start("Next.", conversation_id=cancelled["conversation_id"])
    assert again["message_id"] == "q2"


def test_an_ended_chat_is_returned_unchanged(api: Api) -> None:
    chat = api.ask()
    answer = api.call("DELETE", f"/v1/chats/{chat['chat_id']}")
    assert (answer.status, answer.json) == (200, chat)


# ── other users' data ─────────────────────────────────────────────────────────────────────────────


def test_another_users_data_is_not_found_by_any_id(api: Api) -> None:
    chat = api.ask("Secret plans.")
    conversation = f"/v1/conversations/{chat['conversation_id']}"
    eve = api.of("user-eve")
    for method, target, body in [
        ("GET", f"/v1/chats/{chat['chat_id']}", None),
        ("DELETE", f"/v1/chats/{chat['chat_id']}", None),
        ("GET", conversation, None),
        ("GET", f"{conversation}?track=summarised", None),
        ("PATCH", conversation, {"title": "Mine"}),
        ("DELETE", conversation, None),
        ("GET", f"{conversation}/records/q1", None),
        ("GET", f"{conversation}/records/q1-r-sum", None),
        ("POST", "/v1/chats", {"message": "Hi.", "conversation_id": chat["conversation_id"]}),
    ]:
        answer = eve.call(method, target, body)
        assert (answer.status, answer.code) == (404, "not_found"), target
        assert "Secret" not in answer.text
    assert eve.get("/v1/conversations") == {"conversations": []}
    assert eve.get("/v1/credits/ledger") == {"entries": []}
    assert api.get(conversation)["title"] == "Secret plans."


def test_a_user_id_in_the_form_of_anothers_key_reads_nothing_of_theirs(api: Api) -> None:
    chat = api.ask()
    odd = api.of(f"{api.user}#{chat['chat_id']}")
    assert odd.call("GET", f"/v1/chats/{chat['chat_id']}").status == 404


def test_nothing_of_a_refused_chat_is_stored(api: Api) -> None:
    before = {table: items(api.world, table) for table in ("history", "credits")}, objects(api.world)
    files = [attached("image/png", png_of(MEGABYTE)), attached("image/png", b"x")]
    for body in ({"message": ""}, {"message": "x", "extra": 1}, {"message": "x", "attachments": files}):
        assert api.call("POST", "/v1/chats", body).status == 400
    assert (
        {table: items(api.world, table) for table in ("history", "credits")},
        objects(api.world),
    ) == before
