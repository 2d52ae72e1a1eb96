"""Folds from query to query: what is sent, what is stored, late attempts (CONTRACT 6, DESIGN 2.16)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import find_record, list_records
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.fold_ahead import fold_ahead
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.past import fix_past, read_past
from dualtrack.errors import ChatClosed
from dualtrack.memory.records import QueryTrack, TrackBlock
from dualtrack.profiles import all_profiles
from dualtrack.storage.chats import Chat, Pin
from dualtrack.tools.full_context import read_reference

from tests.drivers.invariants import chat_faults
from tests.drivers.world import World, call_for_summaries, make_world, store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.memory.digests import Digest

ANSWER = "This is the answer, with facts such as 42 and DynamoDB. " * 20
AT = "2026-11-21T00:00:00.000Z"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A budget of 600 tokens for the past; every answer is long."""
    small = replace(all_profiles()["assistant"], track_tokens=600)
    monkeypatch.setitem(all_profiles(), "assistant", small)
    with make_world() as new_world:
        new_world.stores.ledger.grant("ann", "g", 100_000, "test", new_world.clock())
        answer_all(new_world)
        yield new_world


def answer_all(world: World) -> None:
    """The model answers every query; summaries and digests are the offline model's."""
    world.model.script.add({"match": "turn", "text": ANSWER, "always": True})


def shrink_the_budget() -> None:
    """So that the conversation exceeds it; the fixture restores the profile."""
    all_profiles()["assistant"] = replace(all_profiles()["assistant"], track_tokens=250)


def converse(world: World, queries: int, conversation_id: str = "") -> Chat:
    """Ask this many queries; the last one's chat."""
    chats: list[Chat] = []
    for number in range(queries):
        chats.append(world.ask(f"Question {number}? " + "Words. " * 20, conversation_id=conversation_id))
        conversation_id = chats[-1].conversation_id
    return chats[-1]


def sent(world: World) -> list[list[str]]:
    """The texts of every turn's request, in order."""
    turns = [request.body for request in world.model.requests if request.body.get("stream")]
    return [[block["text"] for message in body["messages"] for block in message["content"]] for body in turns]


def read(record_id: str) -> dict[str, Any]:
    """The model's call for a record."""
    return {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": record_id}}


def newest(world: World, chat: Chat) -> tuple[Digest | None, Digest | None]:
    """The digest in force and the waiting one."""
    return world.stores.digests.newest(chat.user, chat.conversation_id)


def test_a_conversation_over_its_budget_continues_after_a_digest(world: World) -> None:
    """One digest, first, in the user's role; between folds the prefix is unchanged, and every record can be read."""
    chat = converse(world, 14)
    requests = sent(world)
    digests = [[text for text in texts if text.startswith("[ID:d")] for texts in requests]
    assert max(map(len, digests)) == 1
    assert all(texts[0] == digest[0] for texts, digest in zip(requests, digests, strict=True) if digest)
    numbers = [int(digest[0][5:].split(",")[0]) if digest else 0 for digest in digests]
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 2
    for before, after, folded, later in zip(requests, requests[1:], numbers, numbers[1:], strict=False):
        assert folded != later or after[: len(before)] == before
    for body in (request.body for request in world.model.requests if request.body.get("stream")):
        assert body["messages"][0]["role"] == "user"
    for number in range(1, 15):
        record = world.stores.history.record("ann", chat.conversation_id, f"q{number}-r")
        assert record is not None
        assert record.content == ANSWER
        assert world.stores.history.track("ann", chat.conversation_id, number) is not None
    assert chat_faults(world.stores, chat) == []


def test_a_query_that_must_fold_does_so_without_a_model(world: World) -> None:
    world.model.script.add({"match": "summary", "status": 400, "always": True})
    chat = converse(world, 9)
    in_force, waiting = newest(world, chat)
    assert waiting is None
    assert in_force is not None
    assert in_force.content.startswith(f"q{in_force.through}: Question {in_force.through - 1}? Words.")


def test_a_waiting_digest_is_used_when_the_cache_is_cold(world: World) -> None:
    chat = converse(world, 1)
    while newest(world, chat)[1] is None:
        chat = converse(world, 1, chat.conversation_id)
    before = newest(world, chat)
    waiting = before[1]
    assert waiting is not None
    world.clock.now += 301
    converse(world, 1, chat.conversation_id)
    assert newest(world, chat)[0] == waiting
    assert sent(world)[-1][0] == waiting.text


def test_a_chat_sends_its_pinned_digest_to_its_end(world: World) -> None:
    """Whatever is written in the meantime; a pin without a digest sends every track."""
    first = converse(world, 4)
    chat = world.start("And now?", conversation_id=first.conversation_id)
    text = json.dumps({"catalogue": "", "digest": 0, "agent": ""})
    key: Any = {"pk": {"S": chat.pk}, "sk": {"S": "STATE"}}
    world.stores.chats.client.update_item(
        TableName="chats", Key=key, UpdateExpression="SET pin = :pin",
        ExpressionAttributeValues={":pin": {"S": text}},
    )  # fmt: skip
    assert world.load(chat).pin == Pin()
    world.answer(chat)
    assert sent(world)[-1][0].startswith("[ID:q1] Question 0?")


def test_two_concurrent_first_attempts_send_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt that pins second uses what the first has written."""
    call_for_summaries(monkeypatch)
    first = converse(world, 3)
    shrink_the_budget()
    chat = world.start("Again?", conversation_id=first.conversation_id)
    client: Any = world.stores.chats.client
    folds: list[bool] = []

    def fold_before(params: Any, **_: Any) -> None:
        """Another attempt folds just before this one does."""
        if "taken" in str(params) and not folds:
            folds.append(True)
            world.turn(chat, 0)

    client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", fold_before)
    world.answer(chat)
    world.summarise(chat)
    assert folds
    assert chat_faults(world.stores, world.load(chat)) == []
    pin = world.load(chat).pin
    assert pin is not None
    assert pin.digest == 1
    requests = [texts for texts in sent(world) if texts[-1] == "[ID:q4] Again?"]
    assert len({json.dumps(texts) for texts in requests}) == 1
    assert requests[0][0].startswith("[ID:d1, ref:q1..q")


def test_a_late_digest_is_not_written_to_a_deleted_conversation(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_for_summaries(monkeypatch)
    chat = converse(world, 3)
    shrink_the_budget()
    client: Any = world.stores.chats.client
    deleted: list[bool] = []

    def delete_first(params: Any, **_: Any) -> None:
        if "D#" in str(params) and not deleted:
            deleted.append(True)
            delete_conversation(world.stores, "ann", chat.conversation_id)

    client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", delete_first)
    fold_ahead(world.stores, chat, all_profiles()["assistant"], world.claude, world.summaries)
    assert deleted
    pages = client.get_paginator("scan").paginate(TableName="history")
    remaining = [
        item["sk"]["S"] for page in pages for item in page["Items"] if item["pk"]["S"] != "DELETIONS"
    ]
    assert remaining == []


def test_a_chat_that_has_ended_puts_no_digest_in_force(world: World) -> None:
    """A late attempt of a cancelled chat folds nothing."""
    world.model.script.add({"match": "summary", "status": 400, "always": True})
    first = converse(world, 6)
    shrink_the_budget()
    chat = world.start("Again?", conversation_id=first.conversation_id)
    world.abort(chat)
    late = replace(chat, status="running")
    past = read_past(world.stores, late, all_profiles()["assistant"], is_fixed=False)
    with pytest.raises(ChatClosed):
        fix_past(world.stores, late, past, all_profiles()["assistant"], Pin())
    assert newest(world, chat)[0] == past.digest


@pytest.mark.parametrize("is_mechanical", [False, True], ids=["by the model", "without a model"])
def test_standing_instructions_come_first_in_every_digest(world: World, is_mechanical: bool) -> None:
    """In the user's words, also in the record that the API shows, and in a fork."""
    if is_mechanical:
        world.model.script.add({"match": "summary", "status": 400, "always": True})
    first = world.ask("Always answer in French. What is DynamoDB?")
    chat = converse(world, 9, first.conversation_id)
    folded = [texts[0] for texts in sent(world) if texts[0].startswith("[ID:d")]
    assert len({text.split(",")[0] for text in folded}) > 1
    assert all("] The user's standing instructions, word for word" in text for text in folded)
    assert all(': q1: "Always answer in French.". ' in text for text in folded)
    conversation = world.stores.conversations.find("ann", chat.conversation_id)
    assert conversation is not None
    shown = list_records(world.stores, conversation, "summarised", "").items[0]
    assert shown["content"] == folded[-1].split("] ", 1)[1]
    fork = fork_conversation(world.stores, "ann", chat.conversation_id, chat.query)
    world.ask("And now?", conversation_id=fork.conversation_id)
    assert 'q1: "Always answer in French."' in sent(world)[-1][0]


# ── read back ─────────────────────────────────────────────────────────────────────────────────────


def test_a_digest_is_a_record_and_its_summaries_are_read_in_pieces(world: World) -> None:
    """The newest first, after the id of the digest before."""
    chat = converse(world, 14)
    stores, conversation_id = world.stores, chat.conversation_id
    in_force, _ = newest(world, chat)
    assert in_force is not None
    conversation = stores.conversations.find("ann", conversation_id)
    assert conversation is not None
    own = f"d{in_force.number}"
    shown = find_record(stores, conversation, own, 0)
    assert shown == {
        "record_id": own, "ref": in_force.ref, "type": "digest", "role": "user",
        "content": in_force.said, "created_at": in_force.created_at,
    }  # fmt: skip
    listed = list_records(stores, conversation, "summarised", "")
    assert listed.items[0] == shown
    assert [record["record_id"] for record in listed.items[1:3]] == ["q1", "q1-r-sum"]
    assert "digest" not in {record["type"] for record in list_records(stores, conversation, "full", "").items}
    tracks = reversed(stores.history.tracks("ann", conversation_id, in_force.through))
    whole = "".join(f"{block.record_id}: {block.content}\n" for track in tracks for block in track.blocks)
    assert in_force.number > 1
    before = stores.digests.find("ann", conversation_id, in_force.number - 1)
    assert before is not None
    whole = f"(Newest first. The digest before is d{before.number}, ref:{before.ref}.)\n{whole}"
    pieces, offset = "", 0
    while offset < len(whole):
        text = read_reference(stores, "ann", conversation_id, {"id": own, "offset": offset, "limit": 300})
        pieces += text.split("\n\n(Characters ")[0] if "Read on with offset" in text else text
        offset += 300
    assert pieces == whole


def test_the_model_reads_the_summaries_behind_a_digest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    chat = converse(world, 8)
    first = world.stores.digests.find("ann", chat.conversation_id, 1)
    assert first is not None
    last = first.through
    world.model.script.clear()
    world.model.script.add(
        {"match": "turn", "content": [read("d1")]},
        {"match": "turn", "text": "Read."},
        {"match": "turn", "content": [read("q9-t1")]},
        {"match": "turn", "text": "Read again."},
    )
    for question in ("What was it?", "Once more?"):
        chat = world.ask(question, conversation_id=chat.conversation_id)
        body = [request.body for request in world.model.requests if request.body.get("stream")][-1]
        result = body["messages"][-1]["content"][0]["content"][0]["text"]
        assert result.split("] ", 1)[1].startswith(f"q{last}: Question {last - 1}? Words.")
        assert result.index(f"\nq{last}-r-sum: ") < result.index("\nq1: Question 0?")


# ── at any length ─────────────────────────────────────────────────────────────────────────────────


def test_a_chat_starts_with_as_many_reads_at_a_thousand_queries_as_at_fifty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first new query of a long conversation reads all of it once, and folds; later queries do not."""
    monkeypatch.setitem(
        all_profiles(), "assistant", replace(all_profiles()["assistant"], track_tokens=24_000)
    )
    with make_world() as world:
        world.stores.ledger.grant("ann", "g", 100_000, "test", world.clock())
        answer_all(world)
        counts = {length: _counts_of_three_queries(world, length) for length in (50, 1_000)}
    short, long = counts[50], counts[1_000]
    assert long[0]["items"] > 1_000
    assert long[0]["Query"] <= short[0]["Query"] + 2
    for few, many in zip(short[1:], long[1:], strict=True):
        assert many["Query"] == few["Query"]
        assert many["items"] <= few["items"] + 30


def _counts_of_three_queries(world: World, length: int) -> list[Counter[str]]:
    """DynamoDB requests and items read in each of three queries after `length` queries."""
    first = world.ask("Hello?")
    for number in range(2, length + 1):
        blocks = (
            TrackBlock(f"q{number}", "user", f"Question {number}? " + "Words. " * 20, AT),
            TrackBlock(f"q{number}-r-sum", "assistant", "Answered with words. " * 20, AT, f"q{number}-r"),
        )
        track = QueryTrack(number, blocks)
        store(world.stores, world.stores.history.track_writes("ann", first.conversation_id, track))
    key: Any = {"pk": {"S": "USER#ann"}, "sk": {"S": f"CONV#{first.conversation_id}"}}
    world.stores.chats.client.update_item(
        TableName="history", Key=key, UpdateExpression="SET queries = :n",
        ExpressionAttributeValues={":n": {"N": str(length)}},
    )  # fmt: skip
    counts: Counter[str] = Counter()

    def count(parsed: Any, model: Any, **_: Any) -> None:
        counts[model.name] += 1
        counts["items"] += len(parsed.get("Items", ())) + ("Item" in parsed)
        counts["items"] += sum(len(items) for items in parsed.get("Responses", {}).values())

    client: Any = world.stores.chats.client
    client.meta.events.register("after-call.dynamodb", count)
    totals = []
    for _ in range(3):
        counts.clear()
        chat = world.start("And now?", conversation_id=first.conversation_id)
        assert world.answer(chat) == "answered"
        totals.append(Counter(counts))
        world.summarise(chat)
    client.meta.events.unregister("after-call.dynamodb", count)
    return totals
