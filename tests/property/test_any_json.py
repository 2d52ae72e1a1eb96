"""For any tool input by the model and any tool result, the chat ends ``done`` (CONTRACT 7).

The model is the strict offline one: it refuses in the next turn what Claude's service would refuse.
"""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tool_values import Media, Source, ToolResult
from dualtrack.tools.mcp.results import tool_result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tools.running import Running

ANY_TEXT = st.text(st.characters(), max_size=60)
"""Any text, including lone surrogates and NUL."""

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ANY_TEXT, inner, max_size=5),
    max_leaves=30,
)
PIECES = st.sampled_from(
    ['{"query":', '"x"', "[", "]", "{", "}", ",", "1e9999", "NaN", "\\ud800", '"', ":", "null"]
)
WRITTEN = st.one_of(
    ANY_JSON.map(json.dumps),
    st.fixed_dictionaries({"query": ANY_TEXT | ANY_JSON}).map(json.dumps),
    st.lists(PIECES, max_size=12).map("".join),
    st.integers(1, 400).map(lambda levels: '{"a":' * levels + "1" + "}" * levels),
)
"""A tool's input as the model may write it: JSON, and nearly JSON."""

DATA = st.one_of(ANY_TEXT, st.binary(max_size=40).map(lambda raw: base64.b64encode(raw).decode()))
TYPES = st.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]) | ANY_TEXT
RESULTS = st.builds(
    ToolResult,
    ANY_TEXT,
    is_error=st.booleans(),
    sources=st.lists(st.builds(Source, ANY_TEXT, ANY_TEXT), max_size=4).map(tuple),
    media=st.lists(st.builds(Media, TYPES, DATA), max_size=4).map(tuple),
)
NAMES = st.just("retrieve_documentation") | ANY_TEXT


@pytest.fixture(scope="module")
def brought() -> list[ToolResult]:
    """The results of the tool's next calls."""
    return []


@pytest.fixture(scope="module")
def world(brought: list[ToolResult]) -> Iterator[World]:
    def tool(running: Running) -> ToolResult:
        return brought[-1]

    with make_world(retrieve_documentation=tool) as new_world:
        yield new_world


def _status(world: World, *calls: tuple[str, str]) -> str:
    asked = [
        {"type": "tool_use", "name": _wire(name), "input": {}, "input_json": _wire(raw)}
        for name, raw in calls
    ]
    world.model.reset()
    world.model.script.add(
        {"match": "turn", "content": asked, "chunk": 1_000}, {"match": "turn", "text": "So."}
    )
    return world.ask("Do it.", user=f"user-{uuid.uuid4().hex}").status


def _wire(text: str) -> str:
    """The text as an HTTP stream can carry it; JSON escapes express the rest."""
    return text.encode("utf-8", "replace").decode()


LIGHT = settings(
    max_examples=10,  # each a whole chat over HTTP
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@LIGHT
@given(name=NAMES, raw=WRITTEN)
def test_any_input(world: World, brought: list[ToolResult], name: str, raw: str) -> None:
    brought.append(ToolResult("Found."))
    assert _status(world, (name, raw), ("retrieve_documentation", '{"query": "x"}')) == "done"


@LIGHT
@given(result=RESULTS)
def test_any_result(world: World, brought: list[ToolResult], result: ToolResult) -> None:
    brought.append(result)
    assert _status(world, ("retrieve_documentation", '{"query": "x"}')) == "done"


@LIGHT
@given(value=ANY_JSON)
@example(value=float("nan"))
def test_any_structured_content(world: World, brought: list[ToolResult], value: Any) -> None:
    carried = CallToolResult.model_construct(content=[], structured_content={"": value}, is_error=False)
    brought.append(tool_result(carried))
    assert _status(world, ("retrieve_documentation", '{"query": "x"}')) == "done"
