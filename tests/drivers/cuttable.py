"""A TCP relay to the stack whose connections a test can break and restore."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"


class Relay:
    """Passes bytes between its port and the target's until it is cut."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or HOST, parts.port or 80)
        self._listener = socket.create_server((HOST, 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._whole = True
        self.url = f"http://{HOST}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        with self._lock:
            self._whole = False
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._whole = True

    def close(self) -> None:
        """Break every connection and stop listening."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed at the end
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(self._target) as far:
            if not self._join(near, far):
                return
            back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
            back.start()
            self._pass(near, far)
            back.join()
            with self._lock:
                self._open -= {near, far}

    def _join(self, near: socket.socket, far: socket.socket) -> bool:
        with self._lock:
            if self._whole:
                self._open |= {near, far}
            return self._whole

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relay(target: str) -> Iterator[Relay]:
    """A relay to a URL while the block runs."""
    running = Relay(target)
    try:
        yield running
    finally:
        running.close()
