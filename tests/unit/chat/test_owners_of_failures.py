"""A failure has an owner: what it costs, what is counted of it, and in whose words it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.credits.account import FREE_CANCELS, FREE_CANCELS_SECONDS, FREE_FAILURE, TOO_MANY_FAILURES
from dualtrack.errors import ModelUnavailable

from tests.drivers.invariants import account_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

TOOL = {"name": "get_weather", "description": "The weather.", "input_schema": {"type": "object"}}


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as made:
        made.stores.ledger.grant("ann", "g", 1_000, "x", made.clock())
        yield made


def receipt(world: World, chat: Chat) -> Any:
    return receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())


def refused(world: World) -> Chat:
    """A chat whose client's tool the service refuses."""
    chat = world.start("What is the weather?", tools=(TOOL,))
    sent = world.model.requests
    place = 0
    if tools := [one.body["tools"] for one in sent if one.body.get("tools")]:
        place = [tool["name"] for tool in tools[-1]].index("get_weather")
    said = f"tools.{place}.custom.input_schema: JSON schema is invalid"
    world.model.script.add({"match": "turn", "status": 400, "error_message": said})
    return world.run(chat)


def test_a_tool_that_the_service_refuses_is_told_in_the_callers_words(world: World) -> None:
    world.model.script.add({"match": "turn", "text": "Sunny."})
    world.run(world.start("Hello.", tools=(TOOL,)))  # so that the tool's place is known
    chat = refused(world)
    assert chat.error == {
        "code": "invalid_request",
        "message": "The model's service refuses the tool “get_weather” (input_schema): JSON schema is invalid"
        " Nothing was charged.",
    }
    assert chat.credits_used == 0
    assert receipt(world, chat)["totals"]["model_dollars"] == 0


def test_such_chats_are_not_free_without_end(world: World) -> None:
    world.model.script.add({"match": "turn", "text": "Sunny."})
    world.run(world.start("Hello.", tools=(TOOL,)))
    chats = [refused(world) for _ in range(FREE_CANCELS + 2)]
    assert [chat.credits_used for chat in chats] == [0] * FREE_CANCELS + [5, 5]
    assert chats[-1].error is not None
    assert "5 credits were charged" in chats[-1].error["message"]
    assert "Nothing was charged" not in chats[-1].error["message"]
    ends = [
        line
        for line in world.stores.ledger.movements("ann")
        if line.chat_id in {one.chat_id for one in chats}
    ]
    reasons = [line.reason for line in ends if line.kind in ("release", "settle")]
    assert reasons == [FREE_FAILURE] * FREE_CANCELS + [TOO_MANY_FAILURES] * 2
    assert account_faults(world.stores, "ann", chats) == []
    assert all(receipt(world, chat)["differences"] == [] for chat in chats)
    world.clock.sleep(FREE_CANCELS_SECONDS)
    assert refused(world).credits_used == 0


def test_every_begun_call_of_a_failed_chat_is_counted(world: World) -> None:
    """Four calls were cut behind their first byte, and no later one succeeds: the prompt was paid four times."""
    chat = world.start("What is it?")
    for _ in range(4):
        world.model.script.add({"match": "turn", "text": "It is a long answer.", "chunk": 4, "cut_after": 4})
        with pytest.raises(ModelUnavailable):
            world.turn(chat, 0)
    world.abort(chat)
    ended = world.load(chat)
    assert (ended.status, ended.credits_used) == ("failed", 0)
    body = receipt(world, ended)
    lines = [line for line in body["lines"] if line["kind"] == "model"]
    assert ended.heard is not None
    prompt = ended.heard.usage.prompt_tokens
    assert prompt > 100
    assert [sum(line["usage"].values()) - line["usage"]["output"] for line in lines] == [prompt] * 4
    assert body["totals"]["model_dollars"] == pytest.approx(sum(line["dollars"] for line in lines))
    assert body["differences"] == []
    assert account_faults(world.stores, "ann", [ended]) == []
