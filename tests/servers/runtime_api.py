"""Lambda's Runtime API and Extensions API for one function instance, as far as a web adapter asks them.

The paths, headers and the form of a streamed answer are those of AWS's "Lambda runtime API" and "Building a custom
runtime for response streaming": a prelude of JSON, eight NUL bytes, the body; in chunks, as they are made.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STREAMED: Final = "application/vnd.awslambda.http-integration-response"
PRELUDE_ENDS: Final = b"\0" * 8
PATIENCE: Final = 60


class Broken(Exception):
    """The function did not keep to the Runtime API."""


@dataclass
class Answer:
    """A streamed answer. ``hang_up``: the server does, when it has received this; empty: never."""

    hang_up: bytes = b""
    pieces: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    received: bytes = b""

    def until(self, wanted: bytes) -> bytes:
        """All that came until ``wanted`` was in it. Raises `Broken` if the answer ends before."""
        while wanted not in self.received:
            piece = self.pieces.get(timeout=PATIENCE)
            if piece is None:
                raise Broken(f"ended after {self.received!r}")
            self.received += piece
        return self.received

    def whole(self) -> tuple[dict[str, Any], bytes]:
        """The prelude and the body, when the answer has ended."""
        while (piece := self.pieces.get(timeout=PATIENCE)) is not None:
            self.received += piece
        prelude, _, body = self.received.partition(PRELUDE_ENDS)
        return json.loads(prelude), body


class RuntimeApi(ThreadingHTTPServer):
    """The server. ``registered``: the extension is; ``ready``: an invocation was asked for; ``errors``: reported."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.registered, self.ready, self.over = threading.Event(), threading.Event(), threading.Event()
        self.events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.answers: dict[str, Answer] = {}
        self.errors: list[str] = []

    def invoke(self, event: Mapping[str, Any], *, hang_up: bytes = b"") -> Answer:
        """Hand an event to the function."""
        number = str(uuid.uuid4())
        self.answers[number] = Answer(hang_up)
        self.events.put((number, json.dumps(event).encode()))
        return self.answers[number]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RuntimeApi  # type: ignore[bad-override-mutable-attribute] # the class that makes it says so

    def do_GET(self) -> None:
        if self.path == "/2020-01-01/extension/event/next":
            self.server.over.wait()
        elif self.path == "/2018-06-01/runtime/invocation/next":
            self.server.ready.set()
            self._next()
        else:
            self.server.errors.append(self.path)
            self._say(404)

    def do_POST(self) -> None:
        parts = self.path.strip("/").split("/")
        if self.path == "/2020-01-01/extension/register":
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.registered.set()
            self._say(200, {"Lambda-Extension-Identifier": str(uuid.uuid4())})
        elif parts[:3] == ["2018-06-01", "runtime", "invocation"] and parts[4:] == ["response"]:
            self._take(self.server.answers[parts[3]])
        else:
            self.server.errors.append(f"{self.path} {b''.join(self._body())!r}")
            self._say(202)

    def _next(self) -> None:
        while not self.server.over.is_set():
            try:
                number, event = self.server.events.get(timeout=0.1)
            except queue.Empty:
                continue
            deadline = str(int((time.time() + 130) * 1000))
            arn = "arn:aws:lambda:us-east-1:000000000000:function:stream"
            headers = {
                "Lambda-Runtime-Aws-Request-Id": number,
                "Lambda-Runtime-Deadline-Ms": deadline,
                "Lambda-Runtime-Invoked-Function-Arn": arn,
            }
            self._say(200, headers, event)
            return

    def _take(self, answer: Answer) -> None:
        if self.headers["Lambda-Runtime-Function-Response-Mode"] != "streaming":
            self.server.errors.append("not streamed")
        if self.headers["Content-Type"] != STREAMED:
            self.server.errors.append(str(self.headers["Content-Type"]))
        for piece in self._body():
            answer.pieces.put(piece)
            if answer.hang_up and answer.hang_up in piece:
                self.close_connection = True
                return
        answer.pieces.put(None)
        self._say(202)

    def _body(self) -> Iterator[bytes]:
        """The body in its chunks, as they come."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass

    def _say(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"{}") -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def serve_runtime_api() -> Iterator[RuntimeApi]:
    """The server in threads, until the end of the block."""
    with RuntimeApi() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
