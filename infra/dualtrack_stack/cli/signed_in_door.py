"""The door through which a browser comes back to the terminal: one port of this machine, for one answer."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.sign_in_ports import PATH, PORTS, address_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HEADERS: Final = {
    "Content-Type": "text/plain; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
_SLOW: Final = 5.0
"""Seconds for one request: a connection that says nothing keeps nobody waiting."""


class Door(HTTPServer):
    """Waits for an address that ``accepts`` takes; whatever else knocks gets 400 and changes nothing."""

    accepts: Callable[[str], bool]
    answered: str = ""
    timeout = 1.0

    @property
    def back(self) -> str:
        """Where the browser is led."""
        return address_at(self.server_port)

    def wait(self, accepts: Callable[[str], bool], seconds: float) -> str:
        """The address that was accepted; empty if none came in time."""
        self.accepts = accepts
        until = time.monotonic() + seconds
        while not self.answered and time.monotonic() < until:
            self.handle_request()
        return self.answered


class _Knock(BaseHTTPRequestHandler):
    server: Door  # pyrefly: ignore[bad-override-mutable-attribute]
    timeout = _SLOW

    def do_GET(self) -> None:
        """A browser, or whatever a page in it has been made to ask."""
        is_ours = self.headers.get("Host") == f"localhost:{self.server.server_port}"
        is_ours = is_ours and self.path.partition("?")[0] == PATH
        if is_ours and self.server.accepts(self.path):
            self.server.answered = self.path
            self._say(200, "Back to your terminal: this page can be closed.")
        else:
            self._say(400, "This is no answer to the sign-in that waits here.")

    def _say(self, status: int, text: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing: a line would have the code."""


@contextmanager
def open_door(ports: Sequence[int] = PORTS) -> Iterator[Door | None]:
    """The door at the first port that is free; None if all are taken."""
    for port in ports:
        try:
            door = Door(("127.0.0.1", port), _Knock)
        except OSError:
            continue
        with door:
            yield door
        return
    yield None
