"""/v1/chats, its events, and decisions."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack_stack.local.offline_model.classifier import MAGIC

from tests.clients.stack_client import PATIENCE
from tests.drivers.tour import EVENTS_DOOR, stop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.drivers.tour import Visit

CHATS = "POST /v1/chats"
DECISIONS = "POST /v1/chats/{chat_id}/decisions"
LOOK = {"name": "look", "description": "Run by the client.", "input_schema": {"type": "object"}}
WRITE = ("kit_write", {"name": "notes"})


@stop(CHATS, "message", "wait")
def a_question(visit: Visit) -> None:
    visit.script.says("Forty-two.")
    chat = visit.ask({"message": visit.script.question("How many?")}, query={"wait": 25}, status=200).json()
    assert chat["response"] == "Forty-two."
    assert visit.script.question("How many?") in repr(visit.script.requests()[-1]["messages"])


@stop(CHATS, "conversation_id", "profile")
def a_conversation_with_an_agent(visit: Visit) -> None:
    first = visit.chat(by_caller=True, profile="small")
    visit.script.says("Again.")
    again = {"message": visit.script.question(), "conversation_id": first["conversation_id"]}
    second = visit.ask({**again, "profile": "small"}, status=202).json()
    assert visit.finish(second["chat_id"])["profile"] == "small"
    assert second["message_id"] == "q2"


@stop(CHATS, "attachments", "attachments[].media_type", "attachments[].name", "attachments[].data")
def a_file(visit: Visit) -> None:
    visit.script.says("I have read it.")
    data = base64.b64encode(b"key,value\nconsumer,abc\n").decode()
    file = {"media_type": "text/csv", "name": "keys.csv", "data": data}
    started = visit.ask({"message": visit.script.question(), "attachments": [file]}).json()
    visit.finish(started["chat_id"])
    (kept,) = visit.owner.record(started["conversation_id"], "q1")["attachments"]
    assert (kept["media_type"], kept["name"], kept["size"]) == ("text/csv", "keys.csv", 23)
    assert "consumer,abc" in repr(visit.script.requests()[-1]["messages"])


UPLOADS = "POST /v1/uploads"
BIG = b"The harbour lies in the north.\n" + b"It rains.\n" * 600_000
"""A text that no request has room for."""


def put(visit: Visit, upload: Mapping[str, Any], data: bytes) -> int:
    """What the signed address answers to these bytes, through the front, as the page sends them."""
    address = visit.root.stack.url + httpx.URL(upload["url"]).raw_path.decode()
    sent = httpx.put(address, content=data, headers=upload["headers"], timeout=PATIENCE, trust_env=False)
    return sent.status_code


@stop(UPLOADS, "media_type", "bytes", "name", "sha256")
def an_address_for_a_large_file(visit: Visit) -> None:
    about = {"media_type": "text/plain", "bytes": len(BIG), "name": "a.txt"}
    upload = visit.ask({**about, "sha256": hashlib.sha256(BIG).hexdigest()}, status=201).json()
    assert upload["name"] == "a.txt"
    assert [put(visit, upload, data) for data in (BIG[:-1], BIG[:-1] + b"?", BIG)] == [403, 400, 200]
    refused = visit.client.post(visit.door.path, json={**about, "media_type": "image/png"})
    assert refused.json()["error"]["code"] == "too_large"


@stop(CHATS, "attachments[].upload_id")
def a_large_file(visit: Visit) -> None:
    about = {"media_type": "text/plain", "bytes": len(BIG), "name": "weather.txt"}
    upload = visit.client.post("/v1/uploads", json=about).json()
    body = {"message": visit.script.question(), "attachments": [{"upload_id": upload["upload_id"]}]}
    assert visit.client.post("/v1/chats", json=body).json()["error"]["code"] == "upload_missing"
    assert put(visit, upload, BIG) == 200
    visit.script.says("In the north.")
    started = visit.ask(body, status=202).json()
    assert visit.finish(started["chat_id"])["response"] == "In the north."
    assert "The harbour lies in the north." in repr(visit.script.requests()[-1]["messages"])
    (kept,) = visit.owner.record(started["conversation_id"], "q1")["attachments"]
    assert kept["name"] == "weather.txt"
    assert visit.client.post("/v1/chats", json=body).json()["error"]["code"] == "upload_used"


@stop(CHATS, "on_pause")
def a_message_instead_of_a_decision(visit: Visit) -> None:
    waiting = visit.paused(WRITE, by_caller=True, profile="careful")
    visit.script.says("Never mind.")
    again = {"message": visit.script.question(), "conversation_id": waiting["conversation_id"]}
    visit.finish(visit.ask({**again, "on_pause": "cancel"}).json()["chat_id"])
    assert visit.owner.chat(waiting["chat_id"])["status"] == "cancelled"


@stop(CHATS, "output", "output.schema")
def a_form(visit: Visit) -> None:
    visit.script.says('{"city": "Rome"}')
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    started = visit.ask({"message": visit.script.question(), "output": {"schema": schema}}).json()
    assert visit.finish(started["chat_id"])["output"] == {"city": "Rome"}


@stop(CHATS, "tools", "tools[].name", "tools[].description", "tools[].input_schema")
def tools_of_the_client(visit: Visit) -> None:
    visit.script.asks(("look", {"at": "it"}))
    started = visit.ask({"message": visit.script.question(), "tools": [LOOK]}).json()
    visit.until(started["chat_id"], "paused")
    (call,) = visit.owner.chat(started["chat_id"])["pause"]["calls"]
    assert (call["tool"], call["input"], call["kind"]) == ("look", {"at": "it"}, "client_tool")
    (sent,) = [tool for tool in visit.script.requests()[-1]["tools"] if tool["name"] == "look"]
    assert sent["description"].endswith(str(LOOK["description"]))


@stop(CHATS, "Idempotency-Key")
def a_request_twice(visit: Visit) -> None:
    visit.script.says("Once.")
    body, key = {"message": visit.script.question()}, {"Idempotency-Key": visit.script.marker}
    first, second = (visit.ask(body, headers=key).json() for _ in range(2))
    assert first["chat_id"] == second["chat_id"]
    other = visit.client.post("/v1/chats", json={"message": "Another."}, headers=key)
    assert other.json()["error"]["code"] == "idempotency_conflict"
    visit.finish(first["chat_id"])


@stop("GET /v1/chats/{chat_id}")
def a_chat(visit: Visit) -> None:
    chat = visit.chat("Here it is.")
    assert visit.ask(chat_id=chat["chat_id"]).json() == chat


@stop("DELETE /v1/chats/{chat_id}")
def a_chat_is_cancelled(visit: Visit) -> None:
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    started = visit.start(by_caller=True)
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    assert visit.ask(chat_id=started["chat_id"]).json()["status"] == "cancelled"


@stop("GET /v1/chats/{chat_id}/receipt")
def a_receipt(visit: Visit) -> None:
    chat = visit.chat()
    receipt = visit.ask(chat_id=chat["chat_id"]).json()
    assert (receipt["chat_id"], receipt["totals"]["credits"]) == (chat["chat_id"], chat["credits_used"])
    assert receipt["differences"] == []


@stop(
    EVENTS_DOOR,
    "Last-Event-ID",
    *("event record", "event turn", "event thinking", "event delta", "event tool_calls_start"),
    *("event tool_result", "event credits", "event answer", "event done"),
)
def events_of_an_answer(visit: Visit) -> None:
    visit.script.asks(("kit_echo", {"text": "a"}), text="Let me look.", thought="It may be there.")
    visit.script.says("There it is.")
    started = visit.start()
    events = visit.follow(started["chat_id"])
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    by_kind = {event.kind: event.data for event in events}
    assert by_kind["answer"]["response"] == by_kind["done"]["response"] == "There it is."
    assert visit.follow(started["chat_id"], after=3) == events[3:]


@stop(EVENTS_DOOR, "event retrying", "event error")
def events_of_a_failure(visit: Visit) -> None:
    visit.script.model.script.add({"match": visit.script.key, "status": 429, "retry_after": 1})
    visit.script.refuses(400)
    events = visit.follow(visit.start()["chat_id"])
    assert [event.data["reason"] for event in events if event.kind == "retrying"] == ["rate_limited"]
    assert events[-1].data["code"] == "internal"


@stop(EVENTS_DOOR, "event written")
def events_of_an_answer_with_notes(visit: Visit) -> None:
    visit.tools.pages[visit.script.marker] = "What the page says. " * 3_000
    visit.script.asks(("kit_page", {"name": visit.script.marker}))
    visit.script.says("It says so.", notes=True)
    events = visit.follow(visit.start(profile="careful")["chat_id"])
    kinds = [event.kind for event in events]
    assert kinds.index("written") < kinds.index("answer")
    assert events[kinds.index("answer")].data["response"] == "It says so."


@stop(EVENTS_DOOR, "event paused", "event resumed")
def events_of_a_pause(visit: Visit) -> None:
    waiting = visit.paused(WRITE, profile="careful")
    visit.script.says("Declined.")
    decline = {"decisions": [{"id": "q1-t1", "approve": False}]}
    assert visit.owner.http.post(f"/v1/chats/{waiting['chat_id']}/decisions", json=decline).is_success
    by_kind = {event.kind: event.data for event in visit.follow(waiting["chat_id"])}
    assert by_kind["paused"]["calls"][0]["id"] == by_kind["resumed"]["decisions"][0]["id"] == "q1-t1"


@stop(EVENTS_DOOR, "event left_out")
def events_of_an_answer_that_is_left_out(visit: Visit) -> None:
    """What the service declines stands in an answer: the second harmless query behind it goes on without that."""
    named = {"conversation_id": visit.chat("Hm.")["conversation_id"]}
    visit.script.says(f"An answer with {MAGIC}.")
    visit.script.says("It works again.")
    for ends in ("complete", "refusal", "complete"):
        started = visit.start(**named)
        assert visit.finish(started["chat_id"])["stop"] == ends
    told = [event.data["query"] for event in visit.follow(started["chat_id"]) if event.kind == "left_out"]
    assert told == ["q2"]


@stop("GET /v1/pauses")
def the_list_of_pauses(visit: Visit) -> None:
    waiting = visit.paused(WRITE, profile="careful")
    (listed,) = visit.ask().json()["pauses"]
    assert (listed["chat_id"], listed["calls"]) == (waiting["chat_id"], waiting["pause"]["calls"])


def _decided(visit: Visit, waiting: dict[str, Any], *decisions: dict[str, Any]) -> dict[str, Any]:
    visit.tools.gate("notes").released.set()
    visit.ask({"decisions": [*decisions]}, chat_id=waiting["chat_id"])
    return visit.finish(waiting["chat_id"])


@stop(DECISIONS, "decisions", "decisions[].id", "decisions[].approve", "decisions[].for")
def a_call_is_approved_for_good(visit: Visit) -> None:
    waiting = visit.paused(WRITE, profile="careful")
    visit.script.says("Written.")
    chat = _decided(visit, waiting, {"id": "q1-t1", "approve": True, "for": "conversation"})
    assert visit.owner.record(chat["conversation_id"], "q1-t1")["result"] == "notes is written."
    shown = visit.owner.get(f"/v1/conversations/{chat['conversation_id']}")
    assert shown["allowed"] == ["kit_write"]


@stop(DECISIONS, "decisions[].reason", "decisions[].input")
def calls_are_declined_and_edited(visit: Visit) -> None:
    waiting = visit.paused(WRITE, WRITE, profile="careful")
    visit.script.says("One of them.")
    visit.tools.gate("plan").released.set()
    edited = {"id": "q1-t1", "input": {"name": "plan"}}
    chat = _decided(visit, waiting, edited, {"id": "q1-t2", "approve": False, "reason": "Not yet."})
    first, second = (visit.owner.record(chat["conversation_id"], f"q1-t{n}") for n in (1, 2))
    assert "plan is written." in first["result"]
    assert "Not yet." in second["result"]


@stop(DECISIONS, "decisions[].result", "decisions[].is_error")
def the_client_says_what_its_tool_found(visit: Visit) -> None:
    waiting = visit.paused(("look", {}), tools=[LOOK])
    visit.script.says("I see.")
    chat = _decided(visit, waiting, {"id": "q1-t1", "result": "Nothing there.", "is_error": True})
    record = visit.owner.record(chat["conversation_id"], "q1-t1")
    assert (record["result"], record["is_error"]) == ("Nothing there.", True)


@stop(DECISIONS, "decisions[].answer")
def a_question_is_answered(visit: Visit) -> None:
    waiting = visit.paused(("ask_user", {"question": "Which one?"}), profile="careful")
    visit.script.says("The blue one, then.")
    chat = _decided(visit, waiting, {"id": "q1-t1", "answer": "The blue one."})
    assert "The blue one." in visit.owner.record(chat["conversation_id"], "q1-t1")["result"]


@stop(CHATS, "continue")
def an_answer_goes_on(visit: Visit) -> None:
    cut = {"match": visit.script.key, "text": "The first half, an", "stop_reason": "max_tokens"}
    visit.script.model.script.add(cut)
    first = visit.finish(visit.start(by_caller=True)["chat_id"])
    assert first["stop"] == "max_tokens"
    started = visit.ask({"conversation_id": first["conversation_id"], "continue": True}).json()
    assert visit.finish(started["chat_id"])["status"] == "done"
    assert visit.owner.record(first["conversation_id"], "q2")["continues"] == "q1-r"
