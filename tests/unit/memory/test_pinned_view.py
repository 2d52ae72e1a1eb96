"""Which part of the past is sent is decided once, by whichever attempt, release 1 included (DESIGN 2.7)."""

from __future__ import annotations

import json
from typing import Any

from dualtrack.storage.chats import Pin

from tests.drivers.world import make_world


def test_a_turn_sends_the_view_that_another_attempt_has_pinned() -> None:
    """Two first attempts: this one has every track; the other, of release 1, has pinned that one is missing."""
    with make_world() as world:
        world.model.script.add({"match": "turn", "text": "A long answer. " * 40})
        first = world.ask("one")
        world.model.reset()
        world.model.script.add({"match": "turn", "text": "Yes.", "always": True})
        chat = world.start("two", conversation_id=first.conversation_id)
        client: Any = world.stores.chats.client
        pinned: list[bool] = []

        def pin_first(**_: Any) -> None:
            if not pinned:
                pinned.append(True)
                world.stores.chats.pin(chat, Pin(stand_in=(1,)))

        client.meta.events.register("before-call.dynamodb.UpdateItem", pin_first)
        assert world.turn(chat, 0)["next"] == "answered"
        sent = [json.dumps(request.body["messages"]) for request in world.model.requests]
        assert len(sent) == 1
        assert "q1-r-sum" not in sent[0]
        assert "[ID:q1-r] A long answer." in sent[0]
