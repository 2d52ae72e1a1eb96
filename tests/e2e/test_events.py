"""The event stream on the wire: numbers without a gap, resumable anywhere, several readers at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack.clock import iso
from dualtrack.storage.dynamo import get, transact
from dualtrack.storage.leases import STREAMS, WAITS

from tests.clients.stack_client import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from httpx import Response

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer


def _scripted(script: Script) -> str:
    script.asks(("kit_echo", {"text": "a"}), ("kit_echo", {"text": "b"}), text="Let me look.")
    script.says("The answer in several pieces, one after the other.", chunk=6, delay_chunk=0.05)
    return script.question()


def test_the_events_of_a_chat_are_complete_and_in_order(ann: Person, script: Script) -> None:
    started = ann.start(_scripted(script))
    events = ann.events(started["chat_id"])
    chat = ann.chat(started["chat_id"])
    assert {event.data["chat_id"] for event in events} == {chat["chat_id"]}
    assert all(event.data["at"].endswith("Z") for event in events)
    kinds = [event.kind for event in events if event.kind not in ("record", "delta", "credits")]
    assert kinds == [
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
    for number in range(len(first)):
        assert ann.events(started["chat_id"], after=number) == first[number:]
    assert list(ann.stream(started["chat_id"], after=len(first))) == []


def test_a_disconnected_reader_continues_where_it_was(tools: ToolServer, ann: Person, script: Script) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    started = ann.start(script.question())
    seen = ann.until(started["chat_id"], lambda event: event.kind == "tool_calls_start")
    assert tools.gate(script.marker).arrived.wait(30)
    tools.gate(script.marker).released.set()
    rest = ann.events(started["chat_id"], after=seen[-1].id)
    assert seen + rest == ann.events(started["chat_id"])


@pytest.mark.parametrize("header", ["-1", "one", "1.5", "9" * 12, "١"])
def test_an_invalid_position_is_refused(ann: Person, script: Script, header: str) -> None:
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


def test_every_reader_needs_its_own_token(someone: Callable[[], Person], script: Script) -> None:
    ann, bob = someone(), someone()
    script.says("Done.")
    chat = ann.ask(script.question())
    assert bob.http.get(f"/v1/chats/{chat['chat_id']}/events").status_code == 404
    bare = bob.http.get(f"/v1/chats/{chat['chat_id']}/events", headers={"Authorization": ""})
    assert bare.status_code == 401


# ── how many at a time ────────────────────────────────────────────────────────────────────────────


def _open(person: Person, chat_id: str, streams: ExitStack) -> int:
    """Open a stream and keep it open; its status."""
    response = streams.enter_context(person.http.stream("GET", f"/v1/chats/{chat_id}/events"))
    if response.status_code == 200:
        pieces = response.iter_raw()
        next(pieces)
        streams.callback(pieces.close)  # type: ignore[attr-defined]  # it closes the stream when it is forgotten
    else:
        response.read()
        assert response.json()["error"]["code"] == "rate_limited"
        assert 1 <= int(response.headers["Retry-After"]) <= 10
    return response.status_code


def _held_chat(person: Person, script: Script) -> str:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held.")
    return str(person.start(script.question())["chat_id"])


def test_a_user_has_five_streams_and_a_sixth_when_one_closes(
    tools: ToolServer, someone: Callable[[], Person], script: Script
) -> None:
    ann, bob = someone(), someone()
    chat_id = _held_chat(ann, script.branch("ann"))
    other = _held_chat(bob, script.branch("bob"))
    with ExitStack() as streams:
        first = streams.enter_context(ExitStack())
        assert _open(ann, chat_id, first) == 200
        assert [_open(ann, chat_id, streams) for _ in range(6)] == [200] * 4 + [429] * 2
        assert [_open(bob, other, streams) for _ in range(2)] == [200] * 2, "others are not affected"
        first.close()
        wait_for(lambda: _open(ann, chat_id, streams) == 200)
        assert _open(ann, chat_id, streams) == 429
    for name in ("ann", "bob"):
        tools.gate(script.branch(name).marker).released.set()


def test_of_twelve_concurrent_streams_five_are_opened(tools: ToolServer, ann: Person, script: Script) -> None:
    chat_id = _held_chat(ann, script)
    with ExitStack() as streams, ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda _: _open(ann, chat_id, streams), range(12)))
    assert sorted(statuses) == [200] * 5 + [429] * 7
    tools.gate(script.marker).released.set()


def test_streams_closed_by_the_server_are_resumed_at_once(
    tools: ToolServer, ann: Person, script: Script
) -> None:
    chat_id = _held_chat(ann, script)
    with ThreadPoolExecutor(STREAMS.limit) as pool:
        reading = [pool.submit(ann.events, chat_id) for _ in range(STREAMS.limit)]
        assert tools.gate(script.marker).arrived.wait(30)
        tools.gate(script.marker).released.set()
        ends = [reader.result()[-1].id for reader in reading]
        assert list(pool.map(lambda end: list(ann.stream(chat_id, after=end)), ends)) == [[]] * STREAMS.limit


def test_three_requests_wait_and_the_fourth_is_answered_at_once(
    root: Root, tools: ToolServer, someone: Callable[[], Person], script: Script
) -> None:
    ann, bob = someone(), someone()
    root.grant(ann.id)  # what eight chats at once hold

    def waiting_beside_another(time: str) -> list[int]:
        """The statuses of ann's three that wait and of bob's, once her fourth was answered before them."""

        def waits(name: str) -> Response:
            branch = script.branch(time + name)
            branch.asks(("kit_hold", {"name": branch.marker}))
            branch.says("Held.")
            return ann.post(branch.question(), wait="25")

        script.branch(time + "bob").says("Hello.")
        with ThreadPoolExecutor(WAITS.limit + 1) as pool:
            waiting = [pool.submit(waits, str(number)) for number in range(WAITS.limit)]
            wait_for(lambda: _leases(root, ann) == WAITS.limit)
            another = pool.submit(bob.post, script.branch(time + "bob").question(), wait="25")
            assert waits("fourth").status_code == 202
            assert not any(request.done() for request in waiting), "it was answered before the waiting ones"
            for name in ("0", "1", "2", "fourth"):
                tools.gate(script.branch(time + name).marker).released.set()
            return [request.result().status_code for request in (*waiting, another)]

    # the first time starts as many of each function as the second needs, which would take its time off the 25 s
    waiting_beside_another("first ")
    assert waiting_beside_another("second ") == [200] * (WAITS.limit + 1)
    assert _leases(root, ann) == 0


def _leases(root: Root, person: Person) -> int:
    key = {"pk": f"LEASE#{person.id}", "sk": WAITS.kind}
    item = get(root.client("dynamodb"), root.settings.cache_table, key)
    return len(item["leases"]) if item else 0
