"""/v1/conversations and /v1/tools."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tests.drivers.tour import stop

if TYPE_CHECKING:
    from tests.drivers.tour import Visit

MANY = "GET /v1/conversations"
ONE = "GET /v1/conversations/{conversation_id}"
FORK = "POST /v1/conversations/{conversation_id}/fork"
RECORD = "GET /v1/conversations/{conversation_id}/records/{record_id}"


def _made(visit: Visit, title: str, *, by_caller: bool = False) -> str:
    client = visit.client if by_caller else visit.owner.http
    return str(client.post("/v1/conversations", json={"title": title}).json()["conversation_id"])


@stop("POST /v1/conversations", "title", "profile")
def a_conversation_is_made(visit: Visit) -> None:
    made = visit.ask({"title": "Plans", "profile": "small"}, status=201)
    shown = visit.owner.get(made.headers["Location"])
    assert (shown["title"], shown["profile"]) == ("Plans", "small")


@stop(MANY, "cursor", "limit")
def the_list_in_pages(visit: Visit) -> None:
    made = {_made(visit, f"Number {number}") for number in range(3)}
    first = visit.ask(query={"limit": 2}).json()
    second = visit.ask(query={"limit": 2, "cursor": first["cursor"]}).json()
    listed = [one["conversation_id"] for page in (first, second) for one in page["conversations"]]
    assert (len(first["conversations"]), len(listed), set(listed)) == (2, 3, made)


@stop(MANY, "q")
def the_list_is_searched(visit: Visit) -> None:
    found, _ = _made(visit, "A bowline"), _made(visit, "A sheet bend")
    listed = visit.ask(query={"q": "bowline"}).json()["conversations"]
    assert [one["conversation_id"] for one in listed] == [found]


@stop(MANY, "forked_from")
def the_list_of_forks(visit: Visit) -> None:
    parent = visit.chat()["conversation_id"]
    fork = visit.owner.http.post(f"/v1/conversations/{parent}/fork", json={"before": "q1"}).json()
    listed = visit.ask(query={"forked_from": parent}).json()["conversations"]
    assert [one["conversation_id"] for one in listed] == [fork["conversation_id"]]


@stop(ONE, "track", "cursor")
def records(visit: Visit) -> None:
    visit.script.asks(("kit_big", {"megabytes": 2}))
    chat = visit.chat()
    where = {"conversation_id": chat["conversation_id"]}
    pages = [visit.ask(query={"track": "full"}, **where).json()]
    while cursor := pages[-1].get("cursor"):
        pages.append(visit.ask(query={"track": "full", "cursor": cursor}, **where).json())
    ids = [record["record_id"] for page in pages for record in page["records"]]
    assert len(pages) > 1
    assert ids == ["q1", "q1-t1", "q1-r"], ids
    summarised = visit.ask(query={"track": "summarised"}, **where).json()
    assert summarised["track"] == "summarised"
    short = [record["record_id"] for record in summarised["records"]]
    assert {"q1", "q1-t1-sum"} <= {*short}, short


@stop("PATCH /v1/conversations/{conversation_id}", "title")
def a_new_title(visit: Visit) -> None:
    conversation = _made(visit, "Old", by_caller=True)
    visit.ask({"title": "New"}, conversation_id=conversation)
    assert visit.owner.get(f"/v1/conversations/{conversation}")["title"] == "New"


@stop("DELETE /v1/conversations/{conversation_id}")
def a_conversation_is_deleted(visit: Visit) -> None:
    conversation = visit.chat()["conversation_id"]
    visit.ask(conversation_id=conversation, status=204)
    assert visit.owner.http.get(f"/v1/conversations/{conversation}").status_code == 404


@stop(FORK, "before", "Idempotency-Key")
def a_fork(visit: Visit) -> None:
    chat = visit.chat(by_caller=True)
    where, key = {"conversation_id": chat["conversation_id"]}, {"Idempotency-Key": visit.script.marker}
    first, second = (visit.ask({"before": "q2"}, headers=key, status=201, **where).json() for _ in range(2))
    assert first["conversation_id"] == second["conversation_id"]
    assert (first["forked_from"], first["forked_before"]) == (chat["conversation_id"], "q2")
    assert [one["record_id"] for one in visit.owner.records(first["conversation_id"])] == ["q1", "q1-r"]


@stop("DELETE /v1/conversations/{conversation_id}/allowed/{tool}")
def leave_is_taken_back(visit: Visit) -> None:
    waiting = visit.paused(("kit_write", {"name": "notes"}), profile="careful")
    visit.tools.gate("notes").released.set()
    visit.script.says("Written.")
    allow = {"decisions": [{"id": "q1-t1", "approve": True, "for": "conversation"}]}
    assert visit.owner.http.post(f"/v1/chats/{waiting['chat_id']}/decisions", json=allow).is_success
    visit.finish(waiting["chat_id"])
    conversation = waiting["conversation_id"]
    assert visit.owner.get(f"/v1/conversations/{conversation}")["allowed"] == ["kit_write"]
    visit.ask(conversation_id=conversation, tool="kit_write", status=204)
    assert visit.owner.get(f"/v1/conversations/{conversation}")["allowed"] == []


@stop(RECORD, "offset")
def a_record_from_a_place_on(visit: Visit) -> None:
    chat = visit.chat("Forty-two is the answer.")
    where = {"conversation_id": chat["conversation_id"], "record_id": "q1-r"}
    assert visit.ask(query={"offset": 10}, **where).json()["content"] == "is the answer."


@stop("GET /v1/conversations/{conversation_id}/records/{record_id}/attachments/{place}", "offset")
def a_file_from_a_place_on(visit: Visit) -> None:
    data = base64.b64encode(b"key,value\n").decode()
    chat = visit.chat(attachments=[{"media_type": "text/csv", "name": "a.csv", "data": data}])
    where = {"conversation_id": chat["conversation_id"], "record_id": "q1", "place": "1"}
    binary = {"Accept": "application/octet-stream"}
    answer = visit.ask(query={"offset": 4}, headers=binary, **where)
    assert (answer.content, answer.headers["Content-Type"].partition(";")[0]) == (b"value\n", "text/csv")


@stop("GET /v1/tools")
def the_tools(visit: Visit) -> None:
    listed = visit.ask().json()
    assert {"kit_echo", "retrieve_full_context"} <= {tool["name"] for tool in listed["tools"]}
    assert {"assistant", "careful", "small"} <= {profile["name"] for profile in listed["profiles"]}


@stop("GET /health")
def health(visit: Visit) -> None:
    assert visit.ask().json() == {"status": "ok"}


@stop("GET /openapi.json")
def the_document(visit: Visit) -> None:
    assert "/v1/chats" in visit.ask().json()["paths"]
