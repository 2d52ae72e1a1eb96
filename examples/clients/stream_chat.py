"""Ask dualtrack and print the answer as it is written; an interrupted stream is resumed.

    uv run python examples/clients/stream_chat.py "How do I set up OAuth for Twitter ads?"

Needs httpx and httpx-sse. DUALTRACK_URL: the API (default: the local stack). DUALTRACK_TOKEN: an ID token (default: one
of the local stack). Exit 0 if the chat was answered, 1 if it failed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

import httpx
from httpx_sse import connect_sse

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ.get("DUALTRACK_URL", "http://127.0.0.1:8000").rstrip("/")


def client() -> httpx.Client:
    """An HTTP client with the token. It waits for data longer than the 15 seconds between heartbeats."""
    token = (
        os.environ.get("DUALTRACK_TOKEN") or httpx.get(f"{URL}/dev/token").raise_for_status().json()["token"]
    )
    return httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def start(http: httpx.Client, message: str) -> dict[str, Any]:
    """Start the chat. The key makes it safe to send again if the answer is lost."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    for wait in (1, 2, 4, None):
        try:
            response = http.post("/v1/chats", json={"message": message}, headers=key)
        except httpx.TransportError:
            if wait is None:
                raise
        else:
            if response.is_success:
                return dict(response.json())
            error = response.json()["error"]
            if wait is None or response.status_code not in (429, 500, 503, 504):
                sys.exit(f"{error['code']}: {error['message']}")
        time.sleep(wait)
    raise AssertionError("the last try has returned or raised")


def events(http: httpx.Client, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and data of every event, once and in order, over as many connections as needed."""
    last, failures = "", 0
    while failures < 5:
        headers = {"Last-Event-ID": last} if last else {}
        try:
            with connect_sse(http, "GET", path, headers=headers) as source:
                status = source.response.status_code
                if status == 429 or status >= 500:
                    raise httpx.RemoteProtocolError(f"status {status}")
                source.response.raise_for_status()
                for event in source.iter_sse():
                    if not event.data:
                        continue
                    last, failures = event.id, 0
                    yield event.event, json.loads(event.data)
                    if event.event in ("done", "error"):
                        return
        except httpx.TransportError:
            failures += 1
            time.sleep(min(2**failures, 10))
    raise ConnectionError("The stream broke five times in a row.")


def main() -> int:
    """Print the answer on stdout, progress on stderr."""
    with client() as http:
        chat = start(http, sys.argv[1])
        for name, data in events(http, chat["events_url"]):
            if name == "delta":
                print(data["text"], end="", file=sys.stderr, flush=True)
            elif name == "turn":
                # a repeated turn number voids the turn's text so far
                print(f"\n[turn {data['turn']}]", file=sys.stderr)
            elif name == "tool_calls_start":
                for call in data["calls"]:
                    print(f"\n[{call['tool']} {json.dumps(call['input'])}]", file=sys.stderr)
            elif name == "answer":
                print(data["response"])
            elif name == "error":
                print(f"\n{data['code']}: {data['message']}", file=sys.stderr)
                return 1
            elif name == "done":
                print(f"\n[{data['credits_used']} credits]", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
