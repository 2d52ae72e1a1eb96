"""What a cancelled chat keeps of the turn that was running (CONTRACT 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.chats import show_chat
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.events import delta, turn_begins
from dualtrack.frozen import thaw
from dualtrack.models.receipt_data import Heard
from dualtrack.models.turn import Usage
from dualtrack.tool_values import ToolResult

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import Stores

LONG = "First of all, the service is configured.\n\n- one\n- two\n\n" + "Then it is started. " * 60
STOPPED = "(stopped by the user)"


@pytest.fixture
def world() -> Iterator[World]:
    with make_world(retrieve_documentation=lambda _: ToolResult("Port 8080.")) as new_world:
        yield new_world


def begin(world: World, chat: Chat, turn: int, *pieces: str) -> None:
    """A model call begins and streams text; nothing of it is recorded."""
    log = world.stores.log(chat)
    log.append([turn_begins(turn, 15, final=False)])
    tries = sum(event.event == "turn" and event.data["turn"] == turn for event in log.events())
    world.stores.chats.hear(chat, Heard(turn, tries, "claude-haiku-5-5", usage=Usage(100)))
    for piece in pieces:
        log.append([delta(turn, piece)])


def cancel(world: World, chat: Chat) -> Any:
    """The chat object after the cancel: the same from the API and in the last event, with no invariant broken."""
    executions: Any = world.executions
    ended = cancel_chat(world.stores, executions, world.load(chat))
    shown = show_chat(world.stores, ended)
    last = world.stores.log(chat).events()[-1]
    assert last.event == "done"
    assert thaw({name: last.data[name] for name in shown}) == shown
    assert chat_faults(world.stores, ended) == []
    assert account_faults(world.stores, chat.user, [ended]) == []
    return shown


def response_of(world: World, chat: Chat) -> tuple[str, str]:
    record = world.stores.history.record(chat.user, chat.conversation_id, "q1-r")
    assert record is not None
    return record.content, record.stop


def past_of(world: World, chat: Chat) -> list[str]:
    """What the next query sends of this one."""
    world.model.reset()
    following = world.ask("And then?", conversation_id=chat.conversation_id)
    assert following.status == "done"
    request = next(call.body for call in world.model.requests if call.body.get("stream"))
    return [block["text"] for message in request["messages"][:2] for block in message["content"]]


@pytest.mark.parametrize("pieces", [None, (), (" \n",)])
def test_without_text_there_is_no_answer(world: World, pieces: tuple[str, ...] | None) -> None:
    chat = world.start("Go.")
    if pieces is not None:
        begin(world, chat, 1, *pieces)
    shown = cancel(world, chat)
    assert (shown["stop"], shown["response"], shown["summary"]) == ("cancelled", None, None)
    assert shown["credits_used"] == (0 if pieces is None else 5)
    assert response_of(world, chat) == ("(no answer: cancelled)", "")
    assert past_of(world, chat) == ["[ID:q1] Go.", "[ID:q1-r] (no answer: cancelled)"]


def test_text_of_the_first_turn_is_kept_and_an_extract_is_sent(world: World) -> None:
    chat = world.start("Go.")
    begin(world, chat, 1, LONG[:30], LONG[30:])
    shown = cancel(world, chat)
    assert (shown["stop"], shown["response"], shown["credits_used"], shown["turns"]) == (
        "cancelled",
        LONG,
        5,
        0,
    )
    assert response_of(world, chat) == (LONG, "cancelled")
    _, said = past_of(world, chat)
    assert said.startswith(
        "[ID:q1-r-sum, ref:q1-r, 1 KB] First of all, the service is configured. - one - two Then"
    )
    assert said.endswith(f"… {STOPPED}")
    assert len(said) < 400


def test_a_short_text_is_its_own_extract(world: World) -> None:
    chat = world.start("Go.")
    begin(world, chat, 1, "Two ways:\n", "- one\n")
    cancel(world, chat)
    assert past_of(world, chat)[1] == f"[ID:q1-r] Two ways:\n- one {STOPPED}"


def test_the_next_query_reads_the_kept_text_whole(world: World) -> None:
    chat = world.start("Go.")
    begin(world, chat, 1, LONG)
    cancel(world, chat)
    ask = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-r"}}
    world.model.script.add({"match": "Go on.", "content": [ask]})
    world.ask("Go on.", conversation_id=chat.conversation_id)
    sent = [request.body for request in world.model.requests if request.body.get("stream")][-1]
    (result,) = [block for block in sent["messages"][-1]["content"] if block["type"] == "tool_result"]
    assert LONG in result["content"][0]["text"]


def test_after_tools_only_the_running_turns_text_is_kept_as_the_answer(world: World) -> None:
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
    world.model.script.add({"match": "Go.", "content": [{"type": "text", "text": "Looking."}, ask]})
    chat = world.start("Go.")
    assert world.turn(chat, 0)["next"] == "tools"
    world.tool(chat, 1, "q1-t1")
    begin(world, chat, 2, "It is 80")
    shown = cancel(world, chat)
    assert (shown["response"], shown["credits_used"], shown["turns"]) == ("It is 80", 15, 1)
    records = world.stores.history.query_records(chat.user, chat.conversation_id, 1)
    assert [record.record_id for record in records] == ["q1", "q1-a1", "q1-t1", "q1-r"]
    assert past_of(world, chat)[1:] == [
        "[ID:q1-t1] (data from retrieve_documentation) Port 8080.",
        f"[ID:q1-r] It is 80 {STOPPED}",
    ]


def test_between_two_turns_recorded_text_is_not_an_answer(world: World) -> None:
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
    world.model.script.add({"match": "Go.", "content": [{"type": "text", "text": "Looking."}, ask]})
    chat = world.start("Go.")
    world.turn(chat, 0)
    assert cancel(world, chat)["response"] is None
    assert response_of(world, chat) == ("(no answer: cancelled)", "")


def test_a_repeated_turn_voids_what_it_had_written(world: World) -> None:
    chat = world.start("Go.")
    begin(world, chat, 1, "Void")
    begin(world, chat, 1, "Va", "lid")
    assert cancel(world, chat)["response"] == "Valid"
    other = world.start("Go.", "eve")
    begin(world, other, 1, "Void")
    begin(world, other, 1)
    assert cancel(world, other)["response"] is None


def test_a_long_text_is_kept_whole(world: World) -> None:
    """Longer than any model's answer; its record is in the body store."""
    chat = world.start("Go.")
    text = "A paragraph of the answer.\n" * 20_000
    begin(world, chat, 1, text[:250_000], text[250_000:])
    assert cancel(world, chat)["response"] == text
    assert response_of(world, chat) == (text, "cancelled")
    assert len(past_of(world, chat)[1]) < 400


class Writing:
    """A log whose chat goes on writing: each of the first `looks` reads of the events adds a piece."""

    def __init__(self, world: World, chat: Chat, looks: int) -> None:
        self.looks = looks
        self.inner = world.stores.log(chat)
        self.other = world.stores.log(chat)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def events(self) -> Any:
        events = self.inner.events()
        if self.looks:
            self.looks -= 1
            self.other.append([delta(1, "more ")])
        return events


@pytest.mark.parametrize(("looks", "kept"), [(1, 2), (7, 8), (100, 8)])
def test_text_that_arrives_during_the_close_is_kept_without_delaying_it(
    world: World, monkeypatch: pytest.MonkeyPatch, looks: int, kept: int
) -> None:
    chat = world.start("Go.")
    begin(world, chat, 1, "more ")
    writing = Writing(world, chat, looks)
    log_of = type(world.stores).log

    def log(stores: Stores, ref: Any) -> EventLog:
        writing.inner = log_of(stores, ref)
        return writing  # type: ignore[return-value]

    with monkeypatch.context() as patched:
        patched.setattr(type(world.stores), "log", log)
        executions: Any = world.executions
        ended = cancel_chat(world.stores, executions, world.load(chat))
    assert ended.status == "cancelled"
    assert response_of(world, chat)[0] == "more " * kept
    assert chat_faults(world.stores, ended) == []
