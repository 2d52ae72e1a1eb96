"""A model that is busy is waited for by the workflow, until the chat's last call is due (CONTRACT 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat_times import ChatTimes
from dualtrack.clock import iso
from dualtrack.models.trouble import BUSY as BUSY_WORDS

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.chat.run_turn import TurnOutcome
    from dualtrack.storage.chats import Chat

BUSY = {"match": "Search.", "status": 529}
ANSWER = {"match": "Search.", "text": "Port 8080."}


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def turn(world: World, chat: Chat, *, draw: float = 1.0) -> TurnOutcome:
    """A turn as a workflow that can wait requests it; every random wait is the longest, or as long as ``draw`` says."""
    return world.take_turn(ref_of(chat), draw=lambda: draw)


def announced(world: World, chat: Chat) -> list[tuple[str, int]]:
    events = world.stores.log(chat).events()
    return [
        (event.event, event.data.get("seconds", 0)) for event in events if event.event in ("turn", "retrying")
    ]


def calls(world: World) -> int:
    return len([request for request in world.model.requests if request.body.get("stream")])


def ended(world: World, chat: Chat) -> Chat:
    after = world.load(chat)
    assert chat_faults(world.stores, after) == []
    assert account_faults(world.stores, chat.user, [after]) == []
    return after


def test_a_wait_is_announced_and_the_turn_starts_again_after_it(world: World) -> None:
    world.model.script.add(BUSY, BUSY, {**BUSY, "retry_after": 60}, ANSWER)
    chat, outcomes = world.start("Search."), []
    while (outcome := turn(world, chat))["next"] == "wait":
        outcomes.append(outcome)
        world.clock.sleep(outcome["seconds"])
    assert outcomes == [
        {"turn": 0, "next": "wait", "calls": [], "seconds": seconds} for seconds in (4, 8, 66)
    ]
    assert outcome == {"turn": 1, "next": "answered", "calls": []}
    world.summarise(chat)
    begun = ("turn", 0)
    assert announced(world, chat) == [
        begun, ("retrying", 4), begun, ("retrying", 8), begun, ("retrying", 66), begun,
    ]  # fmt: skip
    after = ended(world, chat)
    assert (after.status, after.stop, after.turn, after.credits_used) == ("done", "complete", 1, 5)


def test_a_repeated_step_waits_for_the_rest_without_a_model_call(world: World) -> None:
    world.model.script.add(BUSY, ANSWER)
    chat = world.start("Search.")
    assert turn(world, chat)["seconds"] == 4
    world.clock.sleep(1.5)
    assert turn(world, chat)["seconds"] == 3
    assert calls(world) == 1
    assert announced(world, chat) == [("turn", 0), ("retrying", 4)]


def wait_out(world: World, chat: Chat, draw: float = 1.0) -> TurnOutcome:
    """Turns and their waits until the chat no longer waits; its last outcome."""
    while (outcome := turn(world, chat, draw=draw))["next"] == "wait":
        world.clock.sleep(outcome["seconds"])
    return outcome


@pytest.mark.parametrize("asked", [None, 0.0, 1.0, 3.0])
@pytest.mark.parametrize(("draw", "most"), [(0.0, 26), (0.5, 20), (1.0, 16)])
def test_the_calls_of_a_chat_that_never_gets_a_model(
    world: World, asked: float | None, draw: float, most: int
) -> None:
    """Whatever `retry-after` says: at most 26, where waiting only as long as asked would make hundreds."""
    world.model.script.add({**BUSY, "retry_after": asked, "always": True})
    chat = world.start("Search.")
    assert wait_out(world, chat, draw) == {"turn": 1, "next": "failed", "calls": []}
    last = chat.deadline - ChatTimes().last_call
    assert last <= world.clock.now < last + 2
    assert most - 3 <= calls(world) <= most
    after = ended(world, chat)
    assert (after.status, after.credits_used, after.turn) == ("failed", 0, 0)
    assert after.error is not None
    assert after.error["code"] == "model_busy"
    assert after.spent.waited is not None
    assert after.spent.waited.times == calls(world) - 1


def test_a_wait_says_its_try_and_until_when_the_chat_waits(world: World) -> None:
    world.model.script.add(BUSY, {**BUSY, "retry_after": 50}, BUSY, ANSWER)
    chat = world.start("Search.")
    wait_out(world, chat)
    waits = [event.data for event in world.stores.log(chat).events() if event.event == "retrying"]
    assert [(wait["try"], wait["seconds"]) for wait in waits] == [(1, 4), (2, 54), (3, 16)]
    assert {wait["until"] for wait in waits} == {iso(chat.deadline - ChatTimes().last_call)}


def test_a_service_that_asks_for_more_than_the_chat_has_is_not_waited_for(world: World) -> None:
    """A `retry-after` is never undercut, and nobody watches a wait that cannot end with an answer."""
    world.model.script.add({**BUSY, "retry_after": 3_600}, ANSWER)
    chat = world.start("Search.")
    assert turn(world, chat)["next"] == "failed"
    after = ended(world, chat)
    assert (after.credits_used, (after.error or {})["code"], calls(world)) == (0, "model_busy", 1)


def test_a_wait_may_end_a_minute_after_the_last_call_was_due(world: World) -> None:
    world.model.script.add({**BUSY, "retry_after": 50}, {"match": "Search.", "text": "So far."})
    chat = world.start("Search.")
    last = chat.deadline - ChatTimes().last_call
    world.clock.now = last - 20.0
    outcome = turn(world, chat, draw=0.0)
    assert (outcome["next"], outcome["seconds"]) == ("wait", 50)
    (wait,) = [event.data for event in world.stores.log(chat).events() if event.event == "retrying"]
    assert wait["until"][:19] == iso(last + 30.0)[:19]
    world.clock.sleep(50)
    assert turn(world, chat)["next"] == "answered"
    world.summarise(chat)
    assert ended(world, chat).stop == "timeout"


def test_no_chat_fails_while_it_has_time(world: World) -> None:
    """Busy until minute 11; the next call is the last one, and it is answered and charged."""
    world.model.script.add({**BUSY, "always": True})
    chat = world.start("Search.")
    while world.clock.now < chat.deadline - ChatTimes().last_call:
        outcome = turn(world, chat)
        assert outcome["next"] == "wait"
        world.clock.sleep(outcome["seconds"])
    assert world.clock.now < chat.deadline - ChatTimes().last_call + 2
    world.model.script.clear()
    world.model.script.add({"match": "Search.", "text": "So far."})
    assert turn(world, chat)["next"] == "answered"
    world.summarise(chat)
    after = ended(world, chat)
    assert (after.status, after.stop, after.credits_used) == ("done", "timeout", 5)


def test_a_model_still_busy_then_fails_the_chat_uncharged_at_once(world: World) -> None:
    world.model.script.add({**BUSY, "always": True})
    chat = world.start("Search.")
    world.clock.now = chat.deadline - ChatTimes().last_call
    assert turn(world, chat)["next"] == "failed"
    assert turn(world, chat)["next"] == "failed"
    assert calls(world) == 1
    after = ended(world, chat)
    assert (after.status, after.credits_used) == ("failed", 0)
    assert after.error == {"code": "model_busy", "message": BUSY_WORDS}


def test_text_of_a_stream_that_ended_as_overloaded_is_void(world: World) -> None:
    world.model.script.add({"match": "Search.", "text": "Never seen whole. " * 9, "error_after": 9}, ANSWER)
    chat = world.start("Search.")
    outcome = turn(world, chat)
    assert (outcome["next"], outcome["turn"]) == ("wait", 0)
    world.clock.sleep(outcome["seconds"])
    assert turn(world, chat)["next"] == "answered"
    world.summarise(chat)
    record = world.stores.history.record("ann", chat.conversation_id, "q1-r")
    assert record is not None
    assert record.content == "Port 8080."
    ended(world, chat)


def test_a_waiting_chat_can_be_cancelled(world: World) -> None:
    world.model.script.add(BUSY)
    chat = world.start("Search.")
    assert turn(world, chat)["next"] == "wait"
    executions: Any = world.executions
    cancel_chat(world.stores, executions, world.load(chat))
    after = ended(world, chat)
    assert (after.status, after.credits_used) == ("cancelled", 0)
    assert turn(world, chat)["next"] == "failed"
    assert calls(world) == 1


def test_a_chat_whose_answer_broke_off_as_overloaded_has_begun(world: World) -> None:
    """A byte came, so that cancelling costs the 5, and the text and its prompt are kept and counted."""
    world.model.script.add({"match": "Search.", "text": "Never seen whole. " * 9, "error_after": 9})
    chat = world.start("Search.")
    assert turn(world, chat)["next"] == "wait"
    executions: Any = world.executions
    cancel_chat(world.stores, executions, world.load(chat))
    after = ended(world, chat)
    assert (after.status, after.credits_used) == ("cancelled", 5)
    assert after.usage["input_tokens"] + after.usage["cache_write_tokens"] > 100
    assert after.usage["output_tokens"] > 1
