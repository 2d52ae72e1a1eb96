"""The size of a request and its answer as Lambda counts them."""

from __future__ import annotations

import json

import pytest
from dualtrack.api.sizes import EVENT_BYTES
from dualtrack_stack.local.aws_sizes import answer_bytes, event_bytes

JSON = [(b"content-type", b"application/json")]


def of(body: bytes, headers: list[tuple[bytes, bytes]] = JSON) -> int:
    return event_bytes("POST", "/v1/chats", "wait=5", headers, body)


@pytest.mark.parametrize(
    ("text", "factor"),
    [("a" * 60_000, 1.0), ('{"a":"b"}' * 6_000, 1.44), ("\\n" * 30_000, 1.5), ("é" * 30_000, 1.0)],
)
def test_a_body_is_a_string_with_escapes(text: str, factor: float) -> None:
    body = text.encode()
    assert (of(body) - of(b"")) / len(body) == pytest.approx(factor, abs=0.01)


def test_headers_and_claims_count() -> None:
    jwt = "e30.eyJzdWIiOiJhbm4ifQ.x"
    sent = [*JSON, (b"authorization", f"Bearer {jwt}".encode())]
    assert of(b"", sent) - of(b"") > 2 * len(jwt)


def test_files_and_a_message_as_long_as_they_may_be_fit() -> None:
    """What docs/contract.md promises: 4 MB of files beside 32,000 characters, in the longest form of both."""
    body = {"message": "\U0001f9ed" * 32_000, "attachments": [{"data": "A" * (4 * 4 * 1024**2 // 3 + 8)}]}
    assert of(json.dumps(body).encode()) < EVENT_BYTES


def test_an_answer_counts_likewise_and_bytes_as_base64() -> None:
    text = json.dumps({"content": '"' * 1_000}).encode()
    assert answer_bytes(200, JSON, text) > 4_000
    picture = answer_bytes(200, [(b"content-type", b"image/png")], b"x" * 3_000)
    assert 4_000 < picture < 4_200
