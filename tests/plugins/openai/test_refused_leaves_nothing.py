"""What a refused request leaves behind: nothing, whatever it brings and whatever speaks against it. And what is stored
of a resent history once its chat is admitted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.api.end_users import end_user_id
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.erase_user import Retention, begin_erasure
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.plugins.openai.imports import IMPORTED_BYTES, IMPORTED_RECORDS
from dualtrack.storage.dynamo import from_wire
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.drivers.invariants import erasure_faults
from tests.plugins.openai.door import Door, answers, said, text_of, user

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COUNTERS: Final = ("RATE#", "LEASE#", "KEY#")
"""Counts of requests, and open answers: of every request, whatever becomes of it."""
SECRET: Final = "heron"
PICTURE: Final = "data:text/plain;base64," + base64.b64encode(b"Lines. " * 1_000).decode()
SCHEMA: Final = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
TOOL: Final = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


def stored(door: Door) -> dict[tuple[str, ...], Any]:
    """Every item and every object."""
    stores, found = door.world.stores, dict[tuple[str, ...], Any]()
    for table in (stores.history.table, stores.chats.table, stores.ledger.table, stores.cache.table):
        for page in stores.chats.client.get_paginator("scan").paginate(TableName=table):
            for item in map(from_wire, page["Items"]):
                if not item["pk"].startswith(COUNTERS) and not item["sk"].startswith(COUNTERS):
                    found[table, item["pk"], item["sk"]] = item
    pages = stores.bodies.s3.get_paginator("list_objects_v2").paginate(Bucket=stores.bodies.bucket)
    return found | {
        ("object", entry["Key"]): entry["Size"] for page in pages for entry in page.get("Contents", [])
    }


def history(exchanges: int, characters: int = 5_000, word: str = SECRET) -> list[dict[str, Any]]:
    """A history that is not ours, with a text of its own in each message."""
    return said(*(f"{word} {n}. " + f"{n:05d} words " * (characters // 12) for n in range(2 * exchanges)))


def full(message: str = "And now?") -> dict[str, Any]:
    """A request with everything that a request may bring."""
    parts = [
        {"type": "text", "text": message},
        {"type": "file", "file": {"filename": "a.txt", "file_data": PICTURE}},
    ]
    return {
        "messages": [{"role": "system", "content": "Be brief."}, *history(30), user(parts)],
        "tools": [TOOL],
        "response_format": {"type": "json_schema", "json_schema": {"name": "said", "schema": SCHEMA}},
    }


def of_the_key(**caps: float) -> Callable[[Door, str], str]:
    def make(door: Door, name: str) -> str:
        key = door.key(name)
        (key_id,) = door.world.stores.ledger.load(name).keys
        door.world.stores.ledger.change_caps(name, key_id, caps, door.world.clock())
        return key

    return make


def without_credits(door: Door, name: str) -> str:
    account, now = door.world.stores.ledger.load(name), door.world.clock()
    held: Any = account.hold("ch_before", 48, now)
    door.world.stores.ledger.commit(account, held)
    return door.key(name)


def revoked(door: Door, name: str) -> str:
    """In the account, whose key's item is deleted a moment later."""
    key = door.key(name)
    (key_id,) = door.world.stores.ledger.load(name).keys
    door.world.stores.ledger.revoke_key(name, key_id, door.world.clock())
    return key


KEY: Final[Callable[[Door, str], str]] = of_the_key()
REFUSALS: Final[dict[str, tuple[Callable[[Door, str], str], dict[str, Any], dict[str, str], int]]] = {
    "dollars of the day": (of_the_key(dollars_day=0.001), {}, {}, 429),
    "dollars in all": (of_the_key(dollars_total=0.001), {}, {}, 429),
    "credits of the key": (of_the_key(credits_day=4), {}, {}, 429),
    "credits of the account": (without_credits, {}, {}, 429),
    "a revoked key": (revoked, {}, {}, 401),
    "a tool of ours": (
        KEY,
        {"tools": [{"type": "function", "function": {"name": "retrieve_full_context"}}]},
        {},
        400,
    ),
    "a schema that is none": (
        KEY,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": 5}}}},
        {},
        400,
    ),
    "an unknown model": (KEY, {"model": "gpt-9"}, {}, 404),
    "an unknown conversation": (KEY, {}, {"X-Dualtrack-Conversation": "cv_" + "0" * 26}, 404),
}


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_refused_request_leaves_nothing(door: Door, why: str, path: str) -> None:
    make, changed, headers, status = REFUSALS[why]
    key = make(door, f"poor {why} {path}")
    before = stored(door)
    for _ in range(3):
        body = {"model": "assistant", **full(), **changed}
        if path == "responses":
            body = as_response(body)
        response = door.send(key, body, headers, path)
        assert response.status_code == status, response.text
        assert set(response.json()) == {"error"}
        assert stored(door) == before


def as_response(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request for a response."""
    format_ = body["response_format"]["json_schema"]
    tools = [{"type": "function", **tool["function"]} for tool in body["tools"]]
    parts = [{"type": "input_text", "text": "And now?"}, {"type": "input_file", "file_data": PICTURE}]
    return {
        "model": body["model"],
        "input": [*history(30), {"role": "user", "content": parts}],
        "tools": tools,
        "text": {"format": {"type": "json_schema", **format_}},
    }


def test_a_chat_that_runs_or_waits_is_untouched_by_a_refused_request(door: Door) -> None:
    """The chat that the request would cancel, or fork behind, stays as it is if it cannot be paid."""
    name = "pat"
    key = door.key(name)
    content = ({"type": "tool_use", "name": "look_up", "input": {}},)
    door.world.model.script.add(ScriptedResponse(match="turn", content=content))
    asked = door.post(key, [user("Look.")], tools=[TOOL]).json()["choices"][0]
    call = asked["message"]["tool_calls"][0]
    (chat_id,) = [pk for _, pk, sk in stored(door) if pk.startswith(f"CHAT#{name}#") and sk == "STATE"]
    (key_id,) = door.world.stores.ledger.load(name).keys
    door.world.stores.ledger.change_caps(name, key_id, {"credits_day": 4}, door.world.clock())
    before = stored(door)
    result = {"role": "tool", "tool_call_id": call["id"], "content": "It is a bird."}
    messages = [user("Look."), {"role": "assistant", "tool_calls": [call]}, result, user("And?")]
    assert door.post(key, messages).status_code == 429
    assert stored(door) == before
    assert ("chats", chat_id, "STATE") in before


def test_the_same_history_twice_is_one(door: Door) -> None:
    """Asked something else, or the same again: the second shares what the first has imported."""
    key, name = door.key("gus"), "gus"
    answers(door, "One.", "Two.", "Three.")
    past = history(12)
    door.post(key, [*past, user("First?")])
    held = {key: item for key, item in stored(door).items() if SECRET in str(item) or "B#" in key[-1]}
    door.machine.wait()
    for question in ("Second?", "First?"):
        assert door.post(key, [*past, user(question)]).status_code == 200
    door.machine.wait()
    first, *forks = reversed(door.conversations(name))
    assert [fork.forked_from for fork in forks] == [first.conversation_id] * 2
    records = [key for key in stored(door) if f"CONV#{name}#" in key[1] and key[-1].startswith("F#")]
    assert len(records) == 24 + 3 * 2
    assert held.keys() <= stored(door).keys()


def test_an_edited_message_of_an_imported_history_shares_what_is_before_it(door: Door) -> None:
    key, name = door.key("eve"), "eve"
    answers(door, "One.", "Two.")
    past = history(12)
    door.post(key, [*past, user("First?")])
    door.post(key, [*past[:-2], user("Edited?")])
    fork, first = door.conversations(name)
    assert (fork.forked_from, fork.queries) == (first.conversation_id, 12)


def test_an_import_is_bounded(door: Door) -> None:
    """5 MB, and hundreds of calls: what is written costs no more than a chat of ours."""
    key, name = door.key("max"), "max"
    answers(door, "Went on.", "Went on.")
    assert door.post(key, [*history(60, 40_000), user("First?")]).status_code == 200
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
        for n in range(500)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"{n} " * 20_000} for n in range(500)]
    many = [user("Go."), {"role": "assistant", "tool_calls": calls}, *results[:40], *said("Done.")[1:]]
    assert door.post(key, [*many, {"role": "assistant", "content": "Done."}, user("And?")]).status_code == 200
    door.machine.wait()
    for conversation in door.conversations(name):
        items = [item for key, item in stored(door).items() if conversation.conversation_id in key[1]]
        imported = [item for item in items if item["sk"].startswith(("F#", "B#"))]
        assert 2 < len(imported) <= 2 * IMPORTED_RECORDS
        assert sum(len(str(item.get("z", item.get("text", "")))) for item in imported) < 4 * IMPORTED_BYTES
    newest = door.world.stores.history.record(name, door.conversations(name)[1].conversation_id, "q1-r")
    assert newest is not None
    assert len(newest.content) <= IMPORTED_BYTES


def test_a_retry_that_overtakes_its_request_is_the_same_chat(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is still importing when its client tries again."""
    key, name = door.key("ona"), "ona"
    answers(door, "Once.")
    messages = [*history(3), user("First?")]
    overtaken: list[str] = []

    def late(*arguments: Any) -> None:
        monkeypatch.undo()
        overtaken.append(text_of(door.post(key, messages, {"x-stainless-retry-count": "1"})))
        write(*arguments)

    from dualtrack.chat import start_chat

    write = start_chat.import_records
    monkeypatch.setattr(start_chat, "import_records", late)
    assert [text_of(door.post(key, messages)), *overtaken] == ["Once.", "Once."]
    assert len(door.conversations(name)) == 1
    assert door.world.stores.ledger.load(name).used_day == 5


def test_an_end_user_of_this_door_is_erased_with_what_was_imported(door: Door) -> None:
    key, owner = door.key("olga", for_end_users=True), "olga"
    answers(door, "Yes.")
    person = end_user_id(owner, "pia")
    assert (
        door.post(key, [*history(5, word="egret"), user("First?")], {"X-Dualtrack-User": "pia"}).status_code
        == 200
    )
    door.machine.wait()
    stores = door.world.stores
    assert stores.keys.has_end_user(owner, person)
    begin_erasure(stores, person, Retention(30, 1), owner)
    executions: Any = door.world.executions
    today = door.world.clock.now
    for _ in range(1 + (WRITERS_SECONDS + 60) // 300 + 1):
        sweep_deletions(stores, executions, Nobody(), 120)
        door.world.clock.now += 300
    door.world.clock.now = today  # the door's own clock has not moved
    assert erasure_faults(stores, person, "egret") == []


class Nobody:
    """The user pool, in which end users are not."""

    def delete(self, user: str) -> bool:
        return False
