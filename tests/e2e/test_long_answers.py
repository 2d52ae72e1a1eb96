"""An answer that takes longer than two minutes, through the deployed workflow, gateway and front; a short one in the
short form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dualtrack_stack.cli.client import TERMINAL

from tests.long_forms import LONG

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Received, Root

PIECES = 140 if LONG else 14
TEXT = "".join(f"word{number:03d} " for number in range(PIECES)).strip()
SLOWLY = {"chunk": 8, "delay_chunk": 1.0 if LONG else 0.05}


def test_a_long_answer_streams_to_its_end(root: Root, ann: Person, script: Script) -> None:
    """One call, whole, charged once."""
    script.says(TEXT, **SLOWLY)
    chat_id = ann.start(script.question())["chat_id"]
    events: list[Received] = []
    while not events or events[-1].kind not in TERMINAL:  # the server closes each stream after 90 s
        events += ann.stream(chat_id, len(events))
    assert "".join(event.data["text"] for event in events if event.kind == "delta") == TEXT
    assert [event.data["stop"] for event in events if event.kind == "answer"] == ["complete"]
    chat = ann.chat(chat_id)
    assert (chat["status"], chat["credits_used"]) == ("done", 5)
    (line,) = [line for line in ann.get(f"/v1/chats/{chat_id}/receipt")["lines"] if line["kind"] == "model"]
    assert line["tries"] == 1
    begun = root.history(chat_id)[0]["executionStartedEventDetails"]
    assert json.loads(begun["input"])["call_seconds"] > 132
