"""The metric for a turn's first text is emitted once, and only if there is text."""

from __future__ import annotations

from typing import Any

from dualtrack.chat.turn_attempt import TurnCallbacks

from tests.drivers.world import make_world, ref_of

ASK: dict[str, Any] = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}


def emitted(content: list[dict[str, Any]]) -> list[float]:
    seconds: list[float] = []
    with make_world() as world:
        world.model.script.add({"match": "Hello.", "content": content})
        world.take_turn(ref_of(world.start("Hello.")), TurnCallbacks(first_text=seconds.append))
    return seconds


def test_the_first_text_of_a_turn_is_measured_once() -> None:
    (seconds,) = emitted([{"type": "text", "text": "A long answer, streamed in pieces. " * 20}])
    assert seconds >= 0


def test_a_turn_without_text_emits_nothing() -> None:
    assert emitted([ASK]) == []
