"""The event stream on the wire: numbers without a gap, resumed anywhere, read by several at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack.clock import iso
from dualtrack.dynamo import transact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Script
    from tests.fakes.stack_client import Person, Root
    from tests.fakes.tool_server import ToolServer


def _scripted(script: Script) -> str:
    script.asks(("kit_echo", {"text": "a"}), ("kit_echo", {"text": "b"}), text="Let me look.")
    script.says("The answer in several pieces, one after the other.", chunk=6, delay_chunk=0.05)
    return script.question()


def test_the_events_of_a_chat_tell_its_story_in_order(ann: Person, script: Script) -> None:
    started = ann.start(_scripted(script))
    events = ann.events(started["chat_id"])
    chat = ann.chat(started["chat_id"])
    assert {event.data["chat_id"] for event in events} == {chat["chat_id"]}
    assert all(event.data["at"].endswith("Z") for event in events)
    told = [event.kind for event in events if event.kind not in ("record", "delta", "credits")]
    assert told == [
        "turn",
        "tool_calls_start",
        "tool_result",
        "tool_result",
        "turn",
        "answer",
        "done",
    ]
    by_kind = {event.kind: event.data for event in events}
    assert by_kind["answer"]["response"] == "The answer in several pieces, one after the other."
    assert {key: by_kind["done"][key] for key in chat} == chat
    turns = {1: "Let me look.", 2: by_kind["answer"]["response"]}
    for turn, text in turns.items():
        deltas = [
            event.data["text"] for event in events if event.kind == "delta" and event.data["turn"] == turn
        ]
        assert "".join(deltas) == text
    records = [event.data["record_id"] for event in events if event.kind == "record"]
    assert records[:2] == ["q1", "q1-a1"]
    assert sorted(records[2:4]) == ["q1-t1", "q1-t2"]
    assert records[4] == "q1-r"
    money = [
        (event.data["used"], event.data["held"], event.data["available"])
        for event in events
        if event.kind == "credits"
    ]
    assert money == [(0, 5, 45), (0, 9, 41), (9, 0, 41)]


def test_a_reader_resumes_after_any_event_and_two_readers_see_the_same(ann: Person, script: Script) -> None:
    started = ann.start(_scripted(script))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: ann.events(started["chat_id"]), range(2))
    assert first == second
    for place in range(len(first)):
        assert ann.events(started["chat_id"], after=place) == first[place:]
    assert list(ann.stream(started["chat_id"], after=len(first))) == []


def test_a_reader_that_drops_out_goes_on_where_it_was(tools: ToolServer, ann: Person, script: Script) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    started = ann.start(script.question())
    seen = ann.until(started["chat_id"], lambda event: event.kind == "tool_calls_start")
    assert tools.place(script.marker).arrived.wait(30)
    tools.place(script.marker).released.set()
    rest = ann.events(started["chat_id"], after=seen[-1].id)
    assert seen + rest == ann.events(started["chat_id"])


@pytest.mark.parametrize("header", ["-1", "one", "1.5", "9" * 12, "١"])
def test_a_position_that_is_none_is_refused(ann: Person, script: Script, header: str) -> None:
    script.says("Done.")
    chat = ann.ask(script.question())
    response = ann.http.get(
        f"/v1/chats/{chat['chat_id']}/events",
        headers={b"Last-Event-ID": header.encode()},
    )
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")


def test_events_can_be_read_for_a_day_after_the_end(root: Root, ann: Person, script: Script) -> None:
    script.says("Done.")
    chat = ann.ask(script.question())
    for hours, status in ((23.9, 200), (24.1, 404)):
        _let_it_have_ended(root, ann, chat["chat_id"], time.time() - hours * 3600)
        assert ann.http.get(f"/v1/chats/{chat['chat_id']}/events").status_code == status


def _let_it_have_ended(root: Root, person: Person, chat_id: str, at: float) -> None:
    chats = root.stores().chats
    chat = chats.load(person.id, chat_id)
    assert chat is not None
    transact(root.client("dynamodb"), [chats.change_action(chat, replace(chat, ended_at=iso(at)))])


def test_every_reader_needs_a_token_of_its_own(someone: Callable[[], Person], script: Script) -> None:
    ann, bob = someone(), someone()
    script.says("Done.")
    chat = ann.ask(script.question())
    assert bob.http.get(f"/v1/chats/{chat['chat_id']}/events").status_code == 404
    bare = bob.http.get(f"/v1/chats/{chat['chat_id']}/events", headers={"Authorization": ""})
    assert bare.status_code == 401
