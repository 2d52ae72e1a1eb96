"""The API of the deployed stack on the wire: what only the gateway, the roles and real clients can test."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from dualtrack_stack.doors import DOORS

from tests.clients.sse_reader import Reader
from tests.clients.stack_client import PATIENCE
from tests.drivers.images import png

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

CHAT = "ch_01k0000000000000000000000a"
POSTED = [
    "/v1/chats",
    *(
        door.path
        for door in DOORS
        if door.kind == "streamed" and door.method == "POST" and "{" not in door.path
    ),
]


def forged(token: str, header: dict[str, Any] | None = None, **changed: Any) -> str:
    """The token with another header or other claims, and the old signature or none."""
    first, second, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(second + "=="))
    contents = [header or json.loads(base64.urlsafe_b64decode(first + "==")), {**claims, **changed}]
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in contents]
    return ".".join([*parts, "" if header else signature])


def test_a_forged_token_is_refused(root: Root, ann: Person) -> None:
    token = ann.identity.token
    admin: dict[str, Any] = {"cognito:groups": ["admin"]}
    tokens: dict[str, str] = {
        "none": forged(token, {"alg": "none", "typ": "JWT"}),
        "HS256": forged(token, {"alg": "HS256", "typ": "JWT"}),
        "another user": forged(token, sub="somebody-else"),
        "administrator": forged(token, None, **admin),
        "expired": forged(token, exp=1_000_000_000),
        "another pool": forged(token, iss="https://cognito-idp.us-east-1.amazonaws.com/us-east-1_other"),
        "access": forged(token, token_use="access"),
        "cut": token[:-8],
    }
    headers = {name: f"Bearer {bad_token}" for name, bad_token in tokens.items()}
    headers |= {"without a scheme": token, "another scheme": f"Token {token}"}
    for name, header in headers.items():
        for path in ("/v1/credits", f"/v1/admin/users/{ann.id}/credits", f"/v1/chats/{CHAT}/events"):
            response = httpx.get(root.stack.url + path, headers={"Authorization": header}, timeout=PATIENCE)
            assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthorized"), (
                name,
                path,
            )


@pytest.mark.parametrize(
    "target",
    [
        "/v1/chats/%23", "/v1/chats/a%23b", "/v1/chats/..%2f..", "/v1/chats/%2e%2e", "/v1/chats/%00", "/v1/chats/%ff",
        "/v1/conversations/cv_%F0%9F%92%A1", "/v1/none", "/v2/chats", "/v1/chats/x/y/z",
        "/v1/conversations/x/records/%23", "/v1/chats/" + "x" * 4_000, "/v1/" + "../" * 50 + "x",
        "/v1/chats/x\\..\\y", "/v1/chats/%ed%a0%80", "/v1/chats/%c0%ae%c0%ae", "/v1/" + "a/" * 1_000,
        "/" + "a" * 256, "/css/" + "%61" * 256, "/" + "../" * 1_000, "/js/%00", "/js\\..\\web.py",
    ],
)  # fmt: skip
def test_an_unknown_path_is_a_404_from_the_gateway_too(ann: Person, target: str) -> None:
    parts = urlsplit(ann.url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", target, headers={"Authorization": f"Bearer {ann.identity.token}"})
        response = connection.getresponse()
        body = json.loads(response.read())
    assert (response.status, body["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/octet-stream", "multipart/form-data", "image/png", ""]
)
def test_a_body_that_is_no_json_is_a_400_for_any_content_type(ann: Person, kind: str) -> None:
    for body in (b"\xff\xfe\x00", b"message=x", b"{"):
        response = ann.http.post("/v1/chats", content=body, headers={"Content-Type": kind} if kind else {})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("path", POSTED)
@pytest.mark.parametrize("text", [b"x" * (10 * 1024 * 1024), rb"\n" * 2_100_000])
def test_a_request_that_lambda_would_refuse_is_a_413(ann: Person, path: str, text: bytes) -> None:
    """Over the gateway's limit, and 4.2 MB whose escapes make more than 6 MB of event."""
    response = ann.http.post(path, content=b'{"message": "' + text + b'"}')
    refused = response.json()["error"]
    assert (response.status_code, refused["code"]) == (413, "too_large")
    assert (refused["type"], refused["param"]) == ("invalid_request_error", None)
    assert "X-Dualtrack-Conversation" in refused["message"]


@pytest.mark.parametrize(
    "path", ["/v1/chats", f"/v1/chats/{CHAT}", f"/v1/chats/{CHAT}/events", "/v1/conversations"]
)
def test_a_browser_may_send_and_read_across_origins(root: Root, ann: Person, path: str) -> None:
    origin = {"Origin": "https://chat.example.com"}
    preflight = httpx.options(
        root.stack.url + path,
        headers={
            **origin,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization",
        },
        timeout=PATIENCE,
    )
    assert preflight.status_code in (200, 204)
    assert preflight.headers["Access-Control-Allow-Origin"] in ("*", origin["Origin"])
    assert "authorization" in preflight.headers["Access-Control-Allow-Headers"].lower()
    for response in (
        ann.http.get(path, headers=origin),
        httpx.get(root.stack.url + path, headers=origin, timeout=PATIENCE),
    ):
        assert response.headers["Access-Control-Allow-Origin"] in ("*", origin["Origin"])


def test_a_large_file_goes_to_the_model_and_is_gone_with_its_conversation(
    root: Root, ann: Person, script: Script
) -> None:
    """400 KB that cannot be compressed: too large for an item, so it is stored in the bucket."""
    image = png(os.urandom(400_000))
    script.says("A picture.")
    attached = {"media_type": "image/png", "data": base64.b64encode(image).decode()}
    response = ann.http.post("/v1/chats", json={"message": script.question(), "attachments": [attached]})
    assert response.status_code == 202, response.text
    started = response.json()
    assert ann.finish(started["chat_id"])["response"] == "A picture."
    (request,) = script.requests()
    assert request["messages"][0]["content"][1]["source"]["data"] == attached["data"]
    conversation = f"/v1/conversations/{started['conversation_id']}"
    assert left_of(root, started["conversation_id"])
    assert ann.http.delete(conversation).status_code == 204
    assert left_of(root, started["conversation_id"]) == []
    assert left_of(root, started["chat_id"], "chats") == []
    assert ann.http.get(conversation).status_code == 404


def left_of(root: Root, name: str, *tables: str) -> list[str]:
    """Keys of items and objects that contain a conversation's or a chat's id; without the list of deletions, which
    keeps it until no late step can write any more.
    """
    outputs = root.stack.outputs
    listed = (
        [outputs["ChatsTable"]]
        if tables
        else [outputs["HistoryTable"], outputs["ChatsTable"], outputs["CacheTable"]]
    )
    dynamodb, s3 = root.client("dynamodb"), root.client("s3")
    keys = [
        f"{item['pk']['S']} {item['sk']['S']}"
        for table in listed
        for page in dynamodb.get_paginator("scan").paginate(TableName=table)
        for item in page["Items"]
        if not item["sk"]["S"].startswith("IDEM#") and item["pk"]["S"] != "DELETIONS"
    ]
    objects = s3.list_objects_v2(Bucket=outputs["BodiesBucket"]).get("Contents", [])
    return [key for key in [*keys, *(entry["Key"] for entry in objects)] if name in key]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_follows_a_chat_and_resumes_after_a_repeated_turn(ann: Person, script: Script) -> None:
    """The model's first stream breaks; a client that follows the rules ends with the answer's text."""
    text = "The answer, in several pieces, one after the other. " * 3
    script.says(text, chunk=10, delay_chunk=0.02, cut_after=8)
    script.says(text.strip(), chunk=10, delay_chunk=0.02)
    started = ann.start(script.question())
    curl = [
        "curl", "-sN", "--max-time", "120", "-H", f"Authorization: Bearer {ann.identity.token}",
        ann.url + started["events_url"],
    ]  # fmt: skip
    whole = subprocess.run(curl, capture_output=True, timeout=PATIENCE, check=True).stdout
    reader = Reader()
    reader.take(whole[: len(whole) // 2])
    resume = ["-H", f"Last-Event-ID: {reader.last_id}"]
    reader.take(subprocess.run([*curl, *resume], capture_output=True, timeout=PATIENCE, check=True).stdout)
    assert [number for number, _, _ in reader.events] == list(range(1, len(reader.events) + 1))
    assert reader.events[-1][1] == "done"
    assert [kind for _, kind, _ in reader.events].count("turn") == 2
    assert reader.text == reader.answer == text.strip()
