"""Answers that have to fit a JSON Schema (CONTRACT 7): told behind the query, checked, asked for once more, forced.

The offline model's cache works as the service's: the figures say what a second answer reads anew.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.chats import show_chat
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.memory.view import _ANSWER_IN_JSON
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import ToolResult

from tests.drivers.crash_world import CLIENT_TOOL, LOOKUP, Scenario
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.pausing import Pausing, returned
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "celsius": {"type": "number", "maximum": 60}},
    "required": ["city", "celsius"],
}
COLD = '{"city":"Ottawa","celsius":3}'
CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "weather"}}
HAIKU_5 = "claude-haiku-5-5"


@pytest.fixture
def world() -> Iterator[World]:
    long = "Ottawa has 3 degrees. " * 400
    with make_world(retrieve_documentation=lambda _: ToolResult(long)) as new_world:
        yield new_world


def said(world: World, *answers: Any) -> None:
    """What the model answers to the turns of the next chat, in order."""
    scripted = [{"text": answer} if isinstance(answer, str) else answer for answer in answers]
    world.model.script.add(*({"match": "turn", **answer} for answer in scripted))


def sent(world: World) -> list[dict[str, Any]]:
    """The bodies of the turns that the model was sent."""
    return [request.body for request in world.model.requests if request.body.get("stream")]


def deltas(world: World, chat: Chat) -> list[tuple[int, str]]:
    events = world.stores.log(chat).events()
    return [(event.data["turn"], event.data["text"]) for event in events if event.event == "delta"]


def shown(world: World, chat: Chat) -> Any:
    return show_chat(world.stores, chat)


def sound(world: World, *chats: Chat) -> None:
    for chat in chats:
        assert chat_faults(world.stores, chat) == []
    assert account_faults(world.stores, "ann", list(chats)) == []


def test_an_answer_that_fits_is_the_output_at_once(world: World) -> None:
    said(world, {"content": [{"type": "text", "text": "Let me see."}, CALL]}, f"```json\n{COLD}\n```")
    chat = world.ask("How cold is it?", output=SCHEMA)
    body = shown(world, chat)
    assert (body["output"], body["response"], body["stop"]) == (json.loads(COLD), COLD, "complete")
    assert (chat.turn, chat.credits_used) == (2, 15)
    assert deltas(world, chat) == [(1, "Let me see."), (2, COLD)]
    first, second = (body["messages"] for body in sent(world))
    told = _ANSWER_IN_JSON.format(schema=json.dumps(SCHEMA, separators=(",", ":")))
    assert [block["text"] for block in first[0]["content"]] == ["[ID:q1] How cold is it?", told]
    assert second[0]["content"][1]["text"] == told
    assert all("output_config" not in body and "tool_choice" not in body for body in sent(world))
    sound(world, chat)


def test_an_answer_that_does_not_fit_is_asked_for_once_more_and_forced(world: World) -> None:
    """Tools and system are read from the cache; the messages are read anew, and nothing of them is written."""
    world = replace(world, model_name=HAIKU_5)
    said(world, {"content": [CALL]}, "Three degrees.", COLD)
    chat = world.ask("How cold is it?", output=SCHEMA)
    body = shown(world, chat)
    assert (body["output"], body["stop"], body["turns"], body["credits_used"]) == (
        json.loads(COLD),
        "complete",
        3,
        15,
    )
    assert deltas(world, chat) == [(3, COLD)]
    first, second = sent(world)[1:3]
    assert (second["tools"], second["system"]) == (first["tools"], first["system"])
    assert second["tool_choice"] == {"type": "none"}
    forced = second["output_config"]["format"]["schema"]
    assert forced["additionalProperties"] is False
    assert "maximum" not in forced["properties"]["celsius"]
    without_marks = json.loads(
        json.dumps(first["messages"]).replace(', "cache_control": {"type": "ephemeral"}', "")
    )
    assert second["messages"][: len(without_marks)] == without_marks
    bad, why = second["messages"][len(without_marks) :]
    assert bad == {"role": "assistant", "content": [{"type": "text", "text": "Three degrees."}]}
    assert why["content"][0]["text"].startswith(
        "(This answer does not fit the JSON Schema of the query: the answer is no"
    )
    lines = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())["lines"]
    calls = [line["usage"] for line in lines if line["kind"] == "model"]
    assert len(calls) == 3
    assert calls[1]["fresh"] < 20 < calls[1]["cache_read"]
    assert (calls[2]["cache_write"], calls[2]["cache_read"] > 1_000, calls[2]["fresh"] > 2_000) == (
        0,
        True,
        True,
    )
    begins = [event.data for event in world.stores.log(chat).events() if event.event == "turn"]
    assert [event["final"] for event in begins] == [False, False, True]
    assert [bool(event.get("misfit")) for event in begins] == [False, False, True]
    sound(world, chat)


def test_the_next_query_reads_the_prefix_as_if_nothing_had_been_asked_again(world: World) -> None:
    """Neither the schema nor the first answer is part of the past."""
    world = replace(world, model_name=HAIKU_5)
    said(world, "Yes.", "Three degrees.", COLD, "Because it is November.")
    asked = world.ask("Is it cold? " * 160)
    first = world.ask("How cold is it?", conversation_id=asked.conversation_id, output=SCHEMA)
    second = world.ask("Why?", conversation_id=first.conversation_id)
    past = json.dumps(sent(world)[-1]["messages"])
    assert "JSON Schema" not in past
    assert "Three degrees" not in past
    assert json.dumps(COLD)[1:-1] in past
    loaded = world.stores.chats.load_with_turns("ann", second.chat_id)
    before = world.stores.chats.load_with_turns("ann", asked.chat_id)
    assert loaded is not None
    assert before is not None
    written = before[1][0].usage.cache_write_tokens  # tools, system and the first query
    assert loaded[1][0].usage.cache_read_tokens >= written > 1_500
    assert shown(world, second)["output"] is None
    sound(world, asked, first, second)


@pytest.mark.parametrize("second", ["Still words.", '{"city":"Ottawa","celsius":61}', '{"city":"Ottawa"'])
def test_what_never_fits_is_invalid_output_charged_and_kept(world: World, second: str) -> None:
    said(world, "Three degrees.", second)
    chat = world.ask("How cold is it?", output=SCHEMA)
    body = shown(world, chat)
    assert (body["status"], body["stop"], body["output"]) == ("done", "invalid_output", None)
    assert (body["response"], body["credits_used"], body["turns"]) == (second, 5, 2)
    assert deltas(world, chat) == []
    sound(world, chat)


def test_a_service_that_does_not_take_the_schema_is_asked_without_it(world: World) -> None:
    refusal = {"status": 400, "error_message": "output_config.format.schema: too complex"}
    said(world, "Three degrees.", refusal, COLD)
    chat = world.ask("How cold is it?", output=SCHEMA)
    assert (shown(world, chat)["output"], chat.turn) == (json.loads(COLD), 2)
    assert [bool(body.get("output_config")) for body in sent(world)] == [False, True, False]
    assert [event.data["turn"] for event in world.stores.log(chat).events() if event.event == "turn"] == [
        1,
        2,
    ]
    lines = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())["lines"]
    assert [line["tries"] for line in lines if line["kind"] == "model"] == [1, 2]
    sound(world, chat)


def test_each_step_may_run_twice(world: World) -> None:
    said(world, "Three degrees.", COLD)
    chat = world.start("How cold is it?", output=SCHEMA)
    outcome = world.turn(chat, 0)
    assert (outcome["next"], outcome["turn"], world.turn(chat, 0)) == ("turn", 1, outcome)
    answered = world.turn(chat, 1)
    assert (answered["next"], world.turn(chat, 1)) == ("answered", answered)
    assert len(sent(world)) == 2
    world.summarise(chat)
    assert shown(world, world.load(chat))["output"] == json.loads(COLD)
    sound(world, world.load(chat))


def test_the_requests_schema_counts_before_the_profiles(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = replace(all_profiles()["assistant"], output={"type": "array"})
    monkeypatch.setitem(all_profiles(), "assistant", named)
    said(world, "[1]", COLD)
    first = world.ask("List it.")
    second = world.ask("How cold is it?", output=SCHEMA)
    assert shown(world, first)["output"] == [1]
    assert shown(world, second)["output"] == json.loads(COLD)


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
def test_an_answer_that_was_declined_or_cut_keeps_its_reason(world: World, stop: str) -> None:
    cut = {"text": '{"city":', "stop_reason": stop}
    said(world, cut, *([cut] if stop == "max_tokens" else []))
    chat = world.ask("How cold is it?", output=SCHEMA)
    assert (chat.stop, shown(world, chat)["output"], chat.credits_used) == (stop, None, 5)
    assert chat.turn == (2 if stop == "max_tokens" else 1)
    sound(world, chat)


def test_a_second_answer_keeps_the_limit_of_the_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(all_profiles(), "assistant", replace(all_profiles()["assistant"], max_turns=1))
    said(world, {"content": [CALL]}, "Three degrees.", COLD)
    chat = world.ask("How cold is it?", output=SCHEMA)
    assert (chat.stop, chat.turn, shown(world, chat)["output"]) == ("max_turns", 3, json.loads(COLD))
    sound(world, chat)


def test_there_is_no_second_answer_when_time_or_dollars_are_up(world: World) -> None:
    said(world, "Three degrees.", "Three degrees.")
    late = world.start("How cold is it?", output=SCHEMA)
    world.clock.now = late.deadline - 170
    assert (world.run(late).stop, world.load(late).turn) == ("invalid_output", 1)
    world.max_cost = 0.12  # less than a first and the most that a second may cost
    poor = world.ask("How cold is it?", output=SCHEMA)
    assert (poor.stop, poor.turn) == ("invalid_output", 1)
    sound(world, world.load(late), poor)


def test_the_offline_model_answers_a_schema(world: World) -> None:
    chat = world.ask("How cold is it?", output=SCHEMA)
    assert shown(world, chat)["output"] == {"city": "text", "celsius": 0}
    assert chat.turn == 1


def test_a_chat_that_waits_for_its_client_keeps_the_schema() -> None:
    """Through a pause, the client's result, a first answer that does not fit and a second one that does."""
    world = Pausing(
        Scenario("calls", rounds=((LOOKUP,),), tools=(CLIENT_TOOL,), output="fits late"), seconds=0
    )
    chat = world.pause()
    world.clock.now += 50 * 60
    world.decide_on(chat, returned("boat"))
    done = world.finish(chat)
    assert (done.status, done.stop, done.fits, done.turn, done.credits_used) == (
        "done",
        "complete",
        True,
        3,
        5,
    )
    turns = [request for request in world.sent if request.get("stream")]
    assert ["JSON Schema" in str(request["messages"][0]) for request in turns[:3]] == [True] * 3
    assert [tool["name"] for tool in turns[2]["tools"]] == [tool["name"] for tool in turns[0]["tools"]]
    assert chat_faults(world.look(), done) == []


def test_a_chat_that_is_cancelled_before_its_second_answer_keeps_nothing_of_the_first(world: World) -> None:
    said(world, "Three degrees.")
    chat = world.start("How cold is it?", output=SCHEMA)
    world.turn(chat, 0)
    executions: Any = world.executions
    cancelled = cancel_chat(world.stores, executions, world.load(chat))
    body = shown(world, cancelled)
    assert (body["status"], body["response"], body["output"], body["credits_used"]) == (
        "cancelled",
        None,
        None,
        5,
    )
    assert world.turn(chat, 1)["next"] == "failed"
    sound(world, cancelled)


def test_a_fork_and_a_follow_up_have_no_schema_of_their_own(world: World) -> None:
    said(world, COLD, "Because.", "Why not?")
    first = world.ask("How cold is it?", output=SCHEMA)
    world.ask("Why?", conversation_id=first.conversation_id)
    fork = fork_conversation(world.stores, "ann", first.conversation_id, 2)
    forked = world.ask("Why else?", conversation_id=fork.conversation_id)
    assert (forked.stop, forked.fits, shown(world, forked)["output"]) == ("complete", False, None)
    assert "JSON Schema" not in json.dumps([body["messages"] for body in sent(world)[1:]])


def test_a_query_that_stands_whole_is_sent_without_schema_and_first_answer(world: World) -> None:
    world = replace(world, tools={CALL["name"]: lambda _: ToolResult("Ottawa has 3 degrees.")})
    said(world, {"content": [CALL]}, "Three degrees.", COLD, "Because.")
    first = world.ask("How cold is it?", output=SCHEMA)
    second = world.ask("Why?", conversation_id=first.conversation_id)
    past = sent(world)[-1]["messages"][:-1]
    assert [message["role"] for message in past] == ["user", "assistant", "user", "assistant"]
    assert past[1]["content"][0]["type"] == "tool_use"
    assert past[3]["content"][0]["text"] == f"[ID:q1-r] {COLD}"
    assert "JSON Schema" not in json.dumps(past)
    sound(world, first, second)
