"""/v1/webhooks, and the timer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.clients.stack_client import wait_for
from tests.drivers.tour import stop
from tests.servers.webhook_receiver import receiving

if TYPE_CHECKING:
    from tests.drivers.tour import Visit

RECEIVER = "https://hooks.example.com/dualtrack"


def _webhook(visit: Visit) -> dict[str, Any]:
    body = {"url": RECEIVER, "events": ["chat.done"]}
    return dict(visit.owner.http.post("/v1/webhooks", json=body).json())


@stop("POST /v1/webhooks", "url", "events", "profiles")
def a_webhook_is_made(visit: Visit) -> None:
    with receiving() as receiver:
        where = f"/ok/{visit.script.marker}"
        body = {"url": receiver.url + where, "events": ["chat.done", "chat.failed"], "profiles": ["small"]}
        made = visit.ask(body, status=201).json()
        assert made["secret"].startswith("whsec_")
        chats = [visit.chat(), visit.chat(profile="small")]
        visit.root.invoke("Deliver", {})
        wait_for(lambda: receiver.of(where))
        told = [json.loads(one.body)["data"]["chat_id"] for one in receiver.of(where)]
        assert told == [chats[1]["chat_id"]], "the other is another agent's"


@stop("GET /v1/webhooks")
def the_webhooks(visit: Visit) -> None:
    made = _webhook(visit)
    (listed,) = visit.ask().json()["webhooks"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}


@stop("POST /v1/webhooks/{webhook_id}/test")
def a_webhook_is_tested(visit: Visit) -> None:
    made = _webhook(visit)
    assert visit.ask(webhook_id=made["webhook_id"], status=202).json()["type"] == "webhook.test"
    (told,) = visit.owner.get(f"/v1/webhooks/{made['webhook_id']}/deliveries")["deliveries"]
    assert told["type"] == "webhook.test"


@stop("POST /v1/webhooks/{webhook_id}/rotate", "overlap")
def a_webhook_gets_a_new_secret(visit: Visit) -> None:
    made = _webhook(visit)
    rotated = visit.ask({"overlap": 60}, webhook_id=made["webhook_id"]).json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != made["secret"]


@stop("GET /v1/webhooks/{webhook_id}/deliveries", "cursor", "limit")
def what_a_webhook_was_told(visit: Visit) -> None:
    made = _webhook(visit)
    where = {"webhook_id": made["webhook_id"]}
    for _ in range(2):
        visit.owner.http.post(f"/v1/webhooks/{made['webhook_id']}/test")
    first = visit.ask(query={"limit": 1}, **where).json()
    second = visit.ask(query={"limit": 1, "cursor": first["cursor"]}, **where).json()
    told = [one["message_id"] for page in (first, second) for one in page["deliveries"]]
    assert len(set(told)) == 2


@stop("DELETE /v1/webhooks/{webhook_id}")
def a_webhook_is_deleted(visit: Visit) -> None:
    visit.ask(webhook_id=_webhook(visit)["webhook_id"], status=204)
    assert visit.owner.get("/v1/webhooks")["webhooks"] == []


@stop("timer Deliver")
def a_webhook_is_told(visit: Visit) -> None:
    ann = visit.owner
    with receiving() as receiver:
        where = f"/ok/{visit.script.marker}"
        body = {"url": receiver.url + where, "events": ["chat.done"]}
        made = ann.http.post("/v1/webhooks", json=body).json()
        ann.http.post(f"/v1/webhooks/{made['webhook_id']}/test")
        visit.invoke()
        wait_for(lambda: receiver.of(where))
        (told,) = receiver.of(where)
        assert told.headers["webhook-signature"]
