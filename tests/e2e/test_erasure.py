"""A user is erased on the deployed stack: refused at once by every function, and not in any log (docs/privacy.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.stack_client import wait_for

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

NOWHERE = (("GET", "/v1/credits"), ("GET", "/v1/conversations"), ("DELETE", "/v1/me"), ("POST", "/v1/chats"))


def logged(root: Root) -> list[str]:
    """Every line in every log group."""
    logs = root.client("logs")
    return [
        event["message"]
        for group in logs.describe_log_groups()["logGroups"]
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        for event in page["events"]
    ]


def test_an_erased_user_is_refused_and_in_no_log(root: Root, ann: Person, script: Script) -> None:
    script.asks(("kit_fail", {"reason": f"{script.marker} failed"}))
    script.says(f"{script.marker} was the question.")
    chat = ann.ask(script.question())
    assert ann.http.delete("/v1/me").status_code == 202
    for method, path in NOWHERE:
        assert ann.http.request(method, path, json={"message": "x"}).status_code == 401
    assert ann.http.get(f"/v1/chats/{chat['chat_id']}/events").status_code == 401
    stores = root.stores()

    def is_swept() -> bool:
        root.invoke("Sweep", {})
        return stores.chats.load(ann.id, chat["chat_id"]) is None

    wait_for(is_swept)
    assert list(stores.history.last_items(ann.id, chat["conversation_id"])) == []
    lines = logged(root)
    assert any("Swept" in line for line in lines)
    assert any(chat["chat_id"] in line for line in lines), "the logs contain chat ids"
    assert [line for line in lines if script.marker in line or ann.id in line] == []
    assert [line for line in lines if ann.identity.token in line] == []
