"""The recipes of examples/: a digest reaches a chat room once, and nothing else does; a report is resumed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from dualtrack.plugins.webhooks.post import Poster
from dualtrack.plugins.webhooks.signing import new_secret, signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Stack:
    """A server that answers as a stack does, and what it was asked; as well a chat room."""

    url: str = ""
    answers: dict[str, list[tuple[int, dict[str, Any]]]] = field(default_factory=dict)
    """By path, in turn; the last one again and again."""
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    def of(self, path: str) -> list[Any]:
        """The bodies that came to a path."""
        return [body for asked, _, body in self.asked if asked == path]


@contextlib.contextmanager
def serving(**answers: list[tuple[int, dict[str, Any]]]) -> Iterator[Stack]:
    stack = Stack(answers=answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.split("?")[0].rsplit("/", 1)[1]
            stack.asked.append((path, dict(self.headers.items()), json.loads(body or b"null")))
            left = stack.answers[path]
            status, answer = left.pop(0) if len(left) > 1 else left[0]
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stack.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield stack
    finally:
        server.shutdown()
        server.server_close()


def environment(url: str, **more: str) -> dict[str, str]:
    return {**os.environ, "DUALTRACK_URL": url, "DUALTRACK_API_KEY": "dt_x", "NO_PROXY": "*", **more}


def message(kind: str, **data: str) -> bytes:
    return json.dumps({"type": kind, "timestamp": "", "data": data}).encode()


def test_a_digest_reaches_the_room_once_and_foreign_chats_never(tmp_path: Path) -> None:
    """What the room does not take comes again; without `read` the key is refused the chats of others."""
    secret, at = new_secret(), int(time.time())
    refused = (403, {"error": {"code": "forbidden", "message": "This key lacks the scope read."}})
    with serving(
        ch_1=[(200, {"response": "Two releases. " + "x" * 5_000})],
        ch_2=[refused],
        room=[(500, {}), (200, {})],
    ) as stack:
        more = {"WEBHOOK_SECRET": secret, "ROOM_URL": f"{stack.url}/room", "PORT": "0"}
        program = [sys.executable, str(EXAMPLES / "digest" / "digest.py")]
        with subprocess.Popen(
            program, env=environment(stack.url, **more), stdout=subprocess.PIPE, text=True, cwd=tmp_path
        ) as receiver:
            try:
                assert receiver.stdout is not None
                where = receiver.stdout.readline().split()[-1]

                def told(message_id: str, body: bytes, key: str = secret) -> int:
                    headers = signed(message_id, at, body, [key])
                    return Poster(loopback=True, seconds=30).post(where, body, headers).status

                done = message("chat.done", chat_id="ch_1")
                assert told("msg_1", done, new_secret()) == 401
                assert [told("msg_1", done) for _ in range(3)] == [503, 204, 204]
                assert told("msg_2", message("chat.done", chat_id="ch_2")) == 204
                assert told("msg_3", message("key.cap_reached", key_id="k")) == 204
                late = message("schedule.refused", error="insufficient_credits", status="paused")
                assert told("msg_4", late) == 204
            finally:
                receiver.kill()
    texts = [body["text"] for body in stack.of("room")]
    assert [text[:13] for text in texts] == ["Two releases."] * 2 + ["There is no d"]
    assert len(texts[0]) < 2_000
    assert "insufficient_credits" in texts[2]


def chat(status: str, response: str = "", **more: Any) -> tuple[int, dict[str, Any]]:
    return 200, {
        "chat_id": "ch_1", "status": status, "response": response, "credits_used": 5, "fictional": False,
        "memory": {"dollars": 0.01}, "sources": [{"title": "A <page>", "url": "https://example.com/"}], **more,
    }  # fmt: skip


def test_a_report_goes_on_where_it_stopped_and_pays_nothing_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("What is <new>?\n\nWhat is old?\n")
    short = (402, {"error": {"code": "insufficient_credits", "message": "Too few credits."}})
    busy = (503, {"error": {"code": "unavailable", "message": "Later."}})

    def report(stack: Stack) -> int:
        program = [sys.executable, str(EXAMPLES / "nightly" / "report.py"), str(questions)]
        return subprocess.run(program, env=environment(stack.url), check=False, timeout=60).returncode

    begun = [busy, chat("running"), short, chat("done", "It is <b>old</b>.")]
    with serving(chats=begun, ch_1=[chat("done", "News.")]) as stack:
        assert report(stack) == 1
        assert "Too few credits. Start it again" in capfd.readouterr().err
        assert "1 of 2 asked: 5 credits, $0.0100" in questions.with_suffix(".md").read_text()
        assert [report(stack), report(stack)] == [0, 0]
    starts = [
        (headers["Idempotency-Key"], body["message"])
        for path, headers, body in stack.asked
        if path == "chats"
    ]
    assert [text for _, text in starts] == ["What is <new>?"] * 2 + ["What is old?"] * 2
    assert len({key for key, _ in starts}) == 2, "each has one key, also in the next run"
    written = questions.with_suffix(".md").read_text()
    assert "2 of 2 asked: 10 credits, $0.0200" in written
    assert "## What is <new>?\n\nNews.\n\n- A <page> https://example.com/" in written
    shown = questions.with_suffix(".html").read_text()
    assert "It is &lt;b&gt;old" in shown
    assert "<new>" not in shown
