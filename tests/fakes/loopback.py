"""A Starlette app served on a free loopback port, in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.applications import Starlette


class _Server(uvicorn.Server):
    """Tells when it serves, and stops at once when it is told to (uvicorn's own loop looks ten times a
    second whether it should).
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self.ready.set()

    async def main_loop(self) -> None:
        await self._over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for _ in range(3):  # a connection just accepted is listed one turn of the loop later
            for connection in list(self.server_state.connections):
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(0)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)


@contextmanager
def serve(app: Starlette) -> Iterator[str]:
    """The address ``http://127.0.0.1:PORT`` while the app is served. Requests still open at the end
    are cancelled.
    """
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=0
    )
    server = _Server(config)
    # With the protocol named, asyncio switches Nagle's algorithm off.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            if not server.ready.wait(10):
                raise RuntimeError("the loopback server did not start")
            yield address
        finally:
            server.stop()
            thread.join(10)
