"""The front port's HTTP/1.1: announced sizes."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
import uvicorn
from dualtrack_stack.local.bounded_http import MOST_BYTES, BoundedBodies
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the size of the body, once it is there."""
    try:
        size = len(await Request(scope, receive).body())
    except ClientDisconnect:
        return
    await PlainTextResponse(str(size))(scope, receive, send)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            ready.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(
            uvicorn.Config(echo, http=BoundedBodies, ws="none", lifespan="off", log_level="critical")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        assert ready.wait(30)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def answer(port: int, *pieces: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
        for piece in pieces:
            connection.sendall(piece.encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize(
    "pieces",
    [
        (CHUNKED, "FFFFFFFFFFFFFFFFF\r\n"),
        (CHUNKED + "FFFFFFFFFFFFFFFFF\r\nx",),
        (CHUNKED, "2\r\n{}\r\n", "FFFFFFFF\r\nx"),
        (f"Content-Length: {MOST_BYTES + 1}\r\n\r\n",),
        ("Content-Length: 99999999999\r\n\r\nx",),
        # more than the buffers between the two hold: nobody can send it who is not read
        ("Content-Length: 99999999999\r\n\r\n", "x" * 30_000_000),
    ],
)
def test_what_no_request_may_have_is_refused_before_it_arrives(port: int, pieces: tuple[str, ...]) -> None:
    """The connection stays open at the caller's end: who waits for the rest waits for ever."""
    refused = answer(port, *pieces)
    assert refused.startswith(b"HTTP/1.1 413 ")
    assert b'"code": "too_large"' in refused


@pytest.mark.parametrize(
    ("pieces", "size"),
    [
        ((CHUNKED, "2\r\n{}\r\n", "3;x=y\r\nabc\r\n", "0\r\n\r\n"), b"5"),
        (("Content-Length: 3\r\n\r\n", "abc"), b"3"),
        ((f"Content-Length: {MOST_BYTES}\r\n\r\n", "x" * MOST_BYTES), str(MOST_BYTES).encode()),
        (("\r\n",), b"0"),
    ],
)
def test_other_bodies_are_read(port: int, pieces: tuple[str, ...], size: bytes) -> None:
    assert answer(port, *pieces).endswith(b"\r\n\r\n" + size)
