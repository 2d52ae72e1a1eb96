"""What users see of a result while a chat runs: the hits, without the instructions to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.tool_values import Source, ToolResult

from tests.drivers.world import make_world, ref_of

if TYPE_CHECKING:
    from dualtrack.tools.running import Running


def test_the_event_of_a_result_shows_the_preview() -> None:
    def search(_: Running) -> ToolResult:
        return ToolResult("Rules for the model.\n\nA text.", sources=(Source("A"),), preview="A")

    with make_world(retrieve_documentation=search) as world:
        chat = world.ask("How do I set up OAuth for Twitter ads?")
        events = [event for event in world.stores.log(ref_of(chat)).events() if event.event == "tool_result"]
        assert [event.data["preview"] for event in events] == ["A"]
