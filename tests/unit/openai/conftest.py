"""OpenAI's API of a module's tests, whose documentation search says one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack.tool_values import ToolResult

from tests.drivers.openai_door import Door, open_door

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with open_door(retrieve_documentation=lambda _: ToolResult("The port is 8000.")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def fresh(door: Door) -> None:
    """Nothing of the test before still runs, and the model has nothing left to say."""
    door.machine.wait()
    door.world.model.reset()
