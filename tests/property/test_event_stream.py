"""The event stream over broken connections: nothing lost, nothing duplicated, the right text (CONTRACT 5)."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.errors import ModelUnavailable
from dualtrack.storage.event_log import read_events
from dualtrack.streaming.follow_events import EventReader, PollIntervals
from dualtrack.tool_values import ToolResult
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.clients.sse_reader import Reader
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from dualtrack.events import StoredEvent
    from dualtrack.storage.chats import Chat

QUICK = PollIntervals(heartbeat=60.0, busy=0.0, idle=0.0, busy_for=0.0)
ANSWER = (
    "The answer comes in pieces, with umlauts äöü, 💡 and\n\nblank lines:\n\ndata: x\nid: 99\n\n" * 3
    + "The end."
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with make_world(
        retrieve_documentation=lambda running: ToolResult("Found.\r\ndata: forged\n\n" * 50)
    ) as made:
        yield made


def steps_of(world: World, chat: Chat, key: str, end: str, cuts: int) -> list[Callable[[], Any]]:
    """The steps of a chat with two parallel tools, its last model call cut ``cuts`` times, with the end ``end``."""
    call = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}
    cut = {"match": key, "text": ANSWER, "chunk": 7, "cut_after": 12, "delay_chunk": 0.0}
    world.model.script.add(
        {"match": key, "content": [{"type": "text", "text": "Let me look."}, call, call]},
        *[cut] * cuts,
        {"match": key, "text": ANSWER, "chunk": 11, "delay_chunk": 0.0},
    )

    def anew() -> None:
        with pytest.raises(ModelUnavailable):
            world.turn(chat, 1)

    tools = [lambda: world.tool(chat, 1, "q1-t2"), lambda: world.tool(chat, 1, "q1-t1")]
    whole: list[Callable[[], Any]] = [
        lambda: world.turn(chat, 0), *tools, *[anew] * cuts, lambda: world.turn(chat, 1),
    ]  # fmt: skip
    ends: dict[str, Callable[[], Any]] = {
        "done": lambda: world.summarise(chat),
        "failed": lambda: world.abort(chat),
        "cancelled": lambda: _cancel(world, chat),
    }
    return [*(whole if end == "done" else whole[:-1]), ends[end]]


def _cancel(world: World, chat: Chat) -> None:
    executions: Any = world.executions
    cancel_chat(world.stores, executions, world.load(chat))


async def receive(stream: AsyncIterator[bytes], stored: int, reader: Reader, size: int | None) -> None:
    """One connection: up to ``size`` bytes (None: to its end), without waiting for events not yet stored."""
    received = b""
    fresh = Reader()
    while size is None or (len(received) < size and reader.last_id + len(fresh.events) < stored):
        piece = await anext(stream, None)
        if piece is None:
            break
        received += piece
        fresh = Reader(deltas=dict(reader.deltas))
        fresh.take(received)
    await stream.aclose()  # type: ignore[attr-defined]
    reader.take(received if size is None else received[:size])


def stored_events(world: World, chat: Chat) -> list[StoredEvent]:
    return list(read_events(world.stores.chats.client, "chats", chat.pk, consistent=True))


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(
    end=st.sampled_from(["done", "done", "failed", "cancelled"]),
    cuts=st.integers(0, 2),
    breaks=st.lists(st.lists(st.integers(0, 3_000), max_size=3), min_size=8, max_size=8),
    readers=st.integers(1, 2),
)
@settings(
    max_examples=12, derandomize=True, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_a_reconnecting_client_gets_every_event_once_and_the_answers_text(
    world: World, end: str, cuts: int, breaks: list[list[int]], readers: int
) -> None:
    key = f"{uuid.uuid4().hex}:"
    chat = world.start(f"{key} please look it up.", user=key)
    events = EventReader(world.stores.chats.client, "chats", world.clock, QUICK)
    clients = [Reader() for _ in range(readers)]
    for step, sizes in zip(
        [lambda: None, *steps_of(world, chat, key, end, cuts)], [*breaks, *[[]] * 8], strict=False
    ):
        step()
        stored = len(stored_events(world, chat))
        for index, size in enumerate(sizes):
            client = clients[index % readers]
            stream = events.follow(events.chat(chat.user, chat.chat_id), client.last_id)
            asyncio.run(receive(stream, stored, client, size))
    expected = [(event.id, event.event) for event in stored_events(world, chat)]
    for client in clients:
        stream = events.follow(events.chat(chat.user, chat.chat_id), client.last_id)
        asyncio.run(receive(stream, 0, client, None))
        assert [(number, kind) for number, kind, _ in client.events] == expected
        assert [number for number, _ in expected] == list(range(1, len(expected) + 1))
        assert client.events[-1][1] == ("error" if end == "failed" else "done")
        if end == "done":
            assert client.text == client.answer == ANSWER
        else:
            assert client.answer is None
