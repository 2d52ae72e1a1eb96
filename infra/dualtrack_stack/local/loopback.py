"""A small ASGI app on the loopback interface: in a thread for tests, in the foreground for a command."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import uvicorn
from dualtrack_stack.local.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOST = "127.0.0.1"

START_SECONDS = 10.0
"""How long a server may take to start before it counts as broken."""


class _Server(uvicorn.Server):
    """A uvicorn server that reports when it serves."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()


class _ThreadServer(_Server):
    """Stops at once: uvicorn's own loop checks ten times a second, and waits for open requests."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets=sockets)

    async def main_loop(self) -> None:
        await self._over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        for server in self.servers:
            server.close()
        for _ in range(3):  # a connection just accepted is listed one turn of the loop later
            for connection in list(self.server_state.connections):
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(0)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)


def _config(app: Any) -> uvicorn.Config:
    # A dropped connection is a scripted feature here, not an incident: uvicorn's own log stays quiet.
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="critical",
        timeout_graceful_shutdown=1,
    )


def _bind(port: int) -> socket.socket:
    # asyncio switches Nagle's algorithm off only if the protocol is named; with it every answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise
    return listener


def _url(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def serve_in_thread(app: Any, port: int = 0) -> Iterator[str]:
    """Serve ``app`` while the block runs; gives its base URL (no trailing slash). Requests that are still open
    at the end are cancelled.

    Raises OSError if the port is taken, RuntimeError if the server does not start.
    """
    listener = _bind(port)
    url = _url(listener)
    ready = threading.Event()
    server = _ThreadServer(_config(app), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        if not ready.wait(START_SECONDS):
            raise RuntimeError("the loopback server did not start")
        yield url
    finally:
        if ready.is_set():
            server.stop()
        thread.join(START_SECONDS)
        listener.close()


def serve_in_foreground(app: Any, port: int, port_file: Path | None = None) -> None:
    """Serve until SIGINT or SIGTERM; once it serves, print ``ready URL`` and write ``port_file``.

    Programs of this machine are served; pages that a browser shows are not.
    """
    try:
        listener = _bind(port)
    except OSError:
        print(f"port {port} is taken on {HOST}", file=sys.stderr)
        raise SystemExit(2) from None
    url = _url(listener)

    def announce() -> None:
        if port_file is not None:
            # Written beside and renamed, so a reader never sees half a number.
            beside = port_file.with_name(port_file.name + ".new")
            beside.write_text(url.rsplit(":", 1)[1])
            beside.replace(port_file)
        print(f"ready {url}", flush=True)

    with contextlib.suppress(KeyboardInterrupt):
        _Server(_config(Guard(app)), announce).run(sockets=[listener])
