"""The rules of the random API sequences: each reports an answer that breaks it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.offline_model.script import Script

from tests.clients.api_client import Answer, make_api
from tests.drivers.api_requests import Asked, Author, Known
from tests.drivers.api_sequences import BrokenRuleError, Rules
from tests.drivers.invariants import what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable

CHAT, CONVERSATION = "ch_01k0000000000000000000000a", "cv_01k0000000000000000000000a"
JSON = {"Content-Type": "application/json"}
READ = Asked("GET", f"/v1/chats/{CHAT}", frozenset({200}), conversation=CONVERSATION, chat=CHAT)
CREDITS = Asked("GET", "/v1/credits", frozenset({200}))
LEDGER = Asked("GET", "/v1/credits/ledger", frozenset({200}))
DELETE = Asked("DELETE", f"/v1/conversations/{CONVERSATION}", frozenset({204}), conversation=CONVERSATION)


def _rules() -> Rules:
    ann, bob = Known("sub-ann", "ann", "secretann"), Known("sub-bob", "bob", "secretbob")
    ann.chats[CHAT] = CONVERSATION
    ann.conversations.append(CONVERSATION)
    return Rules(ann, [bob])


def _start(chat: str = CHAT, key: str = "", message: str = "Hello.") -> tuple[Asked, Answer]:
    url = f"/v1/chats/{chat}"
    told = {"chat_id": chat, "conversation_id": CONVERSATION, "message_id": "q1", "status": "running"}
    body = {**told, "url": url, "events_url": f"{url}/events"}
    headers = {"Idempotency-Key": key} if key else {}
    asked = Asked("POST", "/v1/chats", frozenset({202}), json.dumps({"message": message}).encode(), headers)
    return asked, Answer(202, JSON, json.dumps(body))


def _entry(amount: int, after: int = 45) -> Answer:
    line = {"entry_id": "e1", "at": "2026-11-22T00:00:00Z", "kind": "hold", "amount": amount}
    return Answer(200, JSON, json.dumps({"entries": [{**line, "available_after": after}]}))


def _credits(available: int) -> Answer:
    daily = {"limit": 50, "used": 0, "remaining": 50, "resets_at": "2026-11-23T00:00:00Z"}
    body = {"plan": "free", "available": available, "held": 0, "daily": daily, "monthly": None}
    return Answer(200, JSON, json.dumps({**body, "pack": {"remaining": 0}}))


def _error(status: int, code: str, **more: Any) -> Answer:
    return Answer(status, JSON, json.dumps({"error": {"code": code, "message": "No.", **more}}))


def _told(rules: Rules, *answers: tuple[Asked, Answer]) -> None:
    for asked, answer in answers:
        rules.check(asked, rules.before(asked), answer)


def _backwards(rules: Rules) -> None:
    rules.status[CHAT] = "answered"
    rules.moved(CHAT, "running", rules.before(READ))


def _another_end(rules: Rules) -> None:
    rules.status[CHAT] = "cancelled"
    rules.moved(CHAT, "done", rules.before(READ))


def _failed(rules: Rules) -> None:
    rules.may_fail[CHAT] = False
    rules.moved(CHAT, "failed", rules.before(READ))


def _another_event(rules: Rules) -> None:
    for kind in ("turn", "delta"):
        rules.event(CHAT, 1, kind, json.dumps({"chat_id": CHAT}))


BROKEN: dict[str, Callable[[Rules], None]] = {
    "GET answers": lambda rules: _told(rules, (CREDITS, _error(500, "internal"))),
    "DELETE answers": lambda rules: _told(
        rules, (DELETE, Answer(204, {}, "")), (DELETE, Answer(204, {}, ""))
    ),
    "the answer is one of the OpenAPI document": lambda rules: _told(rules, (CREDITS, _credits(-1))),
    "429 has Retry-After": lambda rules: _told(rules, (CREDITS, _error(429, "rate_limited"))),
    "nobody reads what is another user's": lambda rules: rules.only_mine("… secretbob …"),
    "a token is never returned": lambda rules: rules.only_mine("ghp_secretann"),
    "a key stands for one body and one chat": lambda rules: _told(
        rules, _start(key="k"), _start(CHAT[:-1] + "b", key="k")
    ),
    "a chat's status never goes back": _backwards,
    "an ended chat stays as it ended": _another_end,
    "a chat fails only if": _failed,
    "a line of the ledger never changes": lambda rules: _told(
        rules, (LEDGER, _entry(5)), (LEDGER, _entry(6))
    ),
    "an event names its chat": lambda rules: rules.event(CHAT, 1, "turn", '{"chat_id": "ch_x"}'),
    "an event never changes": _another_event,
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named(rule: str) -> None:
    with pytest.raises(BrokenRuleError) as broken:
        BROKEN[rule](_rules())
    assert str(broken.value).startswith(rule)


def test_correct_answers_break_no_rule() -> None:
    rules = _rules()
    _told(rules, _start(key="k"), _start(key="k"), (CREDITS, _credits(45)), (LEDGER, _entry(5)))
    _told(rules, (LEDGER, _entry(5)), (DELETE, Answer(204, {}, "")), (DELETE, _error(404, "not_found")))


def test_the_same_seed_gives_the_same_requests() -> None:
    def asked() -> list[str]:
        ann, bob = Known("sub-ann", "ann", "secretann"), Known("sub-bob", "bob", "secretbob")
        author = Author(random.Random(7), ann, [bob], Script(), lambda name: None)
        return [str(author.draw()) for _ in range(1_000)]

    assert asked() == asked()


def test_leftovers_of_a_user_are_reported_until_the_conversation_is_deleted() -> None:
    with make_api() as api:
        chat = api.ask("secretann: " + "a long text that lies in a body. " * 400)
        stores = api.world.stores
        messages = {finding.partition(": ")[2] for finding in what_is_left(stores, "ann", "secretann")}
        assert messages == {
            "a deleted conversation's text is still in a table",
            "an item of a deleted conversation is still there",
        }
        stores.bodies.s3.put_object(
            Bucket=stores.bodies.bucket, Key=f"ann/{chat['conversation_id']}/x", Body=b"x"
        )
        assert any("an object of" in finding for finding in what_is_left(stores, "ann", "secretann"))
        assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
        assert what_is_left(stores, "ann", "secretann") == []
