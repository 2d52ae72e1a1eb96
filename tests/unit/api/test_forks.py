"""Forks as a client sees them: created, read, listed, queried, deleted (CONTRACT 4, 6)."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.clock import iso
from dualtrack.ids import new_conversation_id
from dualtrack.memory.records import QueryTrack, TrackBlock
from dualtrack.storage.conversations import Conversation
from dualtrack.storage.dynamo import Action

from tests.clients.api_client import Api, items, objects
from tests.drivers.images import png

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGE = "The wombat has 4711 burrows. " * 60
PICTURE = base64.b64encode(png(bytes(3_000))).decode()
NOTES = base64.b64encode(b"The plan says 80. " * 200).decode()


@pytest.fixture
def api(shared: Api) -> Api:
    """A user of the test's own, with credits for many chats."""
    shared.world.model.reset()
    own = shared.of_new_user()
    shared.world.stores.ledger.grant(own.user, "g", 10_000, "test", shared.world.clock())
    return own


def converse(api: Api, queries: int, conversation_id: str = "", word: str = "question") -> str:
    """Ask this many queries, each with a word of its own; the conversation's id."""
    for number in range(1, queries + 1):
        more = {"conversation_id": conversation_id} if conversation_id else {}
        conversation_id = api.ask(f"{word} number {number}", **more)["conversation_id"]
    return conversation_id


def fork(api: Api, conversation_id: str, before: str, **headers: str) -> dict[str, Any]:
    answer = api.call("POST", f"/v1/conversations/{conversation_id}/fork", {"before": before}, headers)
    assert answer.status == 201, answer
    assert answer.headers["Location"] == f"/v1/conversations/{answer.json['conversation_id']}"
    return dict(answer.json)


def records(api: Api, conversation_id: str, track: str = "full") -> list[Any]:
    """All pages of a track."""
    listed: list[Any] = []
    target = f"/v1/conversations/{conversation_id}?track={track}"
    where = target
    while where:
        body = api.get(where)
        listed += body["records"]
        where = f"{target}&cursor={body['cursor']}" if "cursor" in body else ""
    return listed


def turn_with(calls: list[Mapping[str, Any]]) -> dict[str, Any]:
    """A model's turn that makes these calls."""
    return {"match": "turn", "content": [{"type": "tool_use", **call} for call in calls]}


# ── creating ──────────────────────────────────────────────────────────────────────────────────────


def test_a_fork_shows_the_past_of_its_parent_and_goes_its_own_way(api: Api) -> None:
    parent = converse(api, 3)
    created = fork(api, parent, "q3")
    whole = {track: records(api, parent, track) for track in ("full", "summarised")}
    assert created == {
        **created,
        "forked_from": parent,
        "forked_before": "q3",
        "title": "question number 1",
        "profile": "assistant",
    }
    own = created["conversation_id"]
    shown = api.get(f"/v1/conversations/{own}")
    assert {name: shown[name] for name in created} == created
    assert "forked_before" not in api.get(f"/v1/conversations/{parent}")
    for track, listed in whole.items():
        assert records(api, own, track) == [
            record for record in listed if record["record_id"][:2] in ("q1", "q2")
        ]
    answer = api.ask("Another third question", conversation_id=own)
    assert answer["message_id"] == "q3"
    assert {track: records(api, parent, track) for track in whole} == whole
    assert [record["content"] for record in records(api, own) if record["record_id"] == "q3"] == [
        "Another third question"
    ]


@pytest.mark.parametrize("before", ["q1", "q2", "q3"])
def test_a_fork_may_begin_before_any_query_and_after_the_last(api: Api, before: str) -> None:
    parent = converse(api, 2)
    own = fork(api, parent, before)["conversation_id"]
    shown = [record["record_id"] for record in records(api, own) if record["role"] == "user"]
    assert shown == [f"q{number}" for number in range(1, int(before[1:]))]
    assert api.ask("What now?", conversation_id=own)["message_id"] == before


def test_a_fork_that_shares_nothing_takes_its_title_from_its_own_first_query(api: Api) -> None:
    own = fork(api, converse(api, 1), "q1")
    assert own["title"] == ""
    api.ask("Quite another one", conversation_id=own["conversation_id"])
    assert api.get(f"/v1/conversations/{own['conversation_id']}")["title"] == "Quite another one"


@pytest.mark.parametrize("before", ["q4", "q999999999", "q0", "q01", "q", "7", "Q1", "q1-r", "d1", "q1 ", ""])
def test_an_unknown_query_to_fork_before_is_a_400(api: Api, before: str) -> None:
    parent, stored = converse(api, 2), items(api.world, "history")
    answer = api.call("POST", f"/v1/conversations/{parent}/fork", {"before": before})
    assert (answer.status, answer.code) == (400, "invalid_request")
    advice = "q1 to q3" if before == "q4" else "such as q7"
    assert before == "q999999999" or advice in answer.json["error"]["message"]
    assert items(api.world, "history") == stored


def test_a_repeat_with_the_same_key_makes_one_fork(api: Api) -> None:
    parent = converse(api, 2)
    first = fork(api, parent, "q2", **{"Idempotency-Key": "once"})
    assert fork(api, parent, "q2", **{"Idempotency-Key": "once"}) == first
    other = api.call(
        "POST", f"/v1/conversations/{parent}/fork", {"before": "q1"}, {"Idempotency-Key": "once"}
    )
    chat = api.call("POST", "/v1/chats", {"message": "x"}, {"Idempotency-Key": "once"})
    assert [(answer.status, answer.code) for answer in (other, chat)] == [(409, "idempotency_conflict")] * 2
    assert api.call("DELETE", f"/v1/conversations/{first['conversation_id']}").status == 204
    gone = api.call("POST", f"/v1/conversations/{parent}/fork", {"before": "q2"}, {"Idempotency-Key": "once"})
    assert (gone.status, gone.code) == (404, "not_found")


def test_while_a_chat_runs_only_earlier_queries_are_forked(api: Api) -> None:
    parent = converse(api, 2)
    api.start("A third one", conversation_id=parent)
    busy = api.call("POST", f"/v1/conversations/{parent}/fork", {"before": "q4"})
    assert (busy.status, busy.code) == (409, "conversation_busy")
    own = fork(api, parent, "q3")["conversation_id"]
    assert [record["record_id"] for record in records(api, own)] == ["q1", "q1-r", "q2", "q2-r"]
    api.world.clock.now += CHAT_SECONDS + 1
    whole = fork(api, parent, "q4")["conversation_id"]
    assert [record["record_id"] for record in records(api, whole)][-2:] == ["q3", "q3-r"]


def test_a_fork_of_an_answer_not_yet_summarised_has_its_track(api: Api) -> None:
    """Made mechanically, as for a follow-up; the parent's chat is closed with the same track."""
    parent = converse(api, 1)
    started = api.start("And the second? " + LARGE, conversation_id=parent)
    chat = api.chat(started["chat_id"])
    assert api.world.answer(chat) == "answered"
    own = fork(api, parent, "q3")["conversation_id"]
    short = records(api, own, "summarised")
    assert short[-1]["record_id"] == "q2-r-sum"
    api.world.summarise(chat)
    assert api.get(f"/v1/chats/{chat.chat_id}")["status"] == "done"
    assert records(api, own, "summarised") == short == records(api, parent, "summarised")


def test_forks_of_forks_have_a_maximum_depth(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a fork with queries of its own adds depth; forking the same past repeatedly does not."""
    monkeypatch.setattr("dualtrack.chat.fork_conversation.MAX_PARTS", 3)
    own = converse(api, 1)
    for last in range(1, 4):
        for _ in range(3):
            own = fork(api, own, f"q{last + 1}")["conversation_id"]
        api.ask("One more", conversation_id=own)
    answer = api.call("POST", f"/v1/conversations/{own}/fork", {"before": "q5"})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert records(api, fork(api, own, "q4")["conversation_id"]) == records(api, own)[:-2]


@pytest.mark.parametrize("queries", [3, 1_000])
def test_a_fork_writes_the_same_amount_whatever_it_shares(api: Api, queries: int) -> None:
    """The whole request: the rate limit, and one transaction of the conversation, a note of it and a count."""
    now = iso(api.world.clock())
    parent = Conversation(api.user, new_conversation_id(), "Long", "assistant", now, now, now, queries)
    api.world.stores.conversations.create(parent)
    history, dynamodb = api.world.stores.history, api.dynamodb
    for number in range(1, queries + 1):
        query = TrackBlock(f"q{number}", "user", "What?", now)
        answered = TrackBlock(f"q{number}-r-sum", "assistant", "Yes.", now, f"q{number}-r")
        track = QueryTrack(number, (query, answered))
        for write in history.track_writes(api.user, parent.conversation_id, track):
            assert isinstance(write, Action), "small enough for its item"
            dynamodb.put_item(**write.request)
    writes: list[tuple[str, int]] = []

    def note(model: Any, params: Any, **_: Any) -> None:
        if model.name not in ("GetItem", "BatchGetItem", "Query"):
            writes.append((model.name, len(json.loads(params["body"]).get("TransactItems", "1"))))

    events = dynamodb.meta.events
    events.register("before-call.dynamodb", note, unique_id="writes")
    try:
        created = fork(api, parent.conversation_id, f"q{queries + 1}")
    finally:
        events.unregister("before-call.dynamodb", unique_id="writes")
    assert writes == [("UpdateItem", 1), ("TransactWriteItems", 3)]
    assert created["forked_before"] == f"q{queries + 1}"


# ── read ──────────────────────────────────────────────────────────────────────────────────────────


def test_later_queries_of_the_parent_are_hidden_from_every_route_and_tool(api: Api) -> None:
    api.world.model.script.add(
        *[{"match": "turn", "text": f"The answer {number} is wombat. {LARGE}"} for number in range(1, 5)]
    )
    parent = converse(api, 4, word="wombat")
    own = fork(api, parent, "q3")["conversation_id"]
    there = {
        record["record_id"] for track in ("full", "summarised") for record in records(api, parent, track)
    }
    for record_id in there:
        answer = api.call("GET", f"/v1/conversations/{own}/records/{record_id}")
        assert answer.status == (404 if record_id[:2] in ("q3", "q4") else 200), record_id
    api.world.model.script.add(
        turn_with(
            [
                {"name": "search_conversation", "input": {"query": "wombat answer", "limit": 20}},
                *[
                    {"name": "retrieve_full_context", "input": {"id": fetched}}
                    for fetched in ("q2-r", "q4-r", "q4", "q3-r-sum", "q2-r-sum")
                ],
            ]
        ),
        {"match": "turn", "text": "Nothing."},
    )
    chat = api.ask("What do you know?", conversation_id=own)
    assert len(chat["tool_calls"]) == 6
    texts = {record["record_id"]: record.get("result", record.get("content")) for record in records(api, own)}
    assert {f"q{n}{tail}" for n in (1, 2) for tail in ("", "-r")} <= set(
        texts["q3-t1"].replace("\n", " ").split()
    )
    assert "answer 3" not in texts["q3-t1"]
    assert "answer 4" not in texts["q3-t1"]
    assert texts["q3-t2"] == f"The answer 2 is wombat. {LARGE}"
    assert (texts["q3-t3"], texts["q3-t4"]) == ("ID not found: q4-r", "ID not found: q4")
    assert texts["q3-t5"] == "ID not found: q3-r-sum"
    assert "wombat" in texts["q3-t6"]


def test_files_of_shared_queries_are_read_from_a_fork(api: Api) -> None:
    attachments = [
        {"media_type": "image/png", "data": PICTURE, "name": "chart.png"},
        {"media_type": "text/plain", "data": NOTES, "name": "plan.txt"},
    ]
    parent = api.ask("Look at these", attachments=attachments)["conversation_id"]
    own = fork(api, parent, "q2")["conversation_id"]
    api.call("DELETE", f"/v1/conversations/{parent}")
    for number, attachment in enumerate(attachments, start=1):
        read = api.call(
            "GET",
            f"/v1/conversations/{own}/records/q1/attachments/{number}",
            headers={"Accept": "application/octet-stream"},
        )
        assert (read.status, read.content) == (200, base64.b64decode(attachment["data"]))
    api.world.model.script.add(
        turn_with(
            [{"name": "retrieve_full_context", "input": {"id": fetched}} for fetched in ("q1", "q1-f1")]
        ),
        {"match": "turn", "text": "Seen."},
    )
    api.ask("Show me", conversation_id=own)
    results = {record["record_id"]: record for record in records(api, own)}
    assert results["q2-t1"]["attachments"][0]["size"] == len(base64.b64decode(PICTURE))
    assert "The plan says 80." in results["q2-t2"]["result"]


def test_a_fork_is_read_with_as_many_requests_as_its_parent(api: Api) -> None:
    """Reads of a page of the summarised track."""
    parent = converse(api, 2)
    own = fork(api, parent, "q3")["conversation_id"]
    counted = {}
    for conversation_id in (parent, own):
        sent: Counter[str] = Counter()

        def count(model: Any, sent: Counter[str] = sent, **_: Any) -> None:
            sent[model.name] += 1

        events = api.dynamodb.meta.events
        events.register("before-call.dynamodb", count, unique_id="reads")
        try:
            records(api, conversation_id, "summarised")
        finally:
            events.unregister("before-call.dynamodb", unique_id="reads")
        counted[conversation_id] = dict(sent)
    assert counted[parent] == {"GetItem": 4, "UpdateItem": 1, "Query": 4}
    assert counted[own] == counted[parent]


# ── listed ────────────────────────────────────────────────────────────────────────────────────────


def test_the_forks_of_a_conversation_are_listed_newest_first(api: Api) -> None:
    parent = converse(api, 2)
    created = [fork(api, parent, before) for before in ("q1", "q2", "q3")]
    deeper = fork(api, created[2]["conversation_id"], "q3")
    forks, where = [], f"/v1/conversations?forked_from={parent}&limit=2"
    body = api.get(where)
    forks += body["conversations"]
    forks += api.get(f"{where}&cursor={body['cursor']}")["conversations"]
    assert sorted(entry["conversation_id"] for entry in forks) == sorted(
        entry["conversation_id"] for entry in created
    )
    assert sorted(entry["forked_before"] for entry in forks) == ["q1", "q2", "q3"]
    (below,) = api.get(f"/v1/conversations?forked_from={created[2]['conversation_id']}")["conversations"]
    assert below == deeper == {**deeper, "forked_before": "q3"}
    api.call("DELETE", f"/v1/conversations/{created[0]['conversation_id']}")
    remaining = api.get(f"/v1/conversations?forked_from={parent}")["conversations"]
    assert created[0]["conversation_id"] not in {entry["conversation_id"] for entry in remaining}
    assert len(remaining) == 2
    assert len(api.get("/v1/conversations")["conversations"]) == 4


def test_other_users_neither_fork_nor_list_nor_read(api: Api) -> None:
    """Nor does the operator: each key belongs to one tenant."""
    parent = converse(api, 2)
    own = fork(api, parent, "q2")["conversation_id"]
    stored = items(api.world, "history")
    for other in (api.of_new_user(), api.of(api.of_new_user().user, "admin")):
        refused = [
            other.call("POST", f"/v1/conversations/{parent}/fork", {"before": "q1"}),
            other.call("GET", f"/v1/conversations?forked_from={parent}"),
            other.call("GET", f"/v1/conversations/{own}"),
            other.call("GET", f"/v1/conversations/{own}/records/q1"),
        ]
        assert [(answer.status, answer.code) for answer in refused] == [(404, "not_found")] * 4
    assert items(api.world, "history") == stored


# ── deleted ───────────────────────────────────────────────────────────────────────────────────────


def items_of(api: Api, conversation_id: str) -> list[tuple[str, str]]:
    """What is stored in a conversation's own partition."""
    pk = f"CONV#{api.user}#{conversation_id}"
    return sorted(
        (item["pk"]["S"], item["sk"]["S"]) for item in items(api.world, "history") if item["pk"]["S"] == pk
    )


def sweep(api: Api) -> None:
    pool: Any = None
    sweep_deletions(api.world.stores, api.world.executions, pool, 100)  # type: ignore[arg-type]


def test_a_deleted_parent_is_hidden_and_what_its_fork_shows_is_kept(api: Api) -> None:
    api.world.model.script.add({"match": "turn", "text": LARGE, "always": True})
    parent = converse(api, 4, word="secret " + "x" * 900)
    chats = api.chat_ids()
    own = fork(api, parent, "q3")["conversation_id"]
    shown = {track: records(api, own, track) for track in ("full", "summarised")}
    assert api.call("DELETE", f"/v1/conversations/{parent}").status == 204
    assert api.call("GET", f"/v1/conversations/{parent}").status == 404
    (listed,) = api.get(f"/v1/conversations?forked_from={parent}")["conversations"]
    assert (listed["conversation_id"], listed["forked_from"]) == (own, parent)
    assert api.call("POST", f"/v1/conversations/{parent}/fork", {"before": "q1"}).status == 404
    assert api.call("PATCH", f"/v1/conversations/{parent}", {"title": "Back"}).status == 404
    for chat in chats:
        assert api.call("GET", f"/v1/chats/{chat}").status == 404
    assert api.chat_ids() == []
    kept = {sk for _, sk in items_of(api, parent)}
    numbers = {sk[2:8] for sk in kept if sk[:2] in ("F#", "S#")}
    assert numbers == {"000001", "000002"}
    bodies = sum(sk.startswith("B#") for sk in kept)
    assert bodies == 1, "the answer's, which both queries share"
    remaining = [item for item in items(api.world, "history") if item["sk"]["S"] == f"CONV#{parent}"]
    assert [item["title"]["S"] for item in remaining] == [""]
    assert {track: records(api, own, track) for track in shown} == shown
    assert api.ask("And now?", conversation_id=own)["status"] == "done"
    deeper = fork(api, own, "q2")["conversation_id"]
    assert api.call("DELETE", f"/v1/conversations/{own}").status == 204
    assert {sk[2:8] for _, sk in items_of(api, parent) if sk[:2] in ("F#", "S#")} == {"000001"}
    assert records(api, deeper) == shown["full"][:2]
    assert api.call("DELETE", f"/v1/conversations/{deeper}").status == 204
    for _ in range(2):
        api.world.clock.now += WRITERS_SECONDS + 1
        sweep(api)
    assert api.call("GET", f"/v1/conversations?forked_from={parent}").status == 404
    everything = items(api.world, "history") + items(api.world, "chats")
    assert [
        item for item in everything if api.user in item["pk"]["S"] and item["sk"]["S"][:4] != "RATE"
    ] == []
    assert [key for key in objects(api.world) if api.user in key] == []
