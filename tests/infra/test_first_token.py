"""The wait for the first token besides the model's own time, by the sizes of the functions and by counted requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack import first_token
from dualtrack_stack.costs import cold_seconds
from dualtrack_stack.first_token import Requests
from dualtrack_stack.stacks.function_specs import SPECS

from bench.function_memory import COLD, FILE
from tests.drivers.world import make_world

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat

    from tests.drivers.world import World

MOST_COLD, MOST_WARM = 3.0, 0.5
SIZES = {spec.name: spec.memory for spec in SPECS.values()}
CPU = json.loads(FILE.read_text())["cold_cpu_seconds"]


def counted(world: World, conversation_id: str) -> tuple[Requests, Chat]:
    """A chat's requests until its first token is written."""
    now, count = "admit", {"admit": 0, "prepare": 0, "write": 0}

    def sent(**_: Any) -> None:
        count["write" if now == "prepare" and world.model.requests else now] += 1

    world.model.reset()
    world.model.script.add({"match": "turn", "text": "An answer."})
    events = world.stores.chats.client.meta.events
    events.register("before-call.dynamodb", sent)
    chat = world.start("A question?", "ann", conversation_id)
    now = "prepare"
    world.turn(chat, 0)
    events.unregister("before-call.dynamodb", sent)
    assert count["write"]
    world.run(chat)
    return Requests(count["admit"], count["prepare"]), chat


def test_it_is_known_what_each_function_loads() -> None:
    assert set(CPU) == set(COLD) == {"api", "turn", "stream", "tool", "own", "summarise"}


def test_the_first_token_of_a_cold_stage_comes_soon_enough() -> None:
    assert first_token.cold(CPU, SIZES) <= MOST_COLD


def test_the_first_token_of_a_warm_stage_comes_soon_enough() -> None:
    with make_world() as world:
        first, chat = counted(world, "")
        follow_up, _ = counted(world, chat.conversation_id)
    for requests in (first, follow_up):
        assert first_token.warm(requests, SIZES) <= MOST_WARM


def test_a_cold_stream_overlaps_with_a_cold_turn() -> None:
    sizes = {"api": 1769, "turn": 1769, "stream": 1769}
    assert first_token.cold({"api": 0.5, "turn": 1.0, "stream": 0.25}, sizes) == pytest.approx(1.5)
    assert first_token.cold({"api": 0.5, "turn": 1.0, "stream": 2.0}, sizes) == pytest.approx(2.5)
    assert cold_seconds(0.5, 1769 // 2) == pytest.approx(1.0, rel=0.01)
