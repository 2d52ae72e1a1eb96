"""OpenAI's API of a module's tests, whose documentation search says one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack.tool_values import ToolResult

from tests.plugins.openai.door import Door, open_door

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def opened() -> Iterator[Door]:
    with open_door(retrieve_documentation=lambda _: ToolResult("The port is 8000.")) as door:
        yield door


@pytest.fixture
def door(opened: Door) -> Door:
    """Nothing of the test before still runs, and the model has nothing left to say."""
    opened.machine.wait()
    opened.world.model.reset()
    return opened
