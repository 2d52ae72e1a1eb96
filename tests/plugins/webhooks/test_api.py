"""/v1/webhooks, and what a chat's end and pause note for them (CONTRACT 4)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.event_names import EVENT_NAMES
from dualtrack.plugins.webhooks.deliver import Deliverer
from dualtrack.plugins.webhooks.post import Poster
from dualtrack.plugins.webhooks.signing import WebhookSecrets
from dualtrack.plugins.webhooks.store import MOST_WEBHOOKS, webhooks_of

from tests.clients.api_client import Api, items
from tests.servers.webhook_receiver import Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = [*EVENT_NAMES]


@pytest.fixture
def api(shared: Api) -> Api:
    shared.world.clock.now = shared.world.clock.now // 60 * 60 + 120
    return shared.of_new_user()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


@pytest.fixture
def told(api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A webhook of this machine, and what it was told so far, after everything that is due was delivered."""
    settings = api.module.settings
    monkeypatch.setattr(api.module, "settings", replace(settings, dualtrack_webhook_loopback=True))
    made = make(api, url=f"{receiver.url}/ok/{api.user}")
    deliverer = Deliverer(
        webhooks_of(api.world.stores),
        WebhookSecrets(api.module.kms, settings.connections_key),
        Poster(loopback=True),
        "dualtrack/test",
    )

    def bodies() -> list[dict[str, Any]]:
        deliverer.run(5)
        return [json.loads(one.body) for one in receiver.of(f"/ok/{api.user}")]

    assert made["secret"].startswith("whsec_")
    return bodies


def make(api: Api, **more: Any) -> dict[str, Any]:
    """POST /v1/webhooks → the body of the 201."""
    answer = api.call(
        "POST", "/v1/webhooks", {"url": "https://hooks.example.com/in", "events": EVENTS, **more}
    )
    assert answer.status == 201, answer
    return dict(answer.json)


def test_the_secret_is_shown_once_and_stored_encrypted(api: Api) -> None:
    made = make(api, profiles=["assistant"])
    secret = made.pop("secret")
    assert api.get("/v1/webhooks") == {"webhooks": [made]}
    assert made["url"] == "https://hooks.example.com/in"
    assert (made["failing_since"], made["disabled_at"], made["disabled_because"]) == (None, None, None)
    stored = repr([items(api.world, table) for table in ("chats", "credits", "history", "cache")])
    assert secret.removeprefix("whsec_") not in stored
    rotated = api.call("POST", f"/v1/webhooks/{made['webhook_id']}/rotate", {"overlap": 60}).json
    assert rotated.pop("secret") != secret
    assert rotated == made


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://hooks.example.com/"},
        {"url": "https://127.0.0.1/"},
        {"events": []},
        {"events": ["chat.cancelled"]},
        {"profiles": ["nobody"]},
        {"secret": "whsec_mine"},
    ],
)
def test_what_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    body = {"url": "https://hooks.example.com/in", "events": EVENTS, **wrong}
    answer = api.call("POST", "/v1/webhooks", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert next(iter(wrong)).rstrip("s") in answer.json["error"]["message"]
    assert api.get("/v1/webhooks") == {"webhooks": []}


def test_a_user_has_at_most_ten(api: Api) -> None:
    made = [make(api) for _ in range(MOST_WEBHOOKS)]
    full = {"url": "https://hooks.example.com/in", "events": EVENTS}
    assert api.call("POST", "/v1/webhooks", full).code == "invalid_request"
    assert api.call("DELETE", f"/v1/webhooks/{made[0]['webhook_id']}").status == 204
    assert api.call("DELETE", f"/v1/webhooks/{made[0]['webhook_id']}").status == 404
    make(api)
    assert api.call("POST", "/v1/webhooks", full).status == 400


def test_another_users_webhook_is_not_found(api: Api) -> None:
    webhook = make(api)["webhook_id"]
    other = api.of_new_user()
    for method, path in (("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries"), ("POST", "/rotate")):
        body = {} if path == "/rotate" else None
        assert other.call(method, f"/v1/webhooks/{webhook}{path}", body).status == 404
    assert other.get("/v1/webhooks") == {"webhooks": []}


def test_a_key_needs_the_scope(api: Api) -> None:
    may, may_not = (api.by_key(api.make_key(scope)["key"]) for scope in ("hooks", "chat"))
    assert make(may)["webhook_id"] == may.get("/v1/webhooks")["webhooks"][0]["webhook_id"]
    refused = may_not.call("GET", "/v1/webhooks")
    assert (refused.status, refused.json["error"]["scope"]) == (403, "hooks")


def test_a_chat_that_is_done_is_told_without_a_text(api: Api, told: Any) -> None:
    chat = api.ask("The password is swordfish.")
    (body,) = told()
    assert body["type"] == "chat.done"
    assert body["data"] == {
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "profile": "assistant",
        "status": "done",
        "stop": "complete",
        "error": None,
        "expires_at": None,
        "key_id": None,
        "user_id": api.user,
    }
    assert "swordfish" not in json.dumps(body)
    assert told() == [body]
    webhook = api.get("/v1/webhooks")["webhooks"][0]["webhook_id"]
    (listed,) = api.get(f"/v1/webhooks/{webhook}/deliveries")["deliveries"]
    assert (listed["status"], listed["answer"], listed["attempts"]) == ("delivered", 200, 1)
    assert listed["message_id"] == f"msg_{chat['chat_id'][3:]}_done"


def test_a_test_is_listed_and_delivered(api: Api, told: Any) -> None:
    webhook = api.get("/v1/webhooks")["webhooks"][0]["webhook_id"]
    sent = api.call("POST", f"/v1/webhooks/{webhook}/test")
    assert (sent.status, sent.json["status"], sent.json["type"]) == (202, "pending", "webhook.test")
    (body,) = told()
    assert body["data"] == {"webhook_id": webhook}
    (listed,) = api.get(f"/v1/webhooks/{webhook}/deliveries")["deliveries"]
    assert (listed["message_id"], listed["status"]) == (sent.json["message_id"], "delivered")


def test_deliveries_come_in_pages_newest_first(api: Api) -> None:
    webhook = make(api)["webhook_id"]
    sent = []
    for _ in range(3):
        api.world.clock.now += 1
        sent.append(api.call("POST", f"/v1/webhooks/{webhook}/test").json["message_id"])
    first = api.get(f"/v1/webhooks/{webhook}/deliveries?limit=2")
    rest = api.get(f"/v1/webhooks/{webhook}/deliveries?limit=2&cursor={first['cursor']}")
    assert [one["message_id"] for one in (*first["deliveries"], *rest["deliveries"])] == sent[::-1]
    assert "cursor" not in rest
    assert api.call("GET", f"/v1/webhooks/{webhook}/deliveries?cursor=AAAA").status == 400


def test_an_erased_user_leaves_nothing(api: Api, told: Any) -> None:
    api.ask()
    told()
    api.call("POST", f"/v1/webhooks/{api.get('/v1/webhooks')['webhooks'][0]['webhook_id']}/test")
    assert api.call("DELETE", "/v1/me").status == 202
    stores, executions = api.world.stores, api.world.executions
    for _ in range(4):
        sweep_deletions(stores, executions, api.module.user_pool, 60.0)  # type: ignore[arg-type]
        api.world.clock.now += WRITERS_SECONDS
    left = [item["pk"]["S"] for item in items(api.world, "chats") if f"HOOKS#{api.user}" in item["pk"]["S"]]
    assert left == []
