"""A chat keeps the provider that it began with, whatever is deployed while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.summarise import summarise
from dualtrack.models.thinking import Thinking

from tests.drivers.world import make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.models.protocol import Model

    from tests.drivers.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def test_turns_and_summaries_keep_the_provider_they_began_with(world: World) -> None:
    chat = world.start("What did the documentation say about pagination? kept-provider")
    world.model.script.add(
        {"content": [{"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}]},
        {"text": "It said so."},
    )
    assert world.turn(chat, 0)["next"] == "tools"
    asked: list[str] = []

    def served_by(provider: str) -> Model:
        asked.append(provider)
        return world.claude

    elsewhere = AgentDeployment("claude-haiku-5-5", Thinking(), "bedrock")
    world.tool(chat, 1, "q1-t1")
    assert (
        world.take_turn(replace(ref_of(chat), turn=1), serve=served_by, deployed=elsewhere)["next"]
        == "answered"
    )
    summarise(ref_of(chat), world.stores, served_by, world.summaries, "bedrock")
    assert world.load(chat).status == "done"
    assert asked == ["anthropic", "anthropic"]
