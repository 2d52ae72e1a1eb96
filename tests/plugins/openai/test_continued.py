"""A history that ends with the answer: the answer goes on, as Open WebUI's "Continue response" asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.plugins.openai.door import Door, answers, said, streamed, text_of, user

NAMED = "X-Dualtrack-Conversation"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_goes_on_and_both_parts_are_one_exchange(door: Door, *, is_streamed: bool) -> None:
    name = f"ann{is_streamed}"
    key = door.key(name)
    cut = ScriptedResponse(match="turn", text="One, two, ", stop_reason="max_tokens")
    door.world.model.script.add(cut)
    answers(door, "three.", "Four.")
    first = door.post(key, [user("Count.")])
    assert first.json()["choices"][0]["finish_reason"] == "length"
    more = door.post(key, said("Count.", "One, two, "), stream=is_streamed)
    assert (streamed(more) if is_streamed else text_of(more)) == "three.", "what follows alone"
    assert more.headers[NAMED] == first.headers[NAMED]
    assert any("One, two, " in block for block in door.sent()[-1])
    behind = door.post(key, said("Count.", "One, two, three.", "And then?"))
    assert text_of(behind) == "Four."
    assert behind.headers[NAMED] == first.headers[NAMED]
    (conversation,) = door.conversations(name)
    assert conversation.queries == 3
    assert door.world.stores.ledger.load(name).used_day == 15


def test_a_foreign_answer_goes_on(door: Door) -> None:
    key = door.key("bea")
    answers(door, "three.", "Four.")
    more = door.post(key, said("Hi", "Hello.", "Count.", "One, two, "))
    assert text_of(more) == "three."
    behind = door.post(key, said("Hi", "Hello.", "Count.", "One, two, three.", "And then?"))
    assert behind.headers[NAMED] == more.headers[NAMED]
    assert len(door.conversations("bea")) == 1


@pytest.mark.parametrize(
    "messages", [[{"role": "assistant", "content": "x"}], [user("Hi"), {"role": "assistant", "content": ""}]]
)
def test_what_is_no_answer_does_not_go_on(door: Door, messages: list[Any]) -> None:
    assert door.post(door.key("cy"), messages).status_code == 400
