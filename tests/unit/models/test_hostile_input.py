"""Whatever a model writes into a tool call, it runs or its result names the fault; the chat goes on (CONTRACT 7)."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def ask(world: World, *blocks: dict[str, Any], **more: Any) -> Chat:
    """A chat whose first turn has these blocks."""
    world.model.reset()
    world.model.script.add({"match": "turn", "content": blocks, **more}, {"match": "turn", "text": "So."})
    return world.ask("Do it.", user=f"user-{uuid.uuid4().hex}")


def use(raw: str, name: str = "retrieve_full_context") -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": {}, "input_json": raw}


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def results(world: World, chat: Chat) -> list[str]:
    records = world.stores.history.query_records(chat.user, chat.conversation_id, 1)
    return [record.content for record in records if record.call]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (nested(300), "it is nested more than 100 levels deep"),
        (nested(100_000 // 6), "it is nested more than 100 levels deep"),
        ('{"id": "\\ud800"}', "it has half of a surrogate pair"),
        ('{"\\udc00": 1}', "it has half of a surrogate pair"),
        ('{"id": NaN}', "it has a number that is not finite"),
        ('{"id": -Infinity}', "it has a number that is not finite"),
        ('{"id": 1e999}', "it has a number that is not finite"),
        ('{"id": ' + "9" * 400 + "}", "it has a number that is not finite"),
        ('{"id": ' + "9" * 9_000 + "}", "it has a number that is not finite"),
        ('{"id": "' + "x" * 3_000_000 + '"}', "it has more than 100,000 characters"),
        ('{"id": "q1"', "it is not valid JSON (character 11)"),
        ('{"id": "\x01"}', "it is not valid JSON (character 8)"),
        ("nothing", "it is not valid JSON (character 0)"),
        ('["q1"]', "they are not an object"),
        ("null", "they are not an object"),
    ],
    ids=lambda value: str(value)[:24].encode("ascii", "replace").decode(),
)
def test_an_input_that_cannot_be_sent_back_is_an_error_result(world: World, raw: str, reason: str) -> None:
    # the pieces are small, as the service's are; for megabytes they are larger only to save time
    chat = ask(world, use(raw), chunk=20 if len(raw) < 200_000 else 100_000)
    assert (chat.status, chat.calls) == ("done", 1)
    assert results(world, chat) == [f"Tool execution failed: bad arguments: {reason}."]
    (asked,) = world.model.requests[1].body["messages"][1]["content"]
    assert asked["input"] == {}


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (nested(100), json.loads(nested(100))),
        ('{"id": "q1", "id": "q9"}', {"id": "q9"}),
        ('{"id": "\\u0000"}', {"id": "\0"}),
        ('{"": ""}', {"": ""}),
        ('{"id": 1.50, "x": 12345678901234567890}', {"id": 1.5, "x": 12345678901234567890}),
        ("", {}),
    ],
)
def test_every_other_input_is_sent_back_unchanged(world: World, raw: str, read: Any) -> None:
    chat = ask(world, use(raw))
    assert chat.status == "done"
    (asked,) = world.model.requests[1].body["messages"][1]["content"]
    assert asked["input"] == read


@pytest.mark.parametrize("name", ["no.such tool", "x" * 200, "\0", "ü", "retrieve.full.context", ""])
def test_a_name_that_the_service_would_refuse_is_an_unknown_tool(world: World, name: str) -> None:
    chat = ask(world, use('{"id": "q1"}', name))
    assert chat.status == "done"
    assert results(world, chat) == ["Unknown tool: unnameable"]


def test_a_good_call_runs_beside_a_broken_one(world: World) -> None:
    chat = ask(world, use(nested(300)), use('{"id": "q1"}'))
    first, second = results(world, chat)
    assert first.startswith("Tool execution failed")
    assert "q1 was read" in second.replace("The record ", "")
