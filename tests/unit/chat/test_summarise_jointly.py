"""The summaries of a query by one call on the prefix that its last turn left in the cache (DESIGN 2.15).

The offline model computes cache reads as the service does: any difference from the last turn's request, in tools,
choice, thinking, effort or a message, would show as uncached tokens, and a changed prompt under replayed thinking is
refused.
"""

from __future__ import annotations

import base64
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.memory.joint_summaries import WARM_SECONDS
from dualtrack.models.thinking import Thinking
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Media, ToolResult

from tests.drivers.images import png
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
THOUGHT = {"type": "thinking", "thinking": "Hm."}
LONG_ANSWER = "Order 4711 of ACME costs 19 USD. " * 40
PNG = base64.b64encode(png()).decode()


def tool(running: Running) -> ToolResult:
    """Short if asked to be: forty of the others exceed one request."""
    words = 60 if running.call.input.get("query") == "short" else 600
    return ToolResult(f"## Result of {running.call.id}\n\n" + "Ask for a token with id 17. " * words)


@pytest.fixture
def world() -> Iterator[World]:
    with make_world(retrieve_documentation=tool) as new_world:
        new_world.stores.ledger.grant("ann", "g", 1_000, "x", new_world.clock())
        yield replace(new_world, model_name="claude-haiku-5-5")


def summary_calls(world: World) -> list[dict[str, Any]]:
    return [request.body for request in world.model.requests if _is_summary(request.body)]


def missing(world: World, chat: Chat) -> int:
    """The summaries that the model did not make, by the chat's receipt."""
    lines = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())["lines"]
    (line,) = [line for line in lines if line["kind"] == "summary"]
    return int(line["missing"])


def _is_summary(body: dict[str, Any]) -> bool:
    content = body["messages"][-1]["content"]
    told = content[-1].get("text", "") if isinstance(content, list) else content
    return not body.get("tools") or told.startswith("Summarise the records")


def cached(world: World, chat: Chat) -> tuple[int, int, int]:
    """Cached tokens of the query's last turn, and of its summaries: read and written."""
    loaded = world.stores.chats.load_with_turns(chat.user, chat.chat_id)
    assert loaded is not None
    last = loaded[1][-1].usage
    assert last is not None
    spent = world.load(chat).spent.summaries
    assert spent is not None
    before = last.cache_read_tokens + last.cache_write_tokens
    return before, spent.usage.cache_read_tokens, spent.usage.cache_write_tokens


def track_of(world: World, chat: Chat) -> dict[str, str]:
    (*_, track) = world.stores.history.tracks(chat.user, chat.conversation_id, chat.query)
    return {block.ref: block.content for block in track.blocks if block.ref}


def ended_well(world: World, chat: Chat) -> None:
    """Done, and no request was refused."""
    assert world.load(chat).status == "done"
    assert [request.refused for request in world.model.requests if request.refused] == []


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize(
    ("thinking", "said"),
    [(Thinking(), ()), (Thinking(), (THOUGHT,)), (Thinking(effort="high"), ())],
    ids=["plain", "thinking", "effort"],
)
def test_the_call_reads_the_whole_prefix_of_the_last_turn(
    world: World, turns: int, thinking: Thinking, said: tuple[dict[str, Any], ...]
) -> None:
    asks = {"match": "turn", "content": [*said, CALL, CALL]}
    answers = {"match": "turn", "content": [*said, {"type": "text", "text": LONG_ANSWER}]}
    world.model.script.add(*[asks] * turns, answers)
    chat = replace(world, thinking=thinking).ask("Which order?")
    ended_well(world, chat)
    before, read, written = cached(world, chat)
    assert before > turns * 8_000
    assert (read, written) == (before, 0)
    assert len(summary_calls(world)) == 1
    said_of = track_of(world, chat)
    assert said_of["q1-t2"].startswith("(data from retrieve_documentation) retrieve_documentation was called")
    assert said_of["q1-r"].startswith("Order 4711 of ACME costs 19 USD.")


def test_summaries_of_later_queries_read_the_cache_too(world: World) -> None:
    for _ in range(3):
        world.model.script.add({"match": "turn", "content": [CALL]}, {"match": "turn", "text": LONG_ANSWER})
    first = world.ask("Which order?")
    for number in (2, 3):
        chat = world.ask(f"Which order now, the {number}th?", conversation_id=first.conversation_id)
        before, read, written = cached(world, chat)
        assert (read, written) == (before, 0)


def test_the_last_call_of_a_chat_is_cached_for_its_summaries(world: World) -> None:
    world.model.script.add(
        *[{"match": "turn", "content": [THOUGHT, CALL]}] * 15, {"match": "turn", "text": LONG_ANSWER}
    )
    chat = world.ask("Go on for ever.")
    ended_well(world, chat)
    assert chat.stop == "max_turns"
    before, read, written = cached(world, chat)
    (body,) = summary_calls(world)
    assert (read, written) == (before, 0)
    assert before > 15 * 4_000
    assert body["tool_choice"] == {"type": "none"}


def test_the_normal_end_of_a_profiles_rounds_is_cached_for_its_summaries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stop does not say that the call could use no tools."""
    changed = replace(all_profiles()["assistant"], max_turns=2, after_max_turns="complete")
    monkeypatch.setitem(all_profiles(), "assistant", changed)
    world.model.script.add(
        *[{"match": "turn", "content": [CALL, CALL]}] * 2, {"match": "turn", "text": LONG_ANSWER}
    )
    chat = world.ask("Go on.")
    ended_well(world, chat)
    assert (chat.stop, chat.turn) == ("complete", 3)
    before, read, written = cached(world, chat)
    (body,) = summary_calls(world)
    assert (read, written) == (before, 0)
    assert body["tool_choice"] == {"type": "none"}


def test_the_last_call_is_not_cached_if_nothing_reads_it(world: World) -> None:
    """Another model makes its summaries, one at a time."""
    world = replace(world, summary_model="claude-sonnet-5-5")
    world.model.script.add({"match": "turn", "content": [CALL], "always": True})
    chat = world.ask("Go on for ever.")
    loaded = world.stores.chats.load_with_turns(chat.user, chat.chat_id)
    assert loaded is not None
    usage = loaded[1][-1].usage
    assert usage is not None
    assert usage.cache_write_tokens == 0
    assert usage.input_tokens > 15 * 4_000
    assert {body["model"] for body in summary_calls(world)} == {"claude-sonnet-5-5"}


def test_twenty_results_of_a_turn_are_read_from_the_cache_by_the_next(world: World) -> None:
    """With the calls they are 40 blocks, and the service looks back 20."""
    short = CALL | {"input": {"query": "short"}}
    world.model.script.add(*[{"match": "turn", "content": [short] * 20}] * 2)
    chat = world.ask("Which order?")
    ended_well(world, chat)
    loaded = world.stores.chats.load_with_turns(chat.user, chat.chat_id)
    assert loaded is not None
    calls = [turn.usage for turn in loaded[1] if turn.usage]
    for call, following in itertools.pairwise(calls):
        assert following.cache_read_tokens == call.cache_read_tokens + call.cache_write_tokens
        assert following.input_tokens == 0


def test_a_plain_answer_is_summarised_alone(world: World) -> None:
    """The prefix would cost more than the answer alone."""
    world.model.script.add({"match": "turn", "text": LONG_ANSWER})
    world.ask("Hello")
    (body,) = summary_calls(world)
    assert "tools" not in body


def test_a_cold_cache_is_not_relied_on(world: World) -> None:
    chat = world.start("How do I set up OAuth for Twitter ads?")
    assert world.answer(chat) == "answered"
    world.clock.sleep(WARM_SECONDS + 1)
    world.summarise(chat)
    assert world.load(chat).status == "done"
    assert all("tools" not in body for body in summary_calls(world))


def test_a_deployment_in_between_changes_nothing_for_it(world: World) -> None:
    chat = world.start("How do I set up OAuth for Twitter ads?")
    assert world.answer(chat) == "answered"
    after = replace(
        world,
        model_name="claude-haiku-4-5-20251001",
        summary_model="claude-haiku-5-5",
        thinking=Thinking(effort="low"),
    )
    after.summarise(chat)
    before, read, written = cached(world, chat)
    assert (read, written) == (before, 0)


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [CALL]},
        {"text": "I would rather not."},
        {"text": "[q1-t1] You agreed.", "stop_reason": "max_tokens"},
        {"text": "No.", "stop_reason": "refusal"},
    ],
    ids=["a tool", "no form", "cut off", "refusal"],
)
def test_a_summary_missing_from_the_answer_is_an_extract(world: World, answer: dict[str, Any]) -> None:
    """And no second call is made."""
    world.model.script.add({"match": "summary", **answer})
    chat = world.ask("How do I set up OAuth for Twitter ads?")
    ended_well(world, chat)
    assert len(summary_calls(world)) == 1
    assert "## Result of q1-t1 Ask for a token" in track_of(world, chat)["q1-t1"]
    assert "You agreed" not in track_of(world, chat)["q1-t1"]
    assert missing(world, chat) == 1


def test_an_unavailable_service_leaves_extracts(world: World) -> None:
    world.model.script.add({"match": "summary", "status": 529, "always": True})
    chat = world.ask("How do I set up OAuth for Twitter ads?")
    assert chat.status == "done"
    assert len(summary_calls(world)) == 3
    assert chat.usage["summary_tokens"] == 0
    assert missing(world, chat) == 1
    assert "## Result of q1-t1 Ask for a token" in track_of(world, chat)["q1-t1"]


def test_a_refused_request_is_repeated_record_by_record(world: World) -> None:
    world.model.script.add({"match": "summary", "status": 400})
    chat = world.ask("How do I set up OAuth for Twitter ads?")
    assert chat.status == "done"
    first, *others = summary_calls(world)
    assert "tools" in first
    assert others
    assert all("tools" not in body for body in others)
    assert track_of(world, chat)["q1-t1"].startswith("(data from retrieve_documentation) retrieve_doc")


def test_files_that_the_last_call_left_out_are_not_sent_for_its_summaries(world: World) -> None:
    """The service refused them before, and would again."""
    world.model.script.add(
        {"match": "turn", "content": [CALL]},
        {"match": "turn", "status": 400},
        {"match": "turn", "text": "Seen."},
        {"match": "summary", "status": 400},
    )
    with_files = replace(
        world,
        tools={
            "retrieve_documentation": lambda running: replace(tool(running), media=(Media("image/png", PNG),))
        },
    )
    chat = with_files.ask("Look.")
    assert chat.status == "done"
    assert track_of(world, chat)["q1-t1"].startswith("(data from retrieve_documentation) retrieve_doc")


def test_cache_reads_are_stored_with_the_chat_but_not_shown(world: World) -> None:
    chat = world.ask("How do I set up OAuth for Twitter ads?")
    assert chat.spent.summaries is not None
    assert chat.usage["summary_tokens"] == chat.spent.summaries.usage.tokens > 0
    (*_, track) = world.stores.history.tracks(chat.user, chat.conversation_id, 1)
    shown = chat_json(chat, (), track)["usage"]
    assert {name for name in shown if name.startswith("summary_")} == {"summary_tokens"}
