"""POST, DELETE, repeats, waiting, concurrent chats, two tenants: the API in front of the workflow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat

from tests.clients.stack_client import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer

UNKNOWN_CHAT = "ch_01k0000000000000000000000a"


class Nobody:
    """Executions that never start."""

    def start(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Do nothing."""

    def stop(self, chat_id: str, cause: str) -> None:
        """Nothing to stop."""


def code(response: httpx.Response) -> tuple[int, str]:
    """Status and error code of a refusal."""
    return response.status_code, response.json()["error"]["code"]


# ── two at once ───────────────────────────────────────────────────────────────────────────────────


def test_of_two_concurrent_chats_in_a_conversation_one_is_admitted(
    tools: ToolServer, ann: Person, script: Script
) -> None:
    conversation = ann.http.post("/v1/conversations", json={}).json()
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    with ThreadPoolExecutor(2) as pool:
        posted = list(
            pool.map(lambda _: ann.post(script.question(), conversation["conversation_id"]), range(2))
        )
    accepted, refused = sorted(posted, key=lambda response: response.status_code)
    assert accepted.status_code == 202
    assert code(refused) == (409, "conversation_busy")
    assert ann.credits()["held"] in (5, 7)
    assert tools.gate(script.marker).arrived.wait(30)
    assert code(ann.post("And now?", conversation["conversation_id"])) == (409, "conversation_busy")
    busy = ann.http.delete(f"/v1/conversations/{conversation['conversation_id']}")
    assert code(busy) == (409, "conversation_busy")
    tools.gate(script.marker).released.set()
    assert ann.finish(accepted.json()["chat_id"])["message_id"] == "q1"
    assert len(ann.records(conversation["conversation_id"])) == 3


def test_a_conversation_is_free_at_the_answer_before_its_summaries_are_written(
    ann: Person, script: Script
) -> None:
    slow = {"match": script.marker, "kind": "summary", "delay_first": 4.0, "text": "It was long."}
    script.model.script.add(slow)
    script.says(f"{script.marker} " + "is a long story. " * 60)
    script.says("The next answer.")
    first = ann.start(script.question("first"), ann.opened("small"))
    ann.until(first["chat_id"], lambda event: event.kind == "answer")
    answered = ann.chat(first["chat_id"])
    assert (answered["status"], answered["memory"]["summaries_due"]) == ("answered", True)
    second = ann.start(script.question("second"), first["conversation_id"])
    assert second["message_id"] == "q2"
    assert ann.finish(second["chat_id"])["response"] == "The next answer."
    done = ann.finish(first["chat_id"])
    assert done["status"] == "done"
    assert done["summary"].startswith(script.marker), "the follow-up made the track final, without the model"


def test_another_tenant_finds_nothing_by_any_id(
    tools: ToolServer, someone: Callable[[], Person], script: Script
) -> None:
    ann, bob = someone(), someone()
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    started = ann.start(script.question())
    assert tools.gate(script.marker).arrived.wait(30)
    chat, conversation = f"/v1/chats/{started['chat_id']}", f"/v1/conversations/{started['conversation_id']}"
    for method, path in (
        ("GET", chat),
        ("DELETE", chat),
        ("GET", f"{chat}/events"),
        ("GET", conversation),
        ("GET", f"{conversation}?track=summarised"),
        ("GET", f"{conversation}/records/q1"),
        ("DELETE", conversation),
    ):
        assert code(bob.http.request(method, path)) == (404, "not_found"), (method, path)
    assert code(bob.http.patch(conversation, json={"title": "Mine"})) == (404, "not_found")
    assert code(bob.post("Hello", started["conversation_id"])) == (404, "not_found")
    assert bob.get("/v1/conversations")["conversations"] == []
    assert bob.get("/v1/credits/ledger")["entries"] == []
    assert bob.credits()["available"] == 50
    tools.gate(script.marker).released.set()
    assert ann.finish(started["chat_id"])["status"] == "done"


def test_without_a_valid_token_every_request_is_refused(root: Root, ann: Person) -> None:
    for token in ("", "Bearer", f"Bearer {ann.identity.token[:-6]}AAAAAA", "Basic YTpi"):
        for path in ("/v1/credits", f"/v1/chats/{UNKNOWN_CHAT}/events"):
            headers = {"Authorization": token} if token else {}
            response = httpx.get(root.stack.url + path, headers=headers, timeout=PATIENCE)
            assert code(response) == (401, "unauthorized"), (token[:10], path)
    assert code(ann.http.get(f"/v1/admin/users/{ann.id}/credits")) == (403, "forbidden")


# ── repeats and waiting ───────────────────────────────────────────────────────────────────────────


def test_a_repeated_request_is_the_first_chat_and_refusals_are_not_kept(
    root: Root, ann: Person, someone: Callable[[], Person], script: Script
) -> None:
    script.says("Once.")
    key = script.marker
    assert code(ann.http.post("/v1/chats", json={"message": ""}, headers={"Idempotency-Key": key})) == (
        400,
        "invalid_request",
    )
    first = ann.post(script.question(), key=key)
    assert first.status_code == 202
    assert first.headers["Location"] == first.json()["url"]
    again = ann.post(script.question(), key=key)
    assert again.json()["chat_id"] == first.json()["chat_id"]
    assert code(ann.post("Something else", key=key)) == (409, "idempotency_conflict")
    done = ann.finish(first.json()["chat_id"])
    after = ann.post(script.question(), key=key)
    assert (after.status_code, after.json()) == (200, done)
    assert ann.credits()["available"] == 45
    script.says("For Bob.")
    other = someone().post(script.question(), key=key)
    assert other.status_code == 202
    assert other.json()["chat_id"] != first.json()["chat_id"]


def test_concurrent_repeats_make_one_chat(ann: Person, script: Script) -> None:
    script.says("Once.")
    with ThreadPoolExecutor(4) as pool:
        posted = list(pool.map(lambda _: ann.post(script.question(), key=script.marker), range(4)))
    assert {response.status_code for response in posted} <= {200, 202}
    assert len({response.json()["chat_id"] for response in posted}) == 1
    ann.finish(posted[0].json()["chat_id"])
    assert ann.credits()["available"] == 45


def test_waiting_gives_the_answer_or_the_receipt(tools: ToolServer, ann: Person, script: Script) -> None:
    script.says("At once.")
    quick = ann.post(script.question(), wait="25")
    assert (quick.status_code, quick.json()["response"]) == (200, "At once.")
    assert quick.json()["status"] in ("answered", "done")
    script.asks(("kit_hold", {"name": script.marker}))
    slow = ann.post(script.question(), wait="0.5")
    assert (slow.status_code, slow.json()["status"]) == (202, "running")
    for wrong in ("-1", "26", "soon", "nan"):
        assert code(ann.post("Hello", wait=wrong)) == (400, "invalid_request"), wrong
    assert tools.gate(script.marker).arrived.wait(30)
    assert ann.cancel(slow.json()["chat_id"])["status"] == "cancelled"


# ── cancelling ────────────────────────────────────────────────────────────────────────────────────


def test_a_chat_is_cancelled_while_its_answer_streams(root: Root, ann: Person, script: Script) -> None:
    script.says("word " * 400, chunk=5, delay_chunk=0.1)
    started = ann.start(script.question())
    seen = ann.until(started["chat_id"], lambda event: event.kind == "delta")
    cancelled = ann.cancel(started["chat_id"])
    assert (cancelled["status"], cancelled["stop"]) == ("cancelled", "cancelled")
    assert (cancelled["credits_used"], cancelled["credits_remaining"]) == (5, 45)
    rest = ann.events(started["chat_id"], after=seen[-1].id)
    assert rest[-1].kind == "done"
    written = "".join(event.data["text"] for event in (*seen, *rest) if event.kind == "delta")
    kept = cancelled["response"]
    assert kept
    assert written.startswith(kept)
    assert {key: rest[-1].data[key] for key in cancelled} == cancelled
    assert not [event for event in rest if event.kind in ("answer", "error")]
    assert ann.cancel(started["chat_id"]) == cancelled == ann.chat(started["chat_id"])
    wait_for(lambda: root.execution_status(started["chat_id"]) == "ABORTED")
    assert (ann.credits()["available"], ann.credits()["held"]) == (45, 0)
    following = script.branch("next")
    following.says("Gone on.")
    assert ann.ask(following.question(), started["conversation_id"])["response"] == "Gone on."
    (request,) = following.requests()
    (past,) = request["messages"][1]["content"]
    assert past["text"].startswith("[ID:q1-r] word")
    assert past["text"].endswith(" (stopped by the user)")
    # nothing more was written for the cancelled run
    assert ann.events(started["chat_id"])[-1].id == rest[-1].id


def test_a_cancelled_chat_pays_for_the_tools_begun(tools: ToolServer, ann: Person, script: Script) -> None:
    script.asks(("kit_hold", {"name": script.marker}), ("kit_echo", {"text": script.marker}))
    started = ann.start(script.question())
    assert tools.gate(script.marker).arrived.wait(30)
    ann.until(started["chat_id"], lambda event: event.kind == "tool_result")
    assert ann.cancel(started["chat_id"])["credits_used"] == 5 + 2 + 2
    last = ann.events(started["chat_id"])[-1].id
    tools.gate(script.marker).released.set()
    # a late tool result finds the log closed
    wait_for(lambda: tools.calls[f"echo:{script.marker}"] == 1)
    assert ann.events(started["chat_id"])[-1].id == last
    assert ann.credits()["available"] == 41


def test_a_chat_cancelled_before_any_model_call_costs_nothing(root: Root, ann: Person) -> None:
    nobody: Any = Nobody()
    chat = start_chat(root.stores(), nobody, NewChat(ann.id, "Never mind."), None)
    assert ann.credits()["held"] == 5
    cancelled = ann.cancel(chat.chat_id)
    assert (cancelled["status"], cancelled["credits_used"], cancelled["credits_remaining"]) == (
        "cancelled",
        0,
        50,
    )


def test_an_ended_chat_stays_as_it_is(ann: Person, script: Script) -> None:
    script.says("Done.")
    chat = ann.ask(script.question())
    assert ann.cancel(chat["chat_id"]) == chat


def test_a_deleted_conversation_leaves_nothing(root: Root, ann: Person, script: Script) -> None:
    script.asks(("kit_big", {"megabytes": 2}))
    script.says("Read.")
    chat = ann.ask(script.question())
    conversation_id, chat_id = chat["conversation_id"], chat["chat_id"]
    assert ann.http.delete(f"/v1/conversations/{conversation_id}").status_code == 204
    for path in (
        f"/v1/chats/{chat_id}",
        f"/v1/conversations/{conversation_id}",
        f"/v1/chats/{chat_id}/events",
    ):
        assert code(ann.http.get(path)) == (404, "not_found")
    dynamodb = root.client("dynamodb")
    for table in (root.settings.history_table, root.settings.chats_table):
        pages = dynamodb.get_paginator("scan").paginate(TableName=table)
        keys = [f"{item['pk']['S']} {item['sk']['S']}" for page in pages for item in page["Items"]]
        leftovers = [key for key in keys if conversation_id in key or chat_id in key]
        # the list of deletions keeps the ids until no late step can write any more
        assert not [key for key in leftovers if not key.startswith("DELETIONS ")]
    objects = root.client("s3").list_objects_v2(Bucket=root.settings.bodies_bucket)
    assert not [entry["Key"] for entry in objects.get("Contents", []) if conversation_id in entry["Key"]]
