"""MCP servers that send too much, too little, too slowly or something else than they say: one for each path.

They speak HTTP/1.1 over a socket themselves, because a framework would not let them lie.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import socketserver
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GIGABYTE = 1_000_000_000
PIECE = 65_536
TOOL = {"name": "find", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
ODATA = {
    "type": "object",
    "properties": {"$top": {"type": "integer"}, "@odata.type": {"type": "string"}},
    "required": ["$top"],
}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
JSON = "application/json"
SSE = "text/event-stream"


@dataclass
class HostileServer:
    """The server's address, the bytes of body that each path got rid of, and the requests that it has."""

    url: str = ""
    sent: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    """Where ``/meet`` and ``/meet2`` wait for each other before they hang."""

    def at(self, path: str) -> str:
        """The address of a server."""
        return f"{self.url}/{path}"


def result_of(method: str) -> dict[str, Any]:
    """An honest result."""
    common = {"resultType": "complete"}
    if method == "tools/list":
        return {**common, "ttlMs": 0, "cacheScope": "public", "tools": [TOOL]}
    return {**common, "content": [{"type": "text", "text": "found"}]}


def message(request: Any, result: Any) -> bytes:
    """A JSON-RPC answer."""
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def beginning(request: Any) -> bytes:
    """An answer whose one text or description does not end."""
    honest = json.dumps(result_of(request["method"]))
    opened = honest.replace('"name": "find"', '"name": "find", "description": "').replace(
        '"text": "found"', '"text": "'
    )
    cut = opened.index('"description": "') + 16 if "description" in opened else opened.index('"text": "') + 9
    return f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {opened[:cut]}'.encode()


def small_values(request: Any, blocks: int = 400_000) -> bytes:
    """12 MB of so many blocks, or of as many tools."""
    if request["method"] == "tools/list":
        return message(request, {**result_of("tools/list"), "tools": [TOOL] * (blocks * 3 // 8)})
    return message(request, {"resultType": "complete", "content": [{"type": "text", "text": "a"}] * blocks})


@cache
@cache
def letters() -> bytes:
    """600 MB of one letter, as deflated blocks that can follow any others."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join(deflate.compress(b"a" * 1_000_000) for _ in range(600)) + deflate.flush(zlib.Z_FULL_FLUSH)


def zipped(begin: bytes, times: int = 1) -> bytes:
    """600 MB of text behind this beginning, compressed so many times, without the end, which nobody may read."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    body = deflate.compress(begin) + deflate.flush(zlib.Z_FULL_FLUSH) + letters()
    for _ in range(times - 1):
        body = gzip.compress(body)
    return body


def endless(begin: bytes) -> Iterable[bytes]:
    """A gigabyte of text."""
    yield begin
    for _ in range(GIGABYTE // PIECE):
        yield b"a" * PIECE


def notes() -> Iterable[bytes]:
    """Events without an answer, a gigabyte of them."""
    note = json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "a" * 900}}
    )
    events = b"event: message\ndata: " + note.encode() + b"\n\n"
    for _ in range(GIGABYTE // (64 * len(events))):
        yield events * 64


class _Handler(socketserver.StreamRequestHandler):
    server: _Server  # type: ignore[bad-override-mutable-attribute] # the class that makes it says so

    def handle(self) -> None:
        """Answers one request, then closes."""
        with contextlib.suppress(OSError):
            path, request = self._read()
            if request is not None:
                self.server.board.asked[path] += 1
                getattr(self, path.replace("-", "_"))(request)

    def _read(self) -> tuple[str, Any]:
        first = self.rfile.readline().decode()
        length = 0
        while (line := self.rfile.readline().decode().strip().lower()) != "":
            if line.startswith("content-length:"):
                length = int(line.split(":")[1])
        method, path, _ = first.split(" ")
        self.path = path.strip("/")
        body = json.loads(self.rfile.read(length)) if length else None
        return self.path, body if method == "POST" and body and "id" in body else None

    def _head(self, kind: str, **headers: object) -> None:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.wfile.write(
            "\r\n".join(
                ["HTTP/1.1 200 OK", f"content-type: {kind}", "connection: close", *lines, "", ""]
            ).encode()
        )

    def _body(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.wfile.write(piece)
            self.server.board.sent[self.path] += len(piece)

    def _until_over(self) -> None:
        self.server.board.over.wait()

    def honest(self, request: Any) -> None:
        self._head(JSON)
        self._body([message(request, result_of(request["method"]))])

    def odata(self, request: Any) -> None:
        """A tool with a property whose name the Messages API refuses; its result is the arguments that came."""
        tool = {**TOOL, "inputSchema": ODATA}
        came = request.get("params", {}).get("arguments")
        content = [{"type": "text", "text": json.dumps(came)}]
        own = {"tools": [tool]} if request["method"] == "tools/list" else {"content": content}
        self._head(JSON)
        self._body([message(request, {**result_of(request["method"]), **own})])

    def mixed(self, request: Any) -> None:
        """Tools of which one is not to be had; the other fails with a picture and a NUL."""
        odd = {**TOOL, "name": "later", "execution": {"taskSupport": "required"}}
        bare = {
            "name": "find",
            "annotations": {"readOnlyHint": True},
            "icons": "x",
            "title": 7,
            "outputSchema": [],
        }
        picture = {"type": "image", "mimeType": "image/png", "data": PNG}
        said = {"type": "text", "text": "no such\0 page"}
        failed = {"content": [said, picture], "isError": True}
        self._head(JSON)
        self._body(
            [message(request, {"tools": [odd, bare]} if request["method"] == "tools/list" else failed)]
        )

    def zipped_and_honest(self, request: Any) -> None:
        self._head(JSON, content_encoding="gzip")
        self._body([gzip.compress(message(request, result_of(request["method"])))])

    def endless_json(self, request: Any) -> None:
        self._head(JSON)
        self._body(endless(beginning(request)))

    def endless_sse(self, request: Any) -> None:
        self._head(SSE)
        self._body(endless(b"event: message\ndata: " + beginning(request)))

    def endless_events(self, request: Any) -> None:
        del request
        self._head(SSE)
        self._body(notes())

    def endless_error(self, request: Any) -> None:
        self.wfile.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
        )
        self._body(endless(beginning(request)))

    def endless_redirect(self, request: Any) -> None:
        self.wfile.write(b"HTTP/1.1 307 No\r\nlocation: /endless-redirect\r\nconnection: close\r\n\r\n")
        self._body(endless(beginning(request)))

    def bomb_json(self, request: Any) -> None:
        self._head(JSON, content_encoding="gzip")
        self._body([zipped(beginning(request))])

    def bomb_sse(self, request: Any) -> None:
        self._head(SSE, content_encoding="gzip")
        self._body([zipped(b"event: message\ndata: " + beginning(request))])

    def bomb_in_bomb(self, request: Any) -> None:
        self._head(JSON, content_encoding="gzip, gzip")
        self._body([zipped(beginning(request), 2)])

    def blocks_json(self, request: Any) -> None:
        self._head(JSON)
        self._body([small_values(request)])

    def blocks_sse(self, request: Any) -> None:
        self._head(SSE)
        self._body([b'event: message\n: "\ndata: ', small_values(request), b"\n\n"])

    def blocks_utf_7(self, request: Any) -> None:
        """SSE in an encoding that hides the structure from who counts bytes, of which there are few enough."""
        self._head(SSE + "; charset=utf-7")
        hidden = (
            small_values(request, 20_000)
            .decode()
            .replace("{", "+AHs-")
            .replace("[", "+AFs-")
            .replace(",", "+ACw-")
        )
        self._body([b"event: message\ndata: ", hidden.encode(), b"\n\n"])

    def says_less(self, request: Any) -> None:
        self._head(JSON, content_length=20)
        self._body([message(request, result_of(request["method"]))])

    def says_more(self, request: Any) -> None:
        self._head(JSON, content_length=GIGABYTE)
        self._body([message(request, result_of(request["method"]))])

    def says_more_and_waits(self, request: Any) -> None:
        self.says_more(request)
        self._until_over()

    def hangs(self, request: Any) -> None:
        del request
        self._until_over()

    def hangs_in_a_stream(self, request: Any) -> None:
        del request
        self._head(SSE)
        self._body([b": wait\n\n"])
        self._until_over()

    def meet(self, request: Any) -> None:
        del request
        with contextlib.suppress(threading.BrokenBarrierError):
            self.server.board.meeting.wait(20)
        self._until_over()

    meet2 = meet


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    board: HostileServer


@contextlib.contextmanager
def serve_hostile() -> Iterator[HostileServer]:
    """The servers while the block runs."""
    board = HostileServer()
    letters()  # before anybody waits for them
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.board = board
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        board.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield board
        finally:
            board.over.set()
            board.meeting.abort()
            server.shutdown()
            thread.join(10)
