"""A follow-up before the summaries: who makes the track final, and what both chats see of it (CONTRACT 6)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import list_records
from dualtrack.errors import ChatClosed
from dualtrack.memory.records import QueryTrack, TrackBlock
from dualtrack.storage.bodies import StoredBody
from dualtrack.storage.dynamo import query as items_of
from dualtrack.storage.past_writes import write_past
from dualtrack.tool_values import ToolResult

from tests.drivers.invariants import chat_faults
from tests.drivers.world import World, call_for_summaries, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

ANSWER = "The port is 8080, and it is set in the configuration. " * 20
FOUND = "Section 4 says that the port is 8080. " * 40


@pytest.fixture
def world() -> Iterator[World]:
    with make_world(retrieve_documentation=lambda _: ToolResult(FOUND)) as new_world:
        yield new_world


def answered(world: World, tools: int = 1, *, notes: bool = False) -> Chat:
    """A chat that is answered but not summarised."""
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
    if tools:
        world.model.script.add({"match": "turn", "content": [ask] * tools})
    world.model.script.add({"match": "turn", "text": ANSWER, "notes": notes})
    chat = world.start("Which port?")
    assert world.answer(chat) == "answered"
    return chat


def follow_up(world: World, chat: Chat) -> tuple[Chat, list[dict[str, Any]]]:
    """The next query, answered, and the messages of its model call."""
    world.model.reset()
    following = world.start("And the host?", conversation_id=chat.conversation_id)
    assert world.answer(following) == "answered"
    sent = next(request.body["messages"] for request in world.model.requests if request.body.get("stream"))
    return following, [*sent]


def track_of_chat(world: World, chat: Chat) -> QueryTrack:
    track = world.stores.history.track(chat.user, chat.conversation_id, chat.query)
    assert track is not None
    return track


def test_a_follow_up_makes_the_track_final_and_the_first_chat_uses_it(world: World) -> None:
    first = answered(world)
    before = world.clock.now
    _, sent = follow_up(world, first)
    assert world.clock.now - before < 1.5
    stored = track_of_chat(world, first)
    assert [block["text"] for message in sent[:2] for block in message["content"]] == [
        block.text for block in stored.blocks
    ]
    assert stored.blocks[1].content.startswith(
        '(data from retrieve_documentation) {"query":"port"}: Section 4'
    )
    assert stored.blocks[-1].content.startswith("The port is 8080,")
    world.model.reset()
    world.summarise(first)
    assert [request.body for request in world.model.requests] == []
    closed = world.load(first)
    assert closed.status == "done"
    assert chat_faults(world.stores, closed) == []
    assert world.stores.log(first).events()[-1].data["summary"] == stored.blocks[-1].content
    assert track_of_chat(world, first) == stored


def test_summaries_that_arrive_while_it_waits_are_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    first = answered(world)
    slept: list[float] = []

    def summarised_meanwhile(seconds: float) -> None:
        slept.append(seconds)
        world.clock.now += seconds
        if len(slept) == 2:
            world.summarise(first)

    world.clock.sleep = summarised_meanwhile  # type: ignore[method-assign]
    _, sent = follow_up(world, first)
    assert len(slept) == 2
    assert sent[1]["content"][0]["text"].startswith("[ID:q1-r-sum, ref:q1-r, 1 KB] ")
    assert "…" not in sent[1]["content"][0]["text"]
    assert world.load(first).status == "done"


def test_notes_count_although_summaries_are_called_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile may change between two queries: how one becomes short was decided as it began."""
    with make_world(retrieve_documentation=lambda _: ToolResult(FOUND * 30)) as world:
        first = answered(world, notes=True)
        call_for_summaries(monkeypatch)
        world.clock.sleep = lambda _: pytest.fail("nothing to wait for")  # type: ignore[method-assign]
        follow_up(world, first)
        assert "note" in [block.form for block in track_of_chat(world, first).blocks]


def test_summaries_are_waited_for_although_notes_come_with_answers_now(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        call_for_summaries(patch)
        first = answered(world)
    slept: list[float] = []

    def summarised_meanwhile(seconds: float) -> None:
        slept.append(seconds)
        world.summarise(first)

    world.clock.sleep = summarised_meanwhile  # type: ignore[method-assign]
    follow_up(world, first)
    assert slept
    assert "summary" in [block.form for block in track_of_chat(world, first).blocks]


@pytest.mark.parametrize("closer", ["summarise", "abort"])
def test_a_closing_chat_uses_a_track_that_was_stored_first(
    world: World, closer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follow-up stores its track after the summariser has read that there is none, before it commits."""
    call_for_summaries(monkeypatch)
    first = answered(world)
    client: Any = world.stores.chats.client
    came: list[Chat] = []

    def follow_up_before_the_commit(**_: Any) -> None:
        if not came:
            came.append(first)
            came.append(follow_up(world, first)[0])

    client.meta.events.register("before-call.dynamodb.TransactWriteItems", follow_up_before_the_commit)
    world.summarise(first) if closer == "summarise" else world.abort(first)
    assert len(came) == 2
    closed = world.load(first)
    assert closed.status == "done"
    assert chat_faults(world.stores, closed) == []
    said = world.stores.log(first).events()[-1].data
    assert said["summary"] == track_of_chat(world, first).blocks[-1].content
    assert said["summary"].endswith("…")


def test_a_track_that_is_not_small_is_read_whole(world: World) -> None:
    """Its text is a body of its own."""
    first = answered(world, tools=12)
    _, sent = follow_up(world, first)
    assert len(json.dumps(sent[0])) > 4_000
    assert len(track_of_chat(world, first).blocks) == 14


def test_no_track_comes_into_a_conversation_that_the_chat_does_not_hold(world: World) -> None:
    """The conversation of a follow-up that has ended may be deleted by now."""
    first = answered(world)
    chat = world.start("And the host?", conversation_id=first.conversation_id)
    world.abort(chat)
    track = QueryTrack(1, (TrackBlock("q1", "user", "Which port? " * 200, "now"),))
    writes = world.stores.history.track_writes(chat.user, chat.conversation_id, track)
    key = f"CONV#{chat.user}#{chat.conversation_id}"
    before = list(items_of(world.stores.chats.client, "history", key))
    with pytest.raises(ChatClosed):
        write_past(world.stores, chat, writes)
    assert list(items_of(world.stores.chats.client, "history", key)) == before


def test_an_object_is_not_written_for_a_chat_that_has_ended(world: World) -> None:
    """No transaction protects it, so the chat's log is read first."""
    first = answered(world)
    chat = world.start("And the host?", conversation_id=first.conversation_id)
    world.abort(chat)
    noise = "".join(chr(0x4E00 + (index * 7_919) % 20_000) for index in range(300_000))
    writes = world.stores.history.track_writes(
        chat.user, chat.conversation_id, QueryTrack(1, (TrackBlock("q1", "user", noise, "now"),))
    )
    big = [
        replace(write, pointer=f"s3:{write.pointer}") if isinstance(write, StoredBody) else write
        for write in writes
    ]
    with pytest.raises(ChatClosed):
        write_past(world.stores, chat, big)
    assert world.stores.bodies.s3.list_objects_v2(Bucket="bodies").get("Contents", []) == []


def test_a_long_query_is_sent_whole_and_later_as_its_summary(world: World) -> None:
    message = "row 17, column 23\n" * 300 + "What is in row 17?"
    first = world.ask(message)
    (body,) = (request.body for request in world.model.requests if request.body.get("stream"))
    assert body["messages"][0]["content"][0]["text"] == f"[ID:q1] {message}"
    assert chat_faults(world.stores, first) == []
    _, sent = follow_up(world, first)
    said = sent[0]["content"][0]["text"]
    assert said.startswith("[ID:q1-sum, ref:q1, 5 KB] ")
    assert len(said) < 1_000
    stores, user, conversation_id = world.stores, first.user, first.conversation_id
    whole = stores.history.record(user, conversation_id, "q1")
    summary = stores.history.record(user, conversation_id, "q1-sum")
    assert whole is not None
    assert summary is not None
    assert (whole.content, summary.type, f"[ID:q1-sum, ref:q1, 5 KB] {summary.content}") == (
        message,
        "summary",
        said,
    )
    conversation = stores.conversations.find(user, conversation_id)
    assert conversation is not None
    listed = list_records(stores, conversation, "summarised", "").items
    assert [record["record_id"] for record in listed][:2] == ["q1-sum", "q1-r-sum"]
    assert listed[0]["ref"] == "q1"


def test_a_long_query_is_read_back_by_its_id(world: World) -> None:
    message = "row 17, column 23\n" * 300
    first = world.ask(message)
    world.model.reset()
    ask = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    world.model.script.add({"match": "Go on.", "content": [ask]})
    world.ask("Go on.", conversation_id=first.conversation_id)
    sent = [request.body for request in world.model.requests if request.body.get("stream")][-1]
    (result,) = [block for block in sent["messages"][-1]["content"] if block["type"] == "tool_result"]
    assert message in result["content"][0]["text"]
