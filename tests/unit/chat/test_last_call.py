"""The last call, which must answer: no time is left for another round of tools (CONTRACT 7, 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.run_turn import limit_of
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.memory.notes import NOTES_TOKENS
from dualtrack.profiles import all_profiles
from dualtrack.storage.chats import Chat
from dualtrack.tool_values import ToolResult

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.models.stops import LastCallReason

ASK = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
MINUTE = 60
ASSISTANT = all_profiles()["assistant"]
CHAT = Chat("ann", "ch_1", "cv_1", 1, "assistant", "", deadline=10_000 + CHAT_SECONDS)


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def tool_seconds(world: World, seconds: float) -> None:
    """Every tool call takes this long."""

    def run(_: object) -> ToolResult:
        world.clock.sleep(seconds)
        return ToolResult("Port 8080.")

    world.tools = {"retrieve_documentation": run}


def requests(world: World) -> list[dict[str, Any]]:
    return [dict(request.body) for request in world.model.requests if request.body.get("stream")]


def turns_of(world: World, chat: Chat) -> list[tuple[int, bool]]:
    events = world.stores.log(chat).events()
    return [(event.data["turn"], event.data["final"]) for event in events if event.event == "turn"]


@pytest.mark.parametrize(
    ("minute", "turn", "limit"),
    [
        (0, 1, ""),
        (10.99, 15, ""),
        (11, 1, "timeout"),
        (14, 15, "timeout"),
        (20, 2, "timeout"),
        (11, 16, "max_turns"),
    ],
)
def test_a_call_that_begins_after_minute_11_is_the_last_one(
    minute: float, turn: int, limit: LastCallReason
) -> None:
    assert limit_of(CHAT, turn, ASSISTANT, 10_000 + minute * MINUTE) == limit


def test_a_model_that_always_calls_tools_answers_when_time_is_up(world: World) -> None:
    """Eleven rounds of a minute each; the twelfth call may use no tools, and is charged like any answer."""
    tool_seconds(world, MINUTE)
    world.model.script.add(
        *[{"match": "Search.", "content": [ASK]}] * 11, {"match": "Search.", "text": "So far."}
    )
    chat = world.ask("Search.")
    assert (chat.status, chat.stop, chat.turn, chat.credits_used) == ("done", "timeout", 12, 15)
    assert turns_of(world, chat) == [(number, number == 12) for number in range(1, 13)]
    *before, last = requests(world)
    assert [body.get("tool_choice") for body in before] == [None] * 11
    assert last["tool_choice"] == {"type": "none"}
    assert last["tools"] == before[0]["tools"]
    assert last["messages"][-1]["content"][-1]["text"].startswith("(The time limit of this chat is reached.")
    record = world.stores.history.record("ann", chat.conversation_id, "q1-r")
    assert record is not None
    assert (record.content, record.stop) == ("So far.", "timeout")
    assert chat_faults(world.stores, chat) == []
    assert account_faults(world.stores, "ann", [chat]) == []


def test_a_retry_that_begins_after_minute_11_is_the_last_call(world: World) -> None:
    world.model.script.add({"match": "Search.", "status": 529}, {"match": "Search.", "text": "So far."})
    chat = world.start("Search.")
    world.clock.now = chat.deadline - 4 * MINUTE - 10
    assert world.turn(chat, 0)["next"] == "wait"
    world.clock.sleep(10)
    assert world.turn(chat, 0)["next"] == "answered"
    assert turns_of(world, chat) == [(1, False), (1, True)]
    world.summarise(chat)
    ended = world.load(chat)
    assert (ended.status, ended.stop) == ("done", "timeout")
    assert chat_faults(world.stores, ended) == []


def test_a_turn_recorded_before_minute_11_is_unchanged_when_redelivered(world: World) -> None:
    tool_seconds(world, 1)
    world.model.script.add({"match": "Search.", "content": [ASK]}, {"match": "Search.", "text": "So far."})
    chat = world.start("Search.")
    world.clock.now = chat.deadline - 4 * MINUTE - 1
    outcome = world.turn(chat, 0)
    assert outcome["next"] == "tools"
    world.clock.sleep(MINUTE)
    assert world.turn(chat, 0) == outcome
    assert len(requests(world)) == 1
    ended = world.run(chat)
    assert (ended.status, ended.stop, ended.turn) == ("done", "timeout", 2)
    assert chat_faults(world.stores, ended) == []


def test_a_chat_that_reaches_its_cost_cap_answers_and_is_charged(world: World) -> None:
    """Every other turn asks for a tool; a turn's cost is the service's count at the list price."""
    tool_seconds(world, 1)
    usage = {"input_tokens": 0, "output_tokens": 1_000, "cache_creation_input_tokens": 10_000}
    world.model.script.add(
        *[{"match": "Search.", "content": [ASK], "usage": usage}] * 3,
        {"match": "Search.", "text": "So far.", "usage": usage},
    )
    each = (1.25 * 10_000 * 1 + 1_000 * 5) / 1_000_000  # dollars with Haiku 4.5
    last = (1.25 * 95_000 * 1 + (4_096 + NOTES_TOKENS) * 5) / 1_000_000
    chat = world.start("Search.")
    world.max_cost = 3 * each + last  # after three turns a fourth like them and a last call would be too much
    ended = world.run(chat)
    assert (ended.status, ended.stop, ended.turn, ended.credits_used) == ("done", "max_cost", 4, 15)
    assert turns_of(world, ended) == [(1, False), (2, False), (3, False), (4, True)]
    assert requests(world)[-1]["tool_choice"] == {"type": "none"}
    note = requests(world)[-1]["messages"][-1]["content"][-1]["text"]
    assert note.startswith("(The cost limit of this chat is reached.")
    assert 4 * each <= world.max_cost
    assert chat_faults(world.stores, ended) == []
    assert account_faults(world.stores, "ann", [ended]) == []


def test_time_and_turns_take_precedence_over_the_cap() -> None:
    minute_11 = CHAT.deadline - 4 * MINUTE
    assert limit_of(CHAT, 2, ASSISTANT, 10_000, is_capped=True) == "max_cost"
    assert limit_of(CHAT, 16, ASSISTANT, 10_000, is_capped=True) == "max_turns"
    assert limit_of(CHAT, 2, ASSISTANT, minute_11, is_capped=True) == "timeout"


def test_after_its_rounds_a_profile_may_end_normally() -> None:
    """Whatever the time and the cost: nothing is cut short. Exhausted credits did cut the rounds short."""
    courses = all_profiles()["courses"]
    minute_11 = CHAT.deadline - 4 * MINUTE
    assert limit_of(CHAT, 2, courses, 10_000) == ""
    assert limit_of(CHAT, 3, courses, 10_000) == "rounds_done"
    assert limit_of(CHAT, 3, courses, minute_11, is_capped=True) == "rounds_done"
    assert limit_of(CHAT, 2, courses, minute_11) == "timeout"
    assert limit_of(replace(CHAT, limit="insufficient_credits"), 3, courses, 10_000) == "insufficient_credits"


def test_exhausted_credits_take_precedence_as_the_reason() -> None:
    """The user can do something about them."""
    chat = Chat("ann", "ch_1", "cv_1", 1, "assistant", "", CHAT.deadline, limit="insufficient_credits")
    assert limit_of(chat, 2, ASSISTANT, CHAT.deadline) == "insufficient_credits"
