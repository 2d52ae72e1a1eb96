"""A chat ends while its tools run: what has begun is told, what has not never begins and costs nothing."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.chats import show_chat
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.run_tool import run_tool
from dualtrack.errors import Contended, TookTooLong
from dualtrack.storage.event_log import read_events
from dualtrack.tool_values import ToolResult

from tests.drivers.invariants import chat_faults
from tests.drivers.world import World, make_world, ref_of, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

CALL = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
TOLD = "began; the chat was stopped; it may have run"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


@pytest.fixture
def chat(world: World) -> Chat:
    """A chat whose turn asks for three tools: one reads, one changes something, one may do so twice."""
    world.model.script.clear()
    world.model.script.add({"match": "turn", "content": [CALL, CALL, CALL]})
    started = world.start("Do it.", user=f"user-{uuid.uuid4().hex}")
    world.turn(started, 0)
    chat = world.load(started)
    turn = world.stores.chats.turn(chat, 1)
    assert turn is not None
    reads, changes, sets = turn.calls
    calls = (
        reads,
        replace(changes, effect="changes", repeatable=False),
        replace(sets, effect="changes", repeatable=True),
    )
    store(world.stores, world.stores.chats.decide_writes(chat, turn, replace(turn, calls=calls)))
    return chat


def run(world: World, chat: Chat, number: int, execute: Callable[[Running], ToolResult]) -> None:
    run_tool(replace(ref_of(chat), turn=1), f"q1-t{number}", world.stores, execute, 60.0)


def dies(_: Running) -> ToolResult:
    raise Contended("the process ends before the result is recorded")


def begin(world: World, chat: Chat, *numbers: int) -> None:
    for number in numbers:
        with pytest.raises(Contended):
            run(world, chat, number, dies)


def cancelled(world: World, chat: Chat) -> Chat:
    executions: Any = world.executions
    return cancel_chat(world.stores, executions, world.load(chat))


def statuses(world: World, chat: Chat) -> dict[str, str]:
    return {call["id"]: call["status"] for call in show_chat(world.stores, world.load(chat))["tool_calls"]}


def differences(world: World, chat: Chat) -> list[str]:
    """Of the receipt, and of the invariants of the crash matrix."""
    chat = world.load(chat)
    receipt = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())
    return [*receipt["differences"], *chat_faults(world.stores, chat)]


def test_what_has_begun_is_in_tool_calls_while_it_runs(world: World, chat: Chat) -> None:
    assert statuses(world, chat) == {"q1-t1": "begun"}
    begin(world, chat, 2)
    assert statuses(world, chat) == {"q1-t1": "begun", "q1-t2": "begun"}
    run(world, chat, 1, lambda _: ToolResult("found"))
    assert statuses(world, chat) == {"q1-t1": "done", "q1-t2": "begun"}


@pytest.mark.parametrize("begun", [(), (2,), (3,), (2, 3)])
def test_a_cancelled_chat_tells_what_had_begun_and_pays_for_nothing_else(
    world: World, chat: Chat, begun: tuple[int, ...]
) -> None:
    begin(world, chat, *begun)
    ended = cancelled(world, chat)
    ids = ["q1-t1", *(f"q1-t{number}" for number in begun)]
    assert statuses(world, chat) == dict.fromkeys(ids, "unknown")
    assert ended.credits_used == 5 + 2 * len(ids)
    track = world.stores.history.track(chat.user, chat.conversation_id, 1)
    assert track
    assert [block.content for block in track.blocks if block.ref.startswith("q1-t")] == [
        f"(data from retrieve_full_context) {TOLD}"
    ] * len(ids)
    records = world.stores.history.query_records(chat.user, chat.conversation_id, 1)
    assert [record.content for record in records if record.call] == [TOLD] * len(ids)
    events = read_events(world.stores.chats.client, world.stores.chats.table, chat.pk, consistent=True)
    assert [event.data["status"] for event in events if event.event == "tool_result"] == ["unknown"] * len(
        ids
    )
    assert differences(world, chat) == []


def test_what_had_not_begun_never_begins(world: World, chat: Chat) -> None:
    running = world.load(chat)
    cancelled(world, chat)
    assert world.stores.chats.begin(running, "q1-t2") == "forestalled"
    ran: list[str] = []

    def notes(call: Running) -> ToolResult:
        ran.append(call.call.id)
        return ToolResult("late")

    for number in (1, 2, 3):
        run(world, chat, number, notes)
    assert ran == []


def test_a_call_that_begins_as_the_chat_is_cancelled_is_told(
    world: World, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the mark between the end's read and its write, so the end is decided anew."""
    read, begun = type(world.stores.chats).marks, []

    def marks(self: Any, of: Chat) -> Any:
        found = read(self, of)
        if not begun:
            begun.append(self.begin(of, "q1-t2"))
        return found

    monkeypatch.setattr(type(world.stores.chats), "marks", marks)
    assert cancelled(world, chat).credits_used == 5 + 2 + 2
    assert begun == ["first"]
    assert statuses(world, chat) == {"q1-t1": "unknown", "q1-t2": "unknown"}
    assert differences(world, chat) == []


def test_a_failed_chat_tells_what_had_begun_and_costs_nothing(world: World, chat: Chat) -> None:
    begin(world, chat, 2)
    world.abort(chat)
    assert (world.load(chat).status, world.load(chat).credits_used) == ("failed", 0)
    assert statuses(world, chat) == {"q1-t1": "unknown", "q1-t2": "unknown"}
    assert differences(world, chat) == []


def test_a_dead_call_that_never_began_costs_nothing_in_an_answered_chat(world: World, chat: Chat) -> None:
    begin(world, chat, 2)
    run(world, chat, 1, lambda _: ToolResult("found"))
    world.model.script.clear()
    world.model.script.add({"match": "turn", "text": "It is done."})
    assert world.turn(chat, 1)["next"] == "answered"
    world.summarise(chat)
    assert statuses(world, chat) == {"q1-t1": "done", "q1-t2": "unknown", "q1-t3": "failed"}
    assert world.load(chat).credits_used == 5 + 2 + 2
    assert differences(world, chat) == []


def test_what_may_run_twice_does(world: World, chat: Chat) -> None:
    begin(world, chat, 2, 3)
    ran: list[str] = []

    def notes(call: Running) -> ToolResult:
        ran.append(call.call.id)
        return ToolResult("again")

    for number in (2, 3):
        run(world, chat, number, notes)
    assert ran == ["q1-t3"]
    assert statuses(world, chat) == {"q1-t1": "begun", "q1-t2": "unknown", "q1-t3": "done"}


def test_of_a_call_that_took_too_long_it_is_unknown_whether_it_took_effect(world: World, chat: Chat) -> None:
    def late(_: Running) -> ToolResult:
        raise TookTooLong("the tool", 1.0)

    for number in (1, 2):
        run(world, chat, number, late)
    assert statuses(world, chat) == {"q1-t1": "failed", "q1-t2": "unknown"}
