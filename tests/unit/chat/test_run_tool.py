"""A tool call over real stores: whatever the tool does, exactly one result is recorded."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError
from dualtrack.chat.run_tool import run_tool
from dualtrack.errors import Contended
from dualtrack.memory.sending import Sending
from dualtrack.models.receipt_data import TurnCall
from dualtrack.models.turn import ModelReply, ToolCall, TurnDecision
from dualtrack.storage.event_log import read_events
from dualtrack.tool_values import ToolResult, reason_of

from tests.drivers.world import World, make_world, ref_of, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.memory.records import Record
    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

CALL = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


@pytest.fixture
def chat(world: World) -> Chat:
    """A chat whose first turn has asked for one tool."""
    world.model.script.clear()
    world.model.script.add({"match": "turn", "content": [CALL]})
    started = world.start("Look it up.", user=f"user-{uuid.uuid4().hex}")
    assert world.turn(started, 0) == {"turn": 1, "next": "tools", "calls": [{"id": "q1-t1", "fn": "tool"}]}
    return world.load(started)


def run(world: World, chat: Chat, execute: Callable[[Running], ToolResult], seconds: float = 60.0) -> None:
    assert run_tool(replace(ref_of(chat), turn=1), "q1-t1", world.stores, execute, seconds) == {}


def result(world: World, chat: Chat) -> Record:
    record = world.stores.history.record(chat.user, chat.conversation_id, "q1-t1")
    assert record is not None
    return record


def event_names(world: World, chat: Chat) -> list[str]:
    events = read_events(world.stores.chats.client, world.stores.chats.table, chat.pk, consistent=True)
    return [event.event for event in events]


def raises(error: Exception) -> Callable[[Running], ToolResult]:
    def execute(running: Running) -> ToolResult:
        raise error

    return execute


def test_a_tool_that_hangs_gives_an_error_result_within_the_time_of_its_function(
    world: World, chat: Chat
) -> None:
    never = threading.Event()

    def hangs(running: Running) -> ToolResult:
        never.wait(30)
        return ToolResult("too late")

    run(world, chat, hangs, seconds=5.2)  # five of them are reserved for recording
    never.set()
    record = result(world, chat)
    assert record.call is not None
    assert record.call.is_error
    assert record.content == "Tool execution failed: it did not answer within 0 seconds."
    assert event_names(world, chat)[-1] == "tool_result"


def test_a_tool_that_raises_gives_an_error_result_without_its_message(
    world: World, chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    """The stack trace is in the log alone."""
    run(world, chat, raises(KeyError("a secret")))
    assert "Traceback" in caplog.text
    assert "a secret" in caplog.text
    record = result(world, chat)
    assert record.content == "Tool execution failed: KeyError."
    assert record.call is not None
    assert record.call.is_error


def test_a_value_error_is_about_the_arguments_so_the_model_is_told(world: World, chat: Chat) -> None:
    run(world, chat, raises(ValueError(f"no such city:\n{'x' * 2_000}")))
    said = result(world, chat).content
    assert said.startswith("Tool execution failed: no such city: xxx")
    assert len(said) < 1_100
    assert reason_of(ValueError()) == "ValueError."
    assert reason_of(UnicodeDecodeError("utf-8", b"", 0, 1, "a secret")) == "UnicodeDecodeError."


@pytest.mark.parametrize(
    "error",
    [Contended("busy"), ClientError({"Error": {"Code": "InternalServerError", "Message": ""}}, "GetItem")],
)
def test_an_error_of_our_own_stores_is_raised_for_a_retry(world: World, chat: Chat, error: Exception) -> None:
    before = event_names(world, chat)
    with pytest.raises(type(error)):
        run(world, chat, raises(error))
    assert event_names(world, chat) == before
    assert not world.stores.history.has_record(chat.user, chat.conversation_id, "q1-t1")


def test_a_recorded_call_is_not_run_again(world: World, chat: Chat) -> None:
    run(world, chat, lambda running: ToolResult("first"))
    after = event_names(world, chat)
    run(world, chat, raises(AssertionError("it must not run")))
    assert result(world, chat).content == "first"
    assert event_names(world, chat) == after


def test_of_two_concurrent_runs_one_is_recorded(world: World, chat: Chat) -> None:
    both = threading.Barrier(2)

    def meets(running: Running) -> ToolResult:
        both.wait(10)
        return ToolResult(threading.current_thread().name)

    runs = [threading.Thread(target=run, args=(world, chat, meets)) for _ in range(2)]
    for attempt in runs:
        attempt.start()
    for attempt in runs:
        attempt.join()
    assert event_names(world, chat).count("tool_result") == 1


def test_a_non_repeatable_call_runs_once_and_its_retry_reports_an_unknown_outcome(
    world: World, chat: Chat
) -> None:
    turn = world.stores.chats.turn(chat, 1)
    assert turn is not None
    (call,) = turn.calls
    world.stores.chats.client.delete_item(
        TableName=world.stores.chats.table, Key={"pk": {"S": chat.pk}, "sk": {"S": "TURN#001"}}
    )
    _store_turn(world, chat, replace(call, repeatable=False))
    ran: list[str] = []

    def dies(running: Running) -> ToolResult:
        ran.append(running.call.id)
        raise Contended("the process ends before the result is recorded")

    with pytest.raises(Contended):
        run(world, chat, dies)
    run(world, chat, dies)
    assert ran == ["q1-t1"]
    assert "may or may not have taken effect" in result(world, chat).content


def _store_turn(world: World, chat: Chat, call: ToolCall) -> None:
    """Rewrite the turn's item with another call."""
    decision = TurnDecision("tools", "", (call,))
    store(
        world.stores,
        world.stores.chats.turn_writes(
            chat, 1, ModelReply((), "tool_use"), decision, chat, Sending(), TurnCall("", 0.0)
        ),
    )


def test_nothing_is_recorded_once_the_chat_has_ended(world: World, chat: Chat) -> None:
    def ends(running: Running) -> ToolResult:
        world.abort(chat)
        return ToolResult("late")

    run(world, chat, ends)
    assert event_names(world, chat)[-1] == "error"
    assert result(world, chat).content == "began; the chat was stopped; it may have run"


def test_a_call_that_was_not_asked_for_is_not_run(world: World, chat: Chat) -> None:
    ref = replace(ref_of(chat), turn=1)
    for call_id in ("q1-t2", "q2-t1", ""):
        assert run_tool(ref, call_id, world.stores, raises(AssertionError("it must not run")), 60.0) == {}
    assert event_names(world, chat).count("tool_result") == 0
