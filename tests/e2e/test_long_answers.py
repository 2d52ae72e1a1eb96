"""An answer that takes longer than two minutes, through the deployed workflow, gateway and front; a short one in the
short form."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
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
    """By both doors at once: one call each, whole, charged once."""
    ours, theirs = script.branch("ours"), script.branch("theirs")
    for one in (ours, theirs):
        one.says(TEXT, **SLOWLY)

    def complete() -> list[str]:
        """The pieces of an answer by OpenAI's API."""
        body = {
            "model": "assistant",
            "stream": True,
            "messages": [{"role": "user", "content": theirs.question()}],
        }
        with ann.http.stream("POST", "/openai/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200, answer.read()
            sent = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
        return [choice["delta"].get("content") or "" for one in sent for choice in json.loads(one)["choices"]]

    with ThreadPoolExecutor(1) as pool:
        streamed = pool.submit(complete)
        chat_id = ann.start(ours.question())["chat_id"]
        events: list[Received] = []
        while not events or events[-1].kind not in TERMINAL:  # the server closes each stream after 90 s
            events += ann.stream(chat_id, len(events))
        assert "".join(streamed.result()) == TEXT
    assert "".join(event.data["text"] for event in events if event.kind == "delta") == TEXT
    assert [event.data["stop"] for event in events if event.kind == "answer"] == ["complete"]
    chat = ann.chat(chat_id)
    assert (chat["status"], chat["credits_used"]) == ("done", 5)
    (line,) = [line for line in ann.get(f"/v1/chats/{chat_id}/receipt")["lines"] if line["kind"] == "model"]
    assert line["tries"] == 1
    begun = root.history(chat_id)[0]["executionStartedEventDetails"]
    assert json.loads(begun["input"])["call_seconds"] > 132
