"""A chat can use all of its turns whatever its tools return; no conversation grows too long (CONTRACT 6, 7, 8)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Media, ToolResult
from dualtrack_stack.local.offline_model import tokens, wire
from dualtrack_stack.local.offline_model.summary import is_summary_request

from tests.drivers.images import png
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

LONG = ("The manual says on its next page what the port is. " * 2_000)[:100_000]
CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
THOUGHT = {"type": "thinking", "thinking": "One more look."}
LIMIT = all_profiles()["assistant"].context_tokens


@pytest.fixture
def brought() -> list[ToolResult]:
    """What every call of the tool returns."""
    return [ToolResult(LONG)]


@pytest.fixture
def world(brought: list[ToolResult]) -> Iterator[World]:
    """A model that thinks, and accepts its thinking only after exactly the prompt it belongs to."""

    def tool(_: Running) -> ToolResult:
        return brought[0]

    with make_world(retrieve_documentation=tool) as new_world:
        new_world.model_name = "claude-haiku-5-5"
        new_world.stores.ledger.grant("ann", "g", 1_000, "test", new_world.clock())
        yield new_world


def asks(calls: int) -> dict[str, Any]:
    return {"match": "turn", "content": [THOUGHT, *[CALL] * calls]}


def window(world: World, size: int | None) -> None:
    world.model.state.settings = replace(world.model.state.settings, context_window=size)


def taken(world: World) -> list[dict[str, Any]]:
    """The bodies of the turns that the model accepted."""
    bodies = [
        dict(request.body)
        for request in world.model.requests
        if request.body.get("stream") and not request.refused
    ]
    return [body for body in bodies if not is_summary_request(wire.Request.model_validate(body))]


def refusals(world: World) -> list[str]:
    return [request.refused for request in world.model.requests if request.refused]


def largest(world: World) -> int:
    return max(tokens.count(wire.Request.model_validate(body)) for body in taken(world))


def texts(body: dict[str, Any]) -> list[str]:
    """The text of every result in a request."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"]


def assert_whole(world: World, chat: Chat) -> None:
    """Every record is stored unchanged, and the chat ended as it should."""
    records = world.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    assert {record.content for record in records if record.call} == {LONG}
    assert chat_faults(world.stores, chat) == []
    assert account_faults(world.stores, "ann", [chat]) == []


def test_fifteen_turns_of_two_large_results_all_run(world: World) -> None:
    world.model.script.add(*[asks(2)] * 14, {"match": "turn", "text": "Port 8080."})
    chat = world.ask("Which port?")
    assert (chat.status, chat.stop, chat.turn, chat.credits_used) == ("done", "complete", 15, 15)
    assert refusals(world) == []
    assert largest(world) <= LIMIT
    last = texts(taken(world)[-1])
    assert len(last) == 28
    assert sum(len(text) < 600 for text in last) > 20
    assert len(last[-1]) > 10_000
    assert_whole(world, chat)
    assert chat.memory.costs.full > 2 * chat.memory.costs.own


def test_twenty_large_results_of_one_turn_share_the_budget(world: World) -> None:
    world.model.script.add(asks(20), {"match": "turn", "text": "Port 8080."})
    chat = world.ask("Which port?")
    assert (chat.status, chat.stop) == ("done", "complete")
    lengths = [len(text) for text in texts(taken(world)[-1])]
    assert len(lengths) == 20
    assert max(lengths) - min(lengths) < 20
    assert 0.6 * LIMIT < largest(world) <= LIMIT
    assert_whole(world, chat)


def test_eight_results_with_four_megabytes_of_images(world: World, brought: list[ToolResult]) -> None:
    image = Media("image/png", base64.b64encode(png(bytes(500_000))).decode())
    brought[0] = ToolResult(LONG, media=(image,))
    world.model.script.add(asks(8), asks(8), {"match": "turn", "text": "Seen."})
    chat = world.ask("Look.")
    assert (chat.status, chat.stop) == ("done", "complete")
    assert refusals(world) == []
    assert largest(world) <= LIMIT
    sent = json.dumps(taken(world)[1])
    assert sent.count('"type": "image"') == 8
    assert_whole(world, chat)


def test_a_retry_sends_the_same_and_so_do_later_turns(world: World) -> None:
    """The prefix is unchanged, but for the step in which old results become extracts."""
    fails = {"match": "turn", "status": 529}
    world.model.script.add(asks(3), fails, asks(3), fails, {"match": "turn", "text": "Port 8080."})
    chat = world.start("Which port?")
    for turn in range(3):
        if turn:
            outcome = world.turn(chat, turn)
            assert outcome["next"] == "wait"
            world.clock.sleep(outcome["seconds"])
        for call in world.turn(chat, turn)["calls"]:
            world.tool(chat, turn + 1, call["id"])
    world.summarise(chat)
    first, *pairs = [unmarked(body) for body in taken(world)]
    assert (pairs[0], pairs[2]) == (pairs[1], pairs[3])
    assert pairs[0][: len(first)] == first
    assert "One more look." in str(pairs[0])
    assert pairs[2][: len(pairs[0])] != pairs[0]
    assert "One more look." not in str(pairs[2])
    assert_whole(world, world.load(chat))


def unmarked(body: dict[str, Any]) -> list[str]:
    marked = json.dumps(body["messages"]).replace(', "cache_control": {"type": "ephemeral"}', "")
    return [json.dumps(message) for message in json.loads(marked)]


def test_a_request_too_long_for_the_service_is_repeated_with_shorter_new_results(
    world: World,
) -> None:
    """They were never sent before, so the thinking stays; the next turn sends the same."""
    window(world, 30_000)
    world.model.script.add(
        asks(2), {"match": "turn", "content": [THOUGHT, CALL]}, {"match": "turn", "text": "A."}
    )
    chat = world.start("Which port?")
    for call in world.turn(chat, 0)["calls"]:
        world.tool(chat, 1, call["id"])
    world.turn(chat, 1)
    (refused,) = refusals(world)
    assert refused.startswith("prompt is too long: ")
    second = taken(world)[-1]
    assert "One more look." in json.dumps(second)
    assert all(20_000 < len(text) < 60_000 for text in texts(second))
    window(world, None)
    world.tool(chat, 2, "q1-t3")
    assert world.turn(chat, 2)["next"] == "answered"
    assert unmarked(taken(world)[-1])[: len(second["messages"])] == unmarked(second)
    world.summarise(chat)
    assert_whole(world, world.load(chat))


def test_if_older_results_must_be_cut_too_thinking_is_dropped(world: World) -> None:
    world.model.script.add(asks(2), asks(1), {"match": "turn", "text": "Port 8080."})
    chat = world.start("Which port?")
    for turn in range(2):
        for call in world.turn(chat, turn)["calls"]:
            world.tool(chat, turn + 1, call["id"])
    window(world, 12_000)
    assert world.turn(chat, 2)["next"] == "answered"
    last = taken(world)[-1]
    assert "One more look." not in json.dumps(last)
    assert max(len(text) for text in texts(last)[:2]) < 600
    world.summarise(chat)
    ended = world.load(chat)
    assert (ended.status, ended.stop) == ("done", "complete")
    assert_whole(world, ended)


@pytest.mark.parametrize(
    "error",
    [
        {"status": 413, "error_type": "request_too_large"},
        {"status": 400, "error_message": "Input is too long for requested model."},
    ],
)
def test_a_request_that_is_too_large_in_other_words(world: World, error: dict[str, Any]) -> None:
    world.model.script.add(asks(2), {"match": "turn", **error}, {"match": "turn", "text": "Port 8080."})
    chat = world.ask("Which port?")
    assert (chat.status, chat.stop) == ("done", "complete")
    *_, first, second = (sum(map(len, texts(body))) for body in taken(world))
    assert second < first * 0.6


def test_the_last_resort_is_an_answer_and_the_conversation_goes_on(world: World) -> None:
    """Charged for what ran; the same for a query that alone is too long, and for its last call."""
    world.model.script.add(asks(2))
    chat = world.start("Which port?")
    for call in world.turn(chat, 0)["calls"]:
        world.tool(chat, 1, call["id"])
    window(world, 50)
    assert world.turn(chat, 1)["next"] == "answered"
    world.summarise(chat)
    ended = world.load(chat)
    assert (ended.status, ended.stop, ended.credits_used) == ("done", "context_window", 15)
    assert_whole(world, ended)
    alone = world.ask("x" * 32_000, conversation_id=chat.conversation_id)
    assert (alone.status, alone.stop, alone.credits_used) == ("done", "context_window", 5)
    response = world.stores.history.record("ann", chat.conversation_id, "q2-r")
    assert response is not None
    assert (response.stop, response.content[:17]) == ("context_window", "(The question and")
    window(world, None)
    world.model.script.clear()
    after = world.ask("And then?", conversation_id=chat.conversation_id)
    assert (after.status, after.stop) == ("done", "complete")
    for checked in (ended, alone, after):
        assert chat_faults(world.stores, checked) == []
    assert account_faults(world.stores, "ann", [ended, alone, after]) == []


def test_an_answer_cut_by_the_window_is_kept_and_the_conversation_goes_on(world: World) -> None:
    """The model's own stop reason: what it wrote is the answer."""
    cut = {"match": "turn", "text": "So far.", "stop_reason": "model_context_window_exceeded"}
    world.model.script.add(cut, {"match": "turn", "text": "More."})
    chat = world.ask("Which port?")
    assert (chat.status, chat.stop, chat.credits_used) == ("done", "context_window", 5)
    after = world.ask("Go on.", conversation_id=chat.conversation_id)
    assert (after.status, after.stop) == ("done", "complete")
    assert "So far." in json.dumps(taken(world)[-1]["messages"])


def test_a_file_that_was_refused_is_not_sent_with_the_next_turn(
    world: World, brought: list[ToolResult]
) -> None:
    image = Media("image/png", base64.b64encode(png()).decode())
    brought[0] = ToolResult(LONG, media=(image,))
    refused = {"match": "turn", "status": 400, "error_message": "Could not process image"}
    world.model.script.add(asks(1), refused, asks(1), {"match": "turn", "text": "Seen."})
    chat = world.ask("Look.")
    assert (chat.status, chat.turn) == ("done", 3)
    files = [json.dumps(body).count('"type": "image"') for body in taken(world)]
    assert files == [0, 1, 0, 0]
    assert_whole(world, chat)
