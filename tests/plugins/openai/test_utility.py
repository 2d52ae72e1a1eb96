"""Small tasks over OpenAI's API: what the model was sent, what they cost, that no list has them, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.credits.account import FREE_CANCELS, Account, HoldRefusal
from dualtrack.errors import ApiError
from dualtrack.plugins.openai.utility import TASK_CHARACTERS, is_task

from tests.plugins.openai.door import Door, answers, text_of, user

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat

FORM = "### Task:\nSuggest a title for <chat_history>USER: Hi</chat_history>"
TOOL = {"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}


def chat_of(door: Door, owner: str, completion: dict[str, Any]) -> Chat:
    chat = door.world.stores.chats.load(owner, completion["id"].removeprefix("chatcmpl-"))
    assert chat is not None
    return chat


def listed(door: Door, owner: str) -> list[str]:
    found = door.world.stores.conversations.by_last_query(owner, page_size=50)
    return [position.split("#")[1] for position, _ in found]


def test_a_task_costs_a_credit_and_stands_in_no_list(door: Door) -> None:
    key = door.key("ann")
    answers(door, "Hello.", "A title", "Another", "A third")
    door.post(key, [user("Hi")])
    before = listed(door, "ann")
    by_model = door.post(
        key, [{"role": "system", "content": "Be short."}, user("Hi"), {"role": "assistant", "content": "Hello."},
              user("A title for this?")], model="utility", tools=[TOOL],
    )  # fmt: skip
    by_form = door.post(key, [user(FORM)])
    by_header = door.post(key, [user("Tags?")], {"X-Dualtrack-Task": "tags_generation"})
    assert [text_of(each) for each in (by_model, by_form, by_header)] == ["A title", "Another", "A third"]
    assert by_form.json()["model"] == "assistant"
    assert "X-Dualtrack-Conversation" not in by_form.headers
    assert by_form.json()["usage"]["completion_tokens"] > 0
    assert listed(door, "ann") == before
    account = door.world.stores.ledger.load("ann")
    assert (account.used_day, account.holds) == (8, {})

    door.machine.wait()
    bodies = [request.body for request in door.world.model.requests]
    assert len(bodies) == 4, "a turn each, and no summary"
    first, second = bodies[1:3]
    assert [message["role"] for message in first["messages"]] == ["user"], "the past is a text of the task"
    assert first["max_tokens"] == 500
    assert "thinking" not in first
    assert "tools" not in first
    assert "small task" in second["system"][0]["text"]
    chat = chat_of(door, "ann", by_model.json())
    assert (chat.credits_used, chat.turn, chat.profile) == (1, 1, "utility")
    stores = door.world.stores
    receipt = receipt_of(evidence(stores, chat, stores.ledger), Deployment())
    assert sum(line.get("credits") or 0 for line in receipt["lines"] if line["kind"] == "chat") == 1


def test_a_task_is_told_by_its_model_its_header_or_its_form() -> None:
    body = {"model": "assistant", "messages": [user(FORM)]}
    assert is_task(body, ())
    assert not is_task({**body, "stream": True}, ())
    assert not is_task({**body, "messages": [user("x"), user(FORM)]}, ())
    assert not is_task({**body, "messages": [user("About\n### Task:")]}, ("", "{{TASK}}"))
    assert is_task({**body, "messages": [user("x")]}, ("", "title_generation"))
    assert is_task({"model": "utility", "stream": True}, ())


def test_nobody_buys_chats_by_tasks(door: Door) -> None:
    key, stores = door.key("bo"), door.world.stores
    long = door.post(key, [user("x" * (TASK_CHARACTERS + 1))], model="utility")
    assert (long.status_code, "16,000" in long.text) == (400, True)
    answers(door, *("Title." for _ in range(10)))
    minute = door.world.clock.now + 60 - door.world.clock.now % 60
    asked = []
    for message in (*(f"{n}?" for n in range(10)), "One more?"):
        door.world.clock.now = minute  # they are counted by the minute, and each waits for its answer
        asked.append(door.post(key, [user(message)], model="utility"))
    ids, over = [one.json() for one in asked[:10]], asked[10]
    assert (over.status_code, over.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(over.headers["Retry-After"]) >= 1
    retried = door.post(key, [user("0?")], {"x-stainless-retry-count": "1"}, model="utility")
    assert retried.json()["id"] == ids[0]["id"]
    assert stores.ledger.load("bo").used_day == 10

    conversation = chat_of(door, "bo", ids[0]).conversation_id
    with pytest.raises(ApiError, match="no such conversation"):
        door.world.start("More?", "bo", conversation)
    with pytest.raises(ApiError, match="Unknown profile"):
        door.world.start("More?", "bo", profile="utility")


def test_a_keys_caps_hold_for_tasks(door: Door) -> None:
    key = door.key("cy")
    (key_id,) = door.world.stores.ledger.load("cy").keys
    stores = door.world.stores
    stores.ledger.change_caps("cy", key_id, {"credits_total": 1}, door.world.clock())
    answers(door, "Title.")
    assert text_of(door.post(key, [user("One?")], model="utility")) == "Title."
    refused = door.post(key, [user("Two?")], model="utility")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert refused.json()["error"]["required"] == 1
    used = stores.ledger.load("cy").keys[key_id].used
    assert 0 < used.dollars_total < 1_000_000, "a tenth of a cent at most"


def test_a_cancelled_task_costs_no_more_than_itself() -> None:
    account = Account("dee")
    held = account.hold("ch_1", 1, 1_000_000.0)
    assert not isinstance(held, HoldRefusal)
    full = replace(held.account, free_cancels=(1_000_000,) * FREE_CANCELS)
    assert full.cancel_unanswered("ch_1", 1_000_001.0).charged == 1


def test_a_response_can_be_a_task_too(door: Door) -> None:
    key = door.key("eli")
    answers(door, "Title.")
    response = httpx.post(
        f"{door.url}/openai/v1/responses",
        json={"model": "utility", "input": "A title?"},
        headers={"Authorization": f"Bearer {key}"},
        timeout=30,
    )
    assert response.status_code == 200, response.text
    assert response.json()["output"][0]["content"][0]["text"] == "Title."
    assert listed(door, "eli") == []
    assert door.world.stores.ledger.load("eli").used_day == 1
