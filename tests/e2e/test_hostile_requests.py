"""What strangers send to the front port of a running stack: announced sizes, many at once, another's name."""

from __future__ import annotations

import socket
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest
from dualtrack_stack.doors import DOORS

if TYPE_CHECKING:
    from tests.clients.stack_client import Person, Root

CALLERS = 8
STREAMED = [(door.method, door.path) for door in DOORS if door.kind == "streamed" and "{" not in door.path]


def sent(root: Root, *lines: str) -> bytes:
    """The answer to a request that is never finished, up to the end of the connection."""
    host, port = root.stack.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall("\r\n".join((*lines[:1], f"Host: {host}:{port}", *lines[1:])).encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("path", ["/v1/chats", *(path for method, path in STREAMED if method == "POST")])
def test_a_body_that_nobody_may_send_is_not_waited_for(root: Root, ann: Person, path: str) -> None:
    chunk = "Transfer-Encoding: chunked", "", "FFFFFFFFFFFFFFFFF", "x"
    answer = sent(root, f"POST {path} HTTP/1.1", *chunk)
    assert answer.split(b"\r\n")[0].split()[1] == b"413"
    assert b'"too_large"' in answer
    assert ann.http.get("/v1/credits").status_code == 200


def test_a_new_users_token_is_there_for_all_who_ask_at_once(root: Root) -> None:
    name = f"new-{uuid.uuid4().hex[:12]}"
    turns = threading.Barrier(CALLERS)

    def ask(admin: str) -> httpx.Response:
        with httpx.Client(base_url=root.stack.url, timeout=60) as client:
            client.get("/dev/status")
            turns.wait()
            return client.get("/dev/token", params={"user": name, "admin": admin})

    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, ("", "1") * (CALLERS // 2)))
    assert [answer.status_code for answer in answers] == [200] * CALLERS
    assert len({answer.json()["user_id"] for answer in answers}) == 1
    assert [answer.json()["created"] for answer in answers].count(True) == 1
    for answer in answers:
        headers = {"Authorization": f"Bearer {answer.json()['token']}"}
        assert httpx.get(f"{root.stack.url}/v1/credits", headers=headers, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/credits"),
        ("GET", "/v1/credits/ledger"),
        ("GET", "/v1/conversations"),
        ("GET", "/v1/tools"),
        ("POST", "/v1/chats"),
        ("DELETE", "/v1/me/users/customer-1"),
        ("GET", "/v1/chats/ch_01k0000000000000000000000a/events"),
        *STREAMED,
    ],
)
def test_a_key_without_end_users_names_none_at_any_door(
    ann: Person, root: Root, method: str, path: str
) -> None:
    made = ann.http.post("/v1/keys", json={"name": "plain", "scopes": ["chat", "read", "erase"]}).json()
    headers = {"Authorization": f"Bearer {made['key']}", "X-Dualtrack-User": "customer-1"}
    body = {"message": "Hello."} if method == "POST" else None
    answer = httpx.request(method, f"{root.stack.url}{path}", headers=headers, json=body, timeout=60)
    assert (answer.status_code, "X-Dualtrack-User" in answer.text) == (400, True), answer.text
    ann.http.delete(f"/v1/keys/{made['key_id']}")
