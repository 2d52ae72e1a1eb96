"""Receivers of webhooks on the loopback interface, good and bad ones, by the path that they are asked under."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Received:
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        """The header that names the message."""
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """``/ok…`` takes everything; ``/500``, ``/410`` answer so; ``/redirect`` leads to ``/ok/redirected``; ``/close``
    hangs up; ``/late`` answers when `release` is set; ``/drip`` sends its head a byte at a time; ``/big`` sends without
    end; ``/mute`` reads and is silent."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    answers: dict[str, int] = field(default_factory=dict)
    """Statuses for paths, before those above."""

    def of(self, path: str) -> list[Received]:
        """The requests under a path."""
        return [one for one in self.received if one.path == path]


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, dict(self.headers.items()), body))
            with contextlib.suppress(OSError):
                _answer(self, receiver)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client may hang up

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.release.set()
        server.shutdown()
        server.server_close()


def _answer(request: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    kind = request.path.split("/")[1]
    if kind in ("late", "mute"):
        receiver.release.wait(60)
    if kind == "close":
        request.close_connection = True
        return
    if kind == "drip":
        for byte in b"HTTP/1.1 200 OK\r\n" * 100:
            request.wfile.write(bytes([byte]))
            request.wfile.flush()
            if receiver.release.wait(0.05):
                return
    status = receiver.answers.get(request.path) or (int(kind) if kind.isdigit() else 200)
    request.send_response(307 if kind == "redirect" else status)
    if kind == "redirect":
        request.send_header("Location", f"{receiver.url}/ok/redirected")
    if kind == "big":
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while not receiver.release.is_set():
            request.wfile.write(b"100000\r\n" + b"x" * 1_048_576 + b"\r\n")
    request.send_header("Content-Length", "0")
    request.end_headers()
