"""Conversations and records through the function itself (CONTRACT 4)."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from dualtrack.api import conversations
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.conversation_words import words_of_text
from dualtrack.memory.records import Record
from dualtrack.plugin import FOLDER
from dualtrack.storage.bodies import partition
from dualtrack.storage.conversation_words import ConversationWords
from dualtrack.storage.dynamo import transact
from dualtrack.storage.event_log import read_events
from dualtrack.tool_values import Source, ToolResult

from tests.clients.api_client import Api, items, make_api, objects
from tests.drivers.world import call_for_summaries, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action
    from dualtrack.tools.running import Running

LARGE = "".join(f"{number * 7919 % 1_000_003} " for number in range(80_000))
"""Text that stays over the limit of an item however it is compressed."""

LAMBDA_ANSWER_BYTES = 6 * 1024 * 1024
"""What a function may answer in all: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with make_api(retrieve_documentation=lambda running: ToolResult(LARGE)) as new_api:
        yield new_api


def ask_with_tools(api: Api, message: str, calls: int = 1, **more: Any) -> dict[str, Any]:
    """A chat with tool calls whose results are large."""
    call = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    thought = {"type": "text", "text": "Let me look."}
    api.world.model.script.add(
        {"match": message, "content": [thought, *[call] * calls]}, {"match": message, "text": "Found. " * 200}
    )
    return api.ask(message, **more)


def pages(api: Api, target: str, name: str) -> list[dict[str, Any]]:
    """All entries of a list, read page by page."""
    joined = "&" if "?" in target else "?"
    body = api.get(target)
    rows = list(body[name])
    while "cursor" in body:
        body = api.get(f"{target}{joined}cursor={body['cursor']}")
        assert body[name] or "q=" in target, "no page behind a cursor is empty"
        rows += body[name]
    return rows


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_is_made_named_and_found(api: Api) -> None:
    answer = api.call("POST", "/v1/conversations", {"title": "Plans", "profile": "assistant"})
    created = answer.json
    where = f"/v1/conversations/{created['conversation_id']}"
    assert (answer.status, answer.headers["Location"]) == (201, where)
    assert created == {**created, "title": "Plans", "profile": "assistant"}
    assert created["created_at"] == created["updated_at"]
    assert api.get(where) == {**created, "track": "full", "records": []}
    renamed = api.call("PATCH", where, {"title": "Better plans"}).json
    assert renamed["title"] == "Better plans"
    assert renamed["updated_at"] > created["updated_at"]
    assert api.get("/v1/conversations") == {"conversations": [renamed]}


def test_a_conversation_without_a_title_takes_the_start_of_its_first_query(api: Api) -> None:
    conversation = api.call("POST", "/v1/conversations").json
    assert conversation["title"] == ""
    words = "word " * 100
    chat = api.ask(words, conversation_id=conversation["conversation_id"])
    title = api.get(f"/v1/conversations/{chat['conversation_id']}")["title"]
    assert title == f"{'word ' * 15}word…"
    api.ask("Another.", conversation_id=chat["conversation_id"])
    assert api.get(f"/v1/conversations/{chat['conversation_id']}")["title"] == title


def test_conversations_are_listed_newest_first_in_pages(api: Api) -> None:
    ids = []
    for number in range(7):
        ids.append(api.call("POST", "/v1/conversations", {"title": str(number)}).json)
        _next_millisecond()
    assert pages(api, "/v1/conversations?limit=3", "conversations") == ids[::-1]
    assert pages(api, "/v1/conversations?limit=7", "conversations") == ids[::-1]
    assert "cursor" not in api.get("/v1/conversations?limit=7")


def test_conversations_are_listed_by_their_last_query(api: Api) -> None:
    ids = []
    for number in range(3):
        ids.append(api.call("POST", "/v1/conversations", {"title": str(number)}).json["conversation_id"])
        _next_millisecond()
    api.ask("Anything new?", conversation_id=ids[1])
    _next_millisecond()
    api.call("PATCH", f"/v1/conversations/{ids[0]}", {"title": "A new title is no query"})
    listed = pages(api, "/v1/conversations?limit=2", "conversations")
    assert [entry["conversation_id"] for entry in listed] == [ids[1], ids[2], ids[0]]


def found_by(api: Api, words: str) -> list[str]:
    """The titles that a search finds."""
    return [entry["title"] for entry in pages(api, f"/v1/conversations?q={quote(words)}", "conversations")]


def test_a_search_finds_titles_and_how_the_latest_queries_begin(api: Api) -> None:
    first = api.ask("Which knot holds a Größe?")["conversation_id"]
    api.ask(f"{'x ' * 60}beyond", conversation_id=first)
    api.ask("Tell me of the bowline.", conversation_id=first)
    _next_millisecond()
    api.call("POST", "/v1/conversations", {"title": "Bowline or clove hitch"})
    knot = "Which knot holds a Größe?"
    assert found_by(api, "bowLINE") == ["Bowline or clove hitch", knot]
    assert found_by(api, "knot bowline") == [knot], "every word, in any order"
    assert found_by(api, "GRÖSSE") == [knot]
    assert found_by(api, "beyo") == [], "after the first 100 characters only whole words"
    assert found_by(api, "  ") == ["Bowline or clove hitch", knot]
    assert api.call("GET", f"/v1/conversations?q={'x' * 201}").status == 400
    assert api.call("GET", f"/v1/conversations?q=a&forked_from={first}").status == 400


def test_a_search_finds_the_words_of_questions_answers_and_summaries(api: Api) -> None:
    asked = f"{'x ' * 60}Where is the vessel moored?"
    api.world.model.script.add(
        {
            "match": "moored",
            "content": [{"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}],
        },
        {
            "match": "moored",
            "text": f"{'It is far away. ' * 80} It lies in the Bay of Biscay; 東京湾ではない。",
        },
    )
    chat = api.ask(asked)
    title = api.get(f"/v1/conversations/{chat['conversation_id']}")["title"]
    api.ask("Unlike the other.")
    for words in ("vessels BISCAY", "the moored bay", "東京", "湾", chat["summary"].split(".")[0]):
        assert found_by(api, words) == [title], words
    for words in ("vessel pacific", "東湾", "bisc", "where the"):
        assert found_by(api, words) == [], words
    assert found_by(api.of("bob"), "biscay") == []
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
    assert found_by(api, "biscay") == []
    assert not api.world.stores.words.of_all("ann", [chat["conversation_id"]])


def test_a_fork_is_found_by_the_words_that_it_shares_also_without_its_parent(api: Api) -> None:
    parent = api.ask("Shall we sail?")["conversation_id"]
    long = "x " * 60
    api.ask(f"{long} to Lisbon", conversation_id=parent)
    api.ask(f"{long} to Bergen", conversation_id=parent)
    fork = api.call("POST", f"/v1/conversations/{parent}/fork", {"before": "q3"}).json["conversation_id"]
    api.ask(f"{long} to Madeira", conversation_id=fork)
    found = {
        word: len(found_by(api, word)) for word in ("lisbon", "bergen", "madeira", "lisbon bergen madeira")
    }
    assert found == {"lisbon": 2, "bergen": 1, "madeira": 1, "lisbon bergen madeira": 0}
    assert api.call("DELETE", f"/v1/conversations/{parent}").status == 204
    assert (len(found_by(api, "lisbon madeira")), found_by(api, "bergen")) == (1, [])


def test_end_users_of_a_key_find_their_own_conversations(api: Api) -> None:
    key = api.make_key("chat", "read", acts_for="any")["key"]
    api.ask("Where is the lighthouse?")
    for name in ("ann", "bob"):
        api.by_key(key, name).ask(f"{name} asks about the lighthouse")
    found = [found_by(api.by_key(key, name), "lighthouse") for name in ("ann", "bob")]
    assert found == [["ann asks about the lighthouse"], ["bob asks about the lighthouse"]]
    assert found_by(api, "lighthouse") == ["Where is the lighthouse?"]


def test_two_queries_that_end_at_once_are_both_found(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another write between reading the words and writing them: they are read anew."""
    chat = api.ask("Shall we sail?")
    actions, between = ConversationWords.actions, [chat["conversation_id"]]

    def interrupted(store: ConversationWords, user: str, conversation_id: str, *rest: Any) -> list[Action]:
        own = actions(store, user, conversation_id, *rest)
        if between:
            transact(
                store.client, actions(store, user, between.pop(), Ancestry(), 7, words_of_text("Trondheim"))
            )
        return own

    monkeypatch.setattr(ConversationWords, "actions", interrupted)
    last = api.ask(f"{'x ' * 60} to Lisbon", conversation_id=chat["conversation_id"])
    assert (last["status"], between) == ("done", [])
    assert len(found_by(api, "lisbon trondheim")) == 1


def test_a_search_reads_a_limited_number_of_bytes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on where it has stopped, and finds each once."""
    for number in range(5):
        api.ask(f"{'x ' * 60} the harbour of number {number}")
        _next_millisecond()
    monkeypatch.setattr(conversations, "SEARCHED_AT_ONCE", 2)
    monkeypatch.setattr(conversations, "SEARCHED_BYTES", 1)
    page = api.get("/v1/conversations?q=harbour")
    assert (len(page["conversations"]), "cursor" in page) == (2, True)
    assert len(found_by(api, "harbour")) == 5


def test_one_request_examines_a_limited_number_of_conversations(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        api.call("POST", "/v1/conversations", {"title": f"Number {number}"})
        _next_millisecond()
    monkeypatch.setattr(conversations, "MOST_LOOKED_AT", 2)
    page = api.get("/v1/conversations?q=0")
    assert (page["conversations"], "cursor" in page) == ([], True)
    titles = [entry["title"] for entry in page["conversations"]]
    while "cursor" in page:
        page = api.get(f"/v1/conversations?q=0&cursor={page['cursor']}")
        titles += [entry["title"] for entry in page["conversations"]]
    assert titles == ["Number 0"]


def test_a_running_chat_is_named_by_its_conversation(api: Api) -> None:
    started = api.call("POST", "/v1/chats", {"message": "Take your time."}).json
    where = f"/v1/conversations/{started['conversation_id']}"
    assert api.get(where)["running_chat_id"] == started["chat_id"]
    (listed,) = api.get("/v1/conversations")["conversations"]
    assert listed["running_chat_id"] == started["chat_id"]
    assert api.call("DELETE", f"/v1/chats/{started['chat_id']}").status == 200
    assert "running_chat_id" not in api.get(where)


def _next_millisecond() -> None:
    """Ids of the same millisecond have no order."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now:
        pass


# ── records ───────────────────────────────────────────────────────────────────────────────────────


def test_both_tracks_show_the_same_queries_whole_and_short(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    chat = ask_with_tools(api, "What is there?", calls=2)
    where = f"/v1/conversations/{chat['conversation_id']}"
    full = pages(api, f"{where}?track=full", "records")
    assert [row["record_id"] for row in full] == ["q1", "q1-a1", "q1-t1", "q1-t2", "q1-r"]
    assert [row["type"] for row in full] == ["message", "message", "tool_call", "tool_call", "message"]
    assert [row["role"] for row in full] == ["user", "assistant", "user", "user", "assistant"]
    call = full[2]
    assert call == {
        "record_id": "q1-t1",
        "type": "tool_call",
        "role": "user",
        "result": LARGE,
        "created_at": call["created_at"],
        "tool_use_id": call["tool_use_id"],
        "tool": "retrieve_documentation",
        "input": {"query": "x"},
        "is_error": False,
        "seconds": call["seconds"],
        "status": "done",
        "turn": 1,
    }
    assert full[4]["stop"] == "complete"

    short = api.get(f"{where}?track=summarised")["records"]
    assert [row["record_id"] for row in short] == ["q1", "q1-t1-sum", "q1-t2-sum", "q1-r-sum"]
    assert [row.get("ref") for row in short] == [None, "q1-t1", "q1-t2", "q1-r"]
    assert all(len(row["content"]) < 2_000 for row in short)
    assert [row["form"] for row in short] == ["whole", "summary", "summary", "summary"]
    for record in (*full, *short[1:]):
        assert api.get(f"{where}/records/{record['record_id']}") == record
    assert api.get(f"{where}/records/q1") == {name: short[0][name] for name in short[0] if name != "form"}
    assert chat["summary"] == short[3]["content"]


def test_a_record_read_by_the_model_is_shown_with_what_it_refers_to(api: Api) -> None:
    first = ask_with_tools(api, "Look it up.")
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-t1", "limit": 50}}
    api.world.model.script.add(
        {"match": "Once more.", "content": [fetch]}, {"match": "Once more.", "text": "Done."}
    )
    second = api.ask("Once more.", conversation_id=first["conversation_id"])
    record = api.get(f"/v1/conversations/{second['conversation_id']}/records/q2-t1")
    assert record["result"].startswith(LARGE[:50])
    assert "content" not in record, "a body is shown once"
    stored = api.world.stores.history.record(api.user, second["conversation_id"], "q2-t1")
    assert stored is not None
    assert stored.content != record["result"], "stored as a reference, not as a copy"


@pytest.mark.parametrize("read", ["q1-t1", "q1-r", "q1-r-sum"])
def test_sources_of_a_record_that_is_read_again_are_sources_of_the_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """A tool result's own; a response's are those of its query."""
    brought = ToolResult("Found.", sources=(Source("Guide", "https://x.test/guide"),))
    monkeypatch.setattr(api.world, "tools", {"retrieve_documentation": lambda _: brought})
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": read}}
    api.world.model.script.add(
        {"match": "Look it up.", "content": [ask]},
        {"match": "Look it up.", "text": "Found. " * 200},
        {"match": "Once more.", "content": [fetch]},
        {"match": "Once more.", "text": "Done."},
    )
    first = api.ask("Look it up.")
    second = api.ask("Once more.", conversation_id=first["conversation_id"])
    assert second["sources"] == [{"title": "Guide", "url": "https://x.test/guide", "record_id": "q2-t1"}]
    assert api.ask("Thanks.", conversation_id=first["conversation_id"])["sources"] == []


def test_a_page_of_records_may_end_within_a_query(api: Api) -> None:
    chat = api.start("Many.")
    _store(api, chat, [("word " * 10, number) for number in range(1, 251)])
    where = f"/v1/conversations/{chat['conversation_id']}?track=full"
    listed = pages(api, where, "records")
    assert [row["record_id"] for row in listed] == ["q1", *(f"q1-a{number}" for number in range(1, 251))]
    assert len(api.get(where)["records"]) == 100


def test_a_page_fits_in_a_functions_response(api: Api) -> None:
    chat = api.start("Large.")
    nasty = "\x01" * 150_000  # six times as long in JSON
    _store(api, chat, [(nasty, number) for number in range(1, 8)])
    where = f"/v1/conversations/{chat['conversation_id']}"
    body = api.get(where)
    assert len(body["records"]) == 1, "the second would make it too large"
    assert [row["content"] for row in pages(api, where, "records")[1:]] == [nasty] * 7


@pytest.mark.parametrize("character", ["x", '"', "\\", "\n", "\x01", "é", "語", "💡"])
def test_a_large_record_is_read_in_pieces_that_fit_in_a_functions_response(api: Api, character: str) -> None:
    """A record of 3.2 MB and more. The response is JSON in JSON, so escapes count."""
    chat = api.start("Huge.")
    leaving = len(json.dumps(json.dumps(character, ensure_ascii=False))) - len(json.dumps('""'))
    text = f"{character * (6_000_000 // leaving)}{'.' * 200_000}the end"
    _store(api, chat, [(text, 1)])
    where = f"/v1/conversations/{chat['conversation_id']}"
    target, content = f"{where}/records/q1-a1", ""
    while target:
        answer = api.module.handler(api.event("GET", target), api.context)
        assert len(json.dumps(answer)) < LAMBDA_ANSWER_BYTES * 0.8
        piece = json.loads(answer["body"])
        content += piece["content"]
        after = piece.get("next_offset")
        target = f"{where}/records/q1-a1?offset={after}" if after else ""
    assert content == text
    shown = pages(api, where, "records")[-1]
    assert shown == api.get(f"{where}/records/q1-a1"), "in a list it is cut and says where to read on"
    assert "next_offset" in shown


def test_a_poll_of_a_chat_reads_only_one_body(api: Api) -> None:
    """The response and the summarised track, however many large results the query has."""
    chat = ask_with_tools(api, "Many results.", calls=6)
    reads: list[str] = []
    stores = api.world.stores
    events = {api.dynamodb: ("GetItem", "BatchGetItem"), stores.bodies.s3: ("GetObject",)}
    for client, names in events.items():
        for name in names:
            client.meta.events.register(
                f"before-parameter-build.*.{name}",
                lambda params, **_: reads.append(str(params)),
                unique_id=name,
            )
    shown = api.get(f"/v1/chats/{chat['chat_id']}")
    for client, names in events.items():
        for name in names:
            client.meta.events.unregister(f"before-parameter-build.*.{name}", unique_id=name)
    assert shown["response"] == "Found. " * 200
    assert len(shown["tool_calls"]) == 6
    bodies = [request for request in reads if "B#" in request or "Bucket" in request]
    assert [request.count("B#") for request in bodies] == [1], "the response's"


def test_a_result_over_two_megabytes_is_stored_cut(api: Api) -> None:
    call = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    api.world.model.script.add(
        {"match": "Too much.", "content": [call]}, {"match": "Too much.", "text": "Much."}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            api.world, "tools", {"retrieve_documentation": lambda running: ToolResult("x" * 3_200_000)}
        )
        chat = api.ask("Too much.")
    stored = api.world.stores.history.record(api.user, chat["conversation_id"], "q1-t1")
    assert stored is not None
    assert len(stored.content) == 2_000_000
    assert stored.content.endswith("(The result had 3,200,000 bytes. Only its beginning is kept.)")


def test_a_tools_sources_are_limited_in_number_and_length(api: Api) -> None:
    """100,000 sources would not fit in the record's item."""
    call = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    api.world.model.script.add(
        {"match": "Sources.", "content": [call]}, {"match": "Sources.", "text": "Many."}
    )
    many = tuple(Source(f"{number} " * 500, f"https://x.test/{number}") for number in range(100_000))
    brought = ToolResult("Found.", sources=(Source("Far", "https://x.test/" + "a" * 2_000), *many))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api.world, "tools", {"retrieve_documentation": lambda running: brought})
        chat = api.ask("Sources.")
    assert chat["status"] == "done"
    assert chat["sources"][0] == {"title": "Far", "record_id": "q1-t1"}
    assert len(chat["sources"]) == 50
    assert max(len(source["title"]) for source in chat["sources"]) == 200


@pytest.mark.parametrize("offset", ["-1", "x", "1.5", "1e3", "9" * 10, "%D9%A3", "+1"])
def test_an_offset_is_a_whole_number(api: Api, offset: str) -> None:
    chat = api.ask()
    answer = api.call("GET", f"/v1/conversations/{chat['conversation_id']}/records/q1?offset={offset}")
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_an_offset_behind_the_end_of_a_record_returns_nothing(api: Api) -> None:
    chat = api.ask()
    record = api.get(f"/v1/conversations/{chat['conversation_id']}/records/q1?offset=7000")
    assert record["content"] == ""
    assert "next_offset" not in record


def _store(api: Api, chat: dict[str, Any], contents: list[tuple[str, int]]) -> None:
    for content, number in contents:
        record = Record(f"q1-a{number}", "message", "assistant", content, "2026-11-21T00:00:00.000Z", number)
        store(
            api.world.stores,
            api.world.stores.history.record_writes(api.user, chat["conversation_id"], record),
        )


@pytest.mark.parametrize("track", ["full", "summarised"])
def test_a_running_query_is_in_both_tracks(api: Api, track: str) -> None:
    chat = api.start("Still running.")
    records = api.get(f"/v1/conversations/{chat['conversation_id']}?track={track}")["records"]
    assert [(record["record_id"], record["content"]) for record in records] == [("q1", "Still running.")]


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_query_without_an_answer_says_so(api: Api, end: str) -> None:
    chat_id = api.start("Never mind.")["chat_id"]
    if end == "cancelled":
        api.call("DELETE", f"/v1/chats/{chat_id}")
    else:
        api.world.abort(api.chat(chat_id))
    conversation = api.chat(chat_id).conversation_id
    for track in ("full", "summarised"):
        records = api.get(f"/v1/conversations/{conversation}?track={track}")["records"]
        assert [(record["record_id"], record["content"]) for record in records] == [
            ("q1", "Never mind."),
            ("q1-r", f"(no answer: {end})"),
        ]


CURSORS = [
    "!",
    "!!!!",
    "abc",
    "MTIz",
    "Y3ZfMDAw",
    "%C3%A9",
    "%ff",
    "x" * 5_000,
    "..",
    "%00",
    "null",
    "MTo",
    "Og",
    "Y3ZfMDFrMDAwMDAwMDAwMDAwMDAwMDAwMDAwMGE",  # cv_01k0000000000000000000000a: a cursor of forks
]


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("target", ["/v1/conversations", "/v1/credits/ledger", "one"])
def test_a_forged_cursor_is_refused(api: Api, target: str, cursor: str) -> None:
    if target == "one":
        target = f"/v1/conversations/{api.start()['conversation_id']}"
    answer = api.call("GET", f"{target}?cursor={cursor}")
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "limit", ["0", "101", "-1", "x", "1.5", "000000001000000", "%D9%A3", "1e1", "9" * 400]
)
@pytest.mark.parametrize("target", ["/v1/conversations", "/v1/credits/ledger"])
def test_a_page_has_1_to_100_entries(api: Api, target: str, limit: str) -> None:
    answer = api.call("GET", f"{target}?limit={limit}")
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "record_id", ["q0", "q2", "q1-t9", "q1-sum", "q01", "Q1", "q1%20", "q1%23z", "..", "q1-r-sum-sum"]
)
def test_a_record_that_is_not_there_is_not_found(api: Api, record_id: str) -> None:
    chat = api.ask()
    answer = api.call("GET", f"/v1/conversations/{chat['conversation_id']}/records/{record_id}")
    assert (answer.status, answer.code) == (404, "not_found")


def test_there_are_two_tracks(api: Api) -> None:
    chat = api.start()
    answer = api.call("GET", f"/v1/conversations/{chat['conversation_id']}?track=other")
    assert (answer.status, answer.code) == (400, "invalid_request")


# ── deletion ──────────────────────────────────────────────────────────────────────────────────────


def left_of(api: Api, chat: dict[str, Any]) -> list[dict[str, Any]]:
    """What is still stored of a conversation in the tables and the bucket, but for the ledger, idempotency keys
    and the list of deletions."""
    names = (chat["conversation_id"], chat["chat_id"])
    stored = [item for table in ("history", "chats", "cache") for item in items(api.world, table)]
    keys = [{"object": key} for key in objects(api.world)]
    remaining = [item for item in (*stored, *keys) if any(name in str(item) for name in names)]
    return [item for item in remaining if item.get("pk") != {"S": "DELETIONS"}]


def test_deleted_means_every_record_event_and_object_is_gone(api: Api) -> None:
    kept = ask_with_tools(api, "Keep this.")
    kept_items = left_of(api, kept)
    chat = ask_with_tools(api, "Forget this.")
    api.ask("And this.", conversation_id=chat["conversation_id"])
    assert any("object" in item for item in left_of(api, chat)), "the large result is in the bucket"
    where = f"/v1/conversations/{chat['conversation_id']}"
    answer = api.call("DELETE", where)
    assert (answer.status, answer.text) == (204, "")
    assert left_of(api, chat) == []
    assert left_of(api, kept) == kept_items
    for method, target in [
        ("GET", where),
        ("DELETE", where),
        ("GET", f"{where}/records/q1"),
        ("GET", f"/v1/chats/{chat['chat_id']}"),
    ]:
        assert api.call(method, target).status == 404
    assert api.call("PATCH", where, {"title": "x"}).status == 404
    assert (
        api.call("POST", "/v1/chats", {"message": "x", "conversation_id": chat["conversation_id"]}).status
        == 404
    )
    assert [entry["conversation_id"] for entry in api.get("/v1/conversations")["conversations"]] == [
        kept["conversation_id"]
    ]
    assert api.get("/v1/credits")["daily"]["used"] == 35, "credits used are not returned"


def test_a_conversation_in_which_a_chat_runs_is_not_deleted(api: Api) -> None:
    chat = api.start()
    where = f"/v1/conversations/{chat['conversation_id']}"
    answer = api.call("DELETE", where)
    assert (answer.status, answer.code) == (409, "conversation_busy")
    api.run(chat["chat_id"])
    assert api.get(chat["url"])["status"] == "done"
    assert api.call("DELETE", where).status == 204


def test_a_dead_chat_does_not_keep_its_conversation(api: Api) -> None:
    chat = api.start()
    api.world.clock.now += 901
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
    assert api.get("/v1/credits")["held"] == 0


def test_an_answered_chat_is_closed_before_it_is_deleted(api: Api) -> None:
    chat = api.start()
    api.world.answer(api.chat(chat["chat_id"]))
    running = api.chat(chat["chat_id"])
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
    api.world.summarise(running)
    assert left_of(api, chat) == []


def _dies_at(name: str, api: Api, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The deletion's process dies at this request."""
    client = api.dynamodb if name != "delete_objects" else api.world.stores.bodies.s3

    class Died(BaseException):
        pass

    def die(**_: Any) -> None:
        raise Died

    def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(client, name, die)
            with pytest.raises(Died):
                api.call(
                    "DELETE",
                    f"/v1/conversations/{api.get('/v1/conversations')['conversations'][0]['conversation_id']}",
                )

    return run


@pytest.mark.parametrize("request_name", ["batch_write_item", "delete_objects", "delete_item"])
def test_an_interrupted_deletion_can_be_finished(
    api: Api, request_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ask_with_tools(api, f"Half {request_name}.")
    _dies_at(request_name, api, monkeypatch)()
    where = f"/v1/conversations/{chat['conversation_id']}"
    assert api.call("GET", where).status == 404
    assert api.get("/v1/conversations") == {"conversations": []}
    assert (
        api.call("POST", "/v1/chats", {"message": "x", "conversation_id": chat["conversation_id"]}).status
        == 404
    )
    assert api.call("DELETE", where).status == 204
    assert left_of(api, chat) == []


def test_a_cancelled_chats_running_tool_writes_nothing_into_a_deleted_conversation(api: Api) -> None:
    """A tool is running when its chat is cancelled and the conversation deleted; then it returns."""
    call = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    api.world.model.script.add({"match": "Slow.", "content": [call]})
    started = api.start("Slow.")
    chat: Chat = api.chat(started["chat_id"])
    api.world.turn(chat, 0)
    before = {"history": items(api.world, "history")}

    def deleted_meanwhile(running: Running) -> ToolResult:
        assert api.call("DELETE", f"/v1/chats/{chat.chat_id}").status == 200
        assert api.call("DELETE", f"/v1/conversations/{chat.conversation_id}").status == 204
        return ToolResult("small")

    original = api.world.tools
    api.world.tools = {"retrieve_documentation": deleted_meanwhile}
    try:
        api.world.tool(chat, 1, "q1-t1")
    finally:
        api.world.tools = original
    assert before["history"]
    pk = partition(api.user, chat.conversation_id)
    assert [item for item in items(api.world, "history") if item["pk"]["S"] == pk] == []
    remaining = [item for item in items(api.world, "chats") if item["pk"]["S"] == chat.pk]
    assert [(item["closed"]["BOOL"], item["data"]["S"]) for item in remaining] == [(True, "[]")]
    assert int(remaining[0]["ttl"]["N"]) <= chat.deadline + 60
    assert list(read_events(api.world.stores.chats.client, "chats", chat.pk)) == []


def test_the_profiles_are_listed(api: Api) -> None:
    listed = {profile["name"]: profile for profile in api.call("GET", "/v1/tools").json["profiles"]}
    of_plugins = {path.stem for path in FOLDER.glob("*/profiles/*.json")}
    assert set(listed) == {"assistant", "courses", "graph", "sessions"} | of_plugins
    assert listed["assistant"] == {
        "name": "assistant",
        "model": "claude-test",
        "description": "Answers with documentation, GitHub and the whole memory of the conversation.",
        "max_turns": 15,
        "tools": ["retrieve_full_context", "search_conversation", "retrieve_documentation"],
        "history": {"policy": "dual_track"},
        "suggestions": [
            "How do I set up OAuth for the X Ads API?",
            "How do I model one-to-many relations in a DynamoDB single table?",
            "What does dualtrack send to the model, and what does it keep?",
        ],
    }


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("é" * 201, "title: Text should have at most 200 characters, not 201"),
        ("", "title: Text should have at least 1 character"),
    ],
)
def test_messages_about_length_say_characters(api: Api, title: str, said: str) -> None:
    refused = api.call("POST", "/v1/conversations", {"title": title})
    assert refused.status == 400
    assert said in refused.json["error"]["message"]
