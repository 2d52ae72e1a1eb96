"""A model that thinks by default, through the steps of a chat (CONTRACT 7, DESIGN 3)."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.frozen import dumps
from dualtrack.models.thinking import Thinking
from dualtrack.tool_values import Media, ToolResult

from tests.drivers.images import png
from tests.drivers.world import World, call_for_summaries, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

PNG = png()
HOW = "How do I set up OAuth for Twitter ads?"
CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
THOUGHT = {"type": "thinking", "thinking": "Hm."}
THOUGHT_ALONE = {
    "match": "turn",
    "content": [THOUGHT],
    "stop_reason": "max_tokens",
    "usage": {"output_tokens": 900},
}


def tool(running: Running) -> ToolResult:
    return ToolResult("## OAuth\n\n" + "Ask for a token. " * 80, media=(image(),))


def image() -> Media:
    return Media("image/png", base64.b64encode(PNG).decode())


@pytest.fixture
def world() -> Iterator[World]:
    with make_world(retrieve_documentation=tool) as new_world:
        yield replace(new_world, model_name="claude-haiku-5-5")


def bodies(world: World) -> list[dict[str, Any]]:
    return [request.body for request in world.model.requests]


def answer_of(world: World, chat: Chat) -> str:
    record = world.stores.history.record(chat.user, chat.conversation_id, f"q{chat.query}-r")
    assert record is not None
    return record.content


def test_thinking_is_replayed_within_the_query_but_not_in_its_text(world: World) -> None:
    """The offline model signs it together with the prompt, so nothing sent before may change."""
    chat = world.ask(HOW)
    asked, answered = [body for body in bodies(world) if body.get("tools")]
    assert chat.status == "done"
    assert asked["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert [request.refused for request in world.model.requests] == [""] * len(world.model.requests)
    kinds = [block["type"] for block in answered["messages"][-2]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]
    events = "".join(
        dumps(event.data) for event in world.stores.log(ref_of(chat)).events() if event.event != "thinking"
    )
    assert "Rules applied" not in events
    thought = world.stores.history.record(chat.user, chat.conversation_id, "q1-a1")
    assert thought is not None
    assert thought.content.startswith("Rules applied: retrieve_documentation.")


def test_the_last_call_keeps_its_thinking(world: World) -> None:
    world.model.script.add({"match": "turn", "content": [THOUGHT, CALL], "always": True})
    chat = world.ask("Go on for ever.")
    last = [body for body in bodies(world) if body.get("tools")][-1]
    assert (chat.status, chat.stop) == ("done", "max_turns")
    assert last["tool_choice"] == {"type": "none"}
    assert not any(request.refused for request in world.model.requests)


def test_an_answer_of_thinking_alone_is_requested_again_without_thinking(world: World) -> None:
    again = {"match": "turn", "text": "In words.", "usage": {"output_tokens": 7}}
    world.model.script.add(THOUGHT_ALONE, again)
    chat = world.ask("Hello")
    first, second = bodies(world)
    assert (answer_of(world, chat), chat.stop) == ("In words.", "complete")
    assert second == {**first, "max_tokens": first["max_tokens"] - 8_000, "thinking": {"type": "disabled"}}
    assert (chat.usage["output_tokens"], chat.credits_used) == (907, 5)


def test_it_is_requested_again_only_once(world: World) -> None:
    world.model.script.add(THOUGHT_ALONE, {**THOUGHT_ALONE, "content": []})
    chat = world.ask("Hello")
    assert len(bodies(world)) == 2
    assert chat.stop == "max_tokens"
    assert answer_of(world, chat) == "(The answer was cut off before any text was written.)"


def test_if_the_second_try_is_refused_the_first_is_kept(world: World) -> None:
    world.model.script.add(THOUGHT_ALONE, {"match": "turn", "status": 400})
    chat = world.ask("Hello")
    assert (chat.status, chat.stop, chat.usage["output_tokens"]) == ("done", "max_tokens", 900)


def test_a_model_that_does_not_think_is_not_asked_again(world: World) -> None:
    world = replace(world, model_name="claude-haiku-4-5-20251001")
    world.model.script.add({**THOUGHT_ALONE, "content": []})
    chat = world.ask("Hello")
    assert (len(bodies(world)), chat.stop) == (1, "max_tokens")


def test_refused_files_are_dropped_with_the_thinking_about_them(world: World) -> None:
    """The first result's image was accepted and thought about; without it that thinking no longer fits the prompt."""
    world.model.script.add(
        {"match": "turn", "content": [THOUGHT, CALL]},
        {"match": "turn", "content": [THOUGHT, CALL]},
        {"match": "turn", "status": 400},
        {"match": "turn", "text": "Seen."},
    )
    chat = world.ask("Look.")
    assert (chat.status, answer_of(world, chat)) == ("done", "Seen.")
    assert [request.refused for request in world.model.requests] == [""] * len(world.model.requests)
    last = [body for body in bodies(world) if body.get("tools")][-1]
    assert "thinking" not in [block["type"] for message in last["messages"] for block in message["content"]]


def test_a_deployment_in_between_changes_neither_model_nor_effort(world: World) -> None:
    before = replace(world, thinking=Thinking(effort="high"))
    after = replace(world, model_name="claude-haiku-4-5-20251001", thinking=Thinking(effort="low"))
    world.model.script.add({"match": "turn", "content": [THOUGHT, CALL]}, {"match": "turn", "text": "Done."})
    chat = world.start("Hello")
    (call,) = before.turn(chat, 0)["calls"]
    before.tool(chat, 1, call["id"])
    assert after.turn(chat, 1)["next"] == "answered"
    asked = [(body["model"], body["output_config"]) for body in bodies(world)]
    assert asked == [("claude-haiku-5-5", {"effort": "high"})] * 2
    assert after.load(chat).model == "claude-haiku-5-5"


def test_short_calls_do_not_think(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    world.ask(HOW)
    world.ask(HOW)
    short = [body for body in bodies(world) if not body.get("tools")]
    assert len(short) > 1
    assert {body["thinking"]["type"] for body in short} == {"disabled"}


def test_hidden_thinking_is_sent_back_unchanged(world: World) -> None:
    hidden = [{"type": "thinking", "thinking": ""}, {"type": "redacted_thinking", "data": "c2VjcmV0"}]
    world.model.script.add(
        {"match": "turn", "content": [*hidden, CALL]}, {"match": "turn", "text": "In words."}
    )
    assert answer_of(world, world.ask("Hello")) == "In words."
    (_, body) = [body for body in bodies(world) if body.get("tools")]
    thinking, redacted = body["messages"][-2]["content"][:2]
    assert (thinking["thinking"], redacted) == ("", hidden[1])
    assert thinking["signature"]
