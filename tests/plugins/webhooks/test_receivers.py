"""The receivers of examples/webhooks: they verify, fetch the answer, drop repeats, and refuse what is not signed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.plugins.webhooks.post import Poster
from dualtrack.plugins.webhooks.signing import new_secret, signed
from dualtrack_stack.node import node

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parents[3] / "examples" / "webhooks"


@contextlib.contextmanager
def stack() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that answers as GET /v1/chats/{id}, and what it was asked."""
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            body = json.dumps({"response": "It is cold in Ottawa."}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", ["receive.py", "receive.mts"])
def test_a_receiver_verifies_and_fetches_the_answer(name: str) -> None:
    command = [sys.executable] if name.endswith(".py") else [node()]
    secret, at = new_secret(), int(time.time())
    body = json.dumps({"type": "chat.done", "timestamp": "", "data": {"chat_id": "ch_1"}}).encode()
    with stack() as (url, asked):
        environment = {
            **os.environ, "WEBHOOK_SECRET": secret, "DUALTRACK_API_KEY": "dt_x", "DUALTRACK_URL": url, "PORT": "0",
            "NO_PROXY": "*",
        }  # fmt: skip
        with subprocess.Popen(
            [*command, str(EXAMPLES / name)], env=environment, stdout=subprocess.PIPE, text=True
        ) as receiver:
            try:
                assert receiver.stdout is not None
                where = receiver.stdout.readline().split()[-1]

                def post(headers: Any) -> int:
                    return Poster(loopback=True, seconds=30).post(where, body, headers).status

                for key, when in ((new_secret(), at), (secret, at - 3600)):
                    assert post(signed("msg_1", when, body, [key])) == 401
                assert post({}) == 401
                for _ in range(2):
                    assert post(signed("msg_1", at, body, [new_secret(), secret])) == 204
                assert receiver.stdout.readline() == "It is cold in Ottawa.\n"
                assert post(signed("msg_2", at, body, [secret])) == 204
                assert receiver.stdout.readline() == "It is cold in Ottawa.\n"
            finally:
                receiver.kill()
        assert asked == [("/v1/chats/ch_1", "Bearer dt_x")] * 2
