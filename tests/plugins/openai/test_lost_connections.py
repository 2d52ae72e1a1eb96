"""Connections that a client loses, answers that take long, and histories made to be slow to read."""

from __future__ import annotations

import json
import sys
from functools import partial
from itertools import islice
from typing import Any

import dualtrack.plugins.openai.opened
import httpx
import pytest
from dualtrack.plugins.openai.app import OpenAIDoor
from dualtrack.plugins.openai.exchanges import Exchange, trail_of
from dualtrack.plugins.openai.prompt import json_object, prompt_of
from dualtrack.plugins.openai.serving import ANSWERS
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.plugins.openai.door import Door, answers, open_door, said, streamed

AGAIN = {"x-stainless-retry-count": "1"}
SEARCH = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
TEXT = "One, two, three, four. " * 8


@pytest.mark.parametrize("events", [0, 1, 2, 3, 4, 5, 99])
@pytest.mark.parametrize("searches", [False, True])
def test_a_stream_cut_at_any_event_is_taken_up_by_the_retry_as_the_same_chat(
    door: Door, events: int, *, searches: bool
) -> None:
    user = f"cut-{events}-{searches}"
    key = door.key(user)
    before = {"type": "text", "text": "Let me look."}
    if searches:
        door.world.model.script.add(ScriptedResponse(match="turn", content=(before, SEARCH)))
    answers(door, TEXT, "Two.")
    whole = f"Let me look.\n\n{TEXT}" if searches else TEXT
    body = {"model": "assistant", "messages": said("First?"), "stream": True}
    with door.open(key, body) as response:
        seen = list(islice((line for line in response.iter_lines() if line.startswith("data: ")), events))
    again = door.send(key, body, AGAIN)
    assert streamed(again) == whole
    assert bool(streamed(again, "reasoning_content")) == searches
    if events > 1:
        assert again.text.split("data: ")[1].split('"id"')[1][:40] == seen[0].split('"id"')[1][:40]
    follow_up = door.post(key, said("First?", whole, "Second?"))
    assert follow_up.json()["choices"][0]["message"]["content"] == "Two."
    (conversation,) = door.conversations(user)
    assert conversation.queries == 2
    assert door.world.stores.ledger.load(user).used_day == 10 + 10 * searches
    assert len(door.sent()) == 2 + searches
    taken = [door.world.stores.leases.take(user, ANSWERS) for _ in range(ANSWERS.limit - 1)]
    assert taken, "of the lost stream's lease at most the one is held that its server has not noticed yet"


def test_an_answer_that_takes_long_begins_with_spaces_and_a_late_failure_breaks_the_connection_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no silence at all in place of 50 s: everything is late."""
    late = partial(OpenAIDoor, silent_seconds=0.0)
    monkeypatch.setattr(dualtrack.plugins.openai.opened, "OpenAIDoor", late)
    with open_door() as door:
        key = door.key("ann")
        body = {"model": "assistant", "messages": said("First?")}
        answers(door, "One.")
        door.machine.held = True
        with door.open(key, body) as response:
            pieces = response.iter_raw()
            assert next(pieces) == b" "
            door.machine.release()
            rest = b"".join(pieces)
        assert response.status_code == 200
        assert httpx.Response(200, content=b" " + rest).json()["choices"][0]["message"]["content"] == "One."
        door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
        with door.open(key, {**body, "seed": 2}) as broken:
            door.machine.release()
            with pytest.raises(httpx.RemoteProtocolError):
                broken.read()
        assert broken.status_code == 200
        door.machine.held = False
        answers(door, "Now.")
        again = door.send(key, {**body, "seed": 2}, AGAIN)
        assert again.json()["choices"][0]["message"]["content"] == "Now."
        assert door.world.stores.ledger.load("ann").used_day == 10, "what failed is not charged"


def test_a_response_that_fails_late_says_so_in_its_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no silence at all in place of 50 s: the status is said, and spaces keep the connection."""
    monkeypatch.setattr(
        dualtrack.plugins.openai.opened, "OpenAIDoor", partial(OpenAIDoor, silent_seconds=0.0)
    )
    with open_door() as door:
        headers = {"Authorization": f"Bearer {door.key('ann')}"}
        door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
        door.machine.held = True
        url, body = f"{door.url}/openai/v1/responses", {"model": "assistant", "input": "First?"}
        with httpx.stream("POST", url, json=body, headers=headers, timeout=30) as response:
            pieces = response.iter_raw()
            assert next(pieces) == b" "
            door.machine.release()
            late = httpx.Response(200, content=b"".join(pieces)).json()
        assert response.status_code == 200
        assert (late["status"], late["error"]["code"]) == ("failed", "server_error")
        assert httpx.get(f"{url}/{late['id']}", headers=headers, timeout=30).json() == late
        assert door.world.stores.ledger.load("ann").used_day == 0, "what failed is not charged"


def test_a_stream_that_outlasts_its_time_breaks_off_and_the_retry_gets_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no time at all in place of 14 minutes."""

    def brief(admission: Any, reader: Any, *rest: Any) -> OpenAIDoor:
        pace = type(reader.pace)(stream=0.0)
        return OpenAIDoor(admission, type(reader)(reader.client, reader.table, reader.clock, pace), *rest)

    with open_door() as door:
        key = door.key("ann")
        body = {"model": "assistant", "messages": said("First?"), "stream": True}
        answers(door, "One.")
        monkeypatch.setattr(dualtrack.plugins.openai.opened, "OpenAIDoor", brief)
        with pytest.raises(httpx.RemoteProtocolError):
            door.send(key, body)
        door.machine.wait()
        assert door.world.stores.ledger.load("ann").used_day == 5
        assert len(door.sent()) == 1


HOSTILE = (
    "e\u0301" * 50,
    "a" + "\u0315\u0300" * 50,
    " \u00a0\u2003\t\r\n" * 30,
    "\u1e9b\u0323" * 40,
    "\ufdfa" * 40,
    "\U0001f468\u200d\U0001f469" * 20,
    "\ud800" * 10,
    "\0" * 40,
)


def steps_of(messages: int) -> int:
    """Calls of functions, C's included, from a body of so many hostile messages to its hashes."""
    body = {
        "model": "assistant",
        "messages": said(*(HOSTILE[n % len(HOSTILE)] + str(n) for n in range(messages)), "And?")[
            : messages + 1
        ],
    }
    calls, raw = 0, json.dumps(body).encode()

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        prompt = prompt_of(json_object(raw))
        trail_of(prompt.exchanges)
        digests = {exchange.digest for exchange in prompt.exchanges}
    finally:
        sys.setprofile(None)
    assert len(digests) == len(prompt.exchanges) == messages // 2
    return calls


def test_hostile_histories_take_linear_work() -> None:
    steps_of(100)  # what is loaded and kept by the first one
    small, large = steps_of(2_500), steps_of(10_000)
    assert large < 4.2 * small


def test_white_space_and_unicode_forms_of_10_000_characters_have_one_hash() -> None:
    composed, decomposed = "\u00e9 " * 5_000, "e\u0301\u2003\n" * 5_000
    assert Exchange("q", composed).digest == Exchange("q", decomposed).digest
    assert Exchange("q", composed).digest != Exchange(composed, "q").digest


def test_a_follow_up_with_10_000_messages_makes_the_requests_of_a_short_one(door: Door) -> None:
    counted: list[str] = []
    client: Any = door.world.stores.chats.client
    client.meta.events.register("before-call.dynamodb", lambda model, **_: counted.append(model.name))
    key = door.key("max")
    answers(door, "One.", "Two.", "Three.")
    older = [text for n in range(4_998) for text in (f"Old {n}?", HOSTILE[n % 6] + str(n))]

    def follow_up(*texts: str) -> int:
        door.machine.wait()
        before = len(counted)
        with_history = door.post(key, said(*texts), {"X-Stainless-Lang": "python"})
        assert with_history.status_code == 200, with_history.text
        door.machine.wait()
        return len(
            [name for name in counted[before:] if name in ("PutItem", "TransactWriteItems", "UpdateItem")]
        )

    door.post(key, said("First?"))
    short = follow_up("First?", "One.", "Second?")
    long = follow_up(*older, "First?", "One.", "Second?", "Two.", "Third?")
    (conversation,) = door.conversations("max")
    assert conversation.queries == 3
    assert not any("Old " in block for block in door.sent()[-1])
    assert long <= short + 3, "nothing is imported"
