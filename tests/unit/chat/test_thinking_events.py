"""What a model thinks is seen while it thinks, and is never part of what it says (CONTRACT 5, 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.chats import show_chat
from dualtrack.api.conversations import record_json
from dualtrack.events import thinking, turn_begins
from dualtrack.models.receipt_data import begun_before, has_begun
from dualtrack_stack.cli.conversation_commands import record_lines

from tests.drivers.invariants import chat_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

THOUGHT = "Which city?\n[ID:q1] Ottawa."
CALL = {"type": "tool_use", "id": "toolu_1", "name": "retrieve_documentation", "input": {"query": "x"}}


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as made:
        yield replace(made, model_name="claude-haiku-5-5")


def thinks(world: World, *turns: list[dict[str, Any]]) -> None:
    thought = {"type": "thinking", "thinking": THOUGHT}
    world.model.script.add(*({"match": "turn", "content": [thought, *turn]} for turn in turns))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_thinking_has_events_of_its_own_before_the_text_and_is_told_apart_in_the_record(
    world: World,
) -> None:
    thinks(world, [text("Let me look."), CALL], [text("Cold.")])
    chat = world.ask("How cold is it?")
    events = world.stores.log(chat).events()
    written = [
        (event.event, event.data["turn"], event.data["text"])
        for event in events
        if event.event in ("thinking", "delta")
    ]
    for turn, said in ((1, "Let me look."), (2, "Cold.")):
        kinds = [kind for kind, number, _ in written if number == turn]
        assert kinds == sorted(kinds, reverse=True), "it thinks first"
        thought = "".join(piece for kind, number, piece in written if (kind, number) == ("thinking", turn))
        assert thought.split() == ["Which", "city?", "Ottawa."], "without a copied id"
        assert "".join(piece for kind, number, piece in written if (kind, number) == ("delta", turn)) == said
    assert show_chat(world.stores, chat)["response"] == "Cold."
    assert chat_faults(world.stores, chat) == []
    records = world.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    shown = {
        record.record_id: record_json(world.stores, chat.user, chat.conversation_id, record)
        for record in records
    }
    thought_record = shown["q1-a1"]
    assert thought_record["content"][thought_record["thinking_characters"] :] == "Let me look."
    assert [line.strip() for line in record_lines(thought_record)][-1] == "Let me look."
    assert "  thinking | Which city?" in "\n".join(record_lines(thought_record))
    assert list(shown) == ["q1", "q1-a1", "q1-t1", "q1-a2", "q1-r"]
    assert [name for name, record in shown.items() if "thinking_characters" in record] == ["q1-a1", "q1-a2"]
    last = shown["q1-a2"]
    assert (last["content"], last["thinking_characters"]) == (THOUGHT, len(THOUGHT)), "alone"
    assert "  thinking | Which city?" in "\n".join(record_lines(last))


def test_a_call_that_was_cut_while_it_thought_is_counted_by_its_thinking(world: World) -> None:
    chat = world.start("How cold is it?")
    log = world.stores.log(chat)
    log.append([turn_begins(1, 15, final=False), thinking(1, "word " * 400)])
    assert has_begun(log.newest(), 1)
    assert [call.written for call in begun_before(log.events(), 1, None).lost] == [2_000]
