"""API keys on the stack: through its one address, followed, rotated, revoked; and nowhere is there a secret."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.clients.stack_client import PATIENCE, Person, Root

if TYPE_CHECKING:
    from tests.clients.script import Script

NAME = "customer-4711-whose-name-nobody-needs"
SECRET = slice(19, 51)
"""Of a key's text: what only its holder knows."""


def by(person: Person, key: str, name: str = "") -> httpx.Client:
    """A client with a key, for an end user."""
    headers = {"Authorization": f"Bearer {key}"} | ({"X-Dualtrack-User": name} if name else {})
    return httpx.Client(base_url=person.url, headers=headers, timeout=PATIENCE, trust_env=False)


def made(person: Person, *scopes: str, **more: Any) -> dict[str, Any]:
    answer = person.http.post("/v1/keys", json={"name": "server", "scopes": scopes, **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def followed(client: httpx.Client, url: str) -> str:
    """The events of a chat as they came."""
    answer = client.get(f"{url}/events")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_key_works_until_it_is_revoked_and_its_secret_is_nowhere(
    root: Root, ann: Person, script: Script
) -> None:
    service = made(ann, "chat", "read", "erase", acts_for="any", caps={"credits_total": 12})
    rotated = ann.http.post(f"/v1/keys/{service['key_id']}/rotate", json={"overlap": 3600}).json()
    keys = [service["key"], rotated["key"]]
    seen = []
    for key in keys:
        with by(ann, key, NAME) as client:
            answer = client.post(
                "/v1/chats", json={"message": script.question("Hello.")}, params={"wait": 25}
            )
            assert answer.status_code == 200, answer.text
            url = f"/v1/chats/{answer.json()['chat_id']}"
            seen += [answer.text, followed(client, url), client.get(f"{url}/receipt").text]
            refused = client.post("/v1/keys", json={"name": "x", "scopes": ["chat"]})
            assert code(refused) == (403, "forbidden")
            seen.append(refused.text)
        with by(ann, key[:-1] + "_") as client:
            seen.append(client.get("/v1/tools").text)
    with by(ann, keys[1], NAME) as client:
        over = client.post("/v1/chats", json={"message": "One more."})
        assert code(over) == (402, "key_cap_reached")
        seen += [over.text, client.get("/v1/credits/ledger").text, ann.http.get("/v1/keys").text]
        assert client.delete(f"/v1/me/users/{NAME}").status_code == 202
        assert ann.http.delete(f"/v1/keys/{service['key_id']}").status_code == 204
        for path in ("/v1/tools", f"{url}/events"):
            assert code(client.get(path)) == (401, "unauthorized")
    everywhere = {"answers": json.dumps(seen).encode(), **stored(root)}
    words = [*(key[SECRET] for key in keys), NAME]
    assert [
        (where, word) for where, text in everywhere.items() for word in words if word.encode() in text
    ] == []
    assert service["key_id"].encode() in b"".join(everywhere.values()), "the search finds what is there"


def stored(root: Root) -> dict[str, bytes]:
    """All that the stack keeps: files of its state folder, items of its tables, events of its logs."""
    kept = {}
    for path in root.state_dir.rglob("*"):
        with suppress(FileNotFoundError):  # the emulator unpacks functions there and deletes them
            if path.is_file() and not path.is_symlink():
                kept[str(path.relative_to(root.state_dir))] = path.read_bytes()
    client = root.client("dynamodb")
    for table in client.list_tables()["TableNames"]:
        kept[table] = repr(list(client.get_paginator("scan").paginate(TableName=table))).encode()
    logs = root.client("logs")
    for page in logs.get_paginator("describe_log_groups").paginate():
        for group in page["logGroups"]:
            events = logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
            kept[group["logGroupName"]] = repr(events).encode()
    return kept


@pytest.mark.parametrize(
    ("name", "status"),
    [("Müller", 400), ("x" * 1_000, 400), ("a/b", 400), ("", 400), ("x" * 100_000, 431)],
    ids=["UTF-8", "1 KB", "path", "empty", "100 KB"],
)
def test_a_name_that_is_none_is_refused_at_the_address_itself(ann: Person, name: str, status: int) -> None:
    key = made(ann, "chat", acts_for="any")["key"]
    with by(ann, key) as client:
        answer = client.get("/v1/tools", headers={b"X-Dualtrack-User": name.encode()})
    assert answer.status_code == status
