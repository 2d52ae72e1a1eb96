"""One POST to a receiver that may be anybody's: bounded in time, space and where it leads.

The name is resolved once, every address of it is checked, and the connection goes to a checked one, with TLS for the
name. `http.client` knows no proxies of the environment and follows no redirects; of the answer only the head is read.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import TookTooLong
from dualtrack.plugins.webhooks.targets import NotAllowed, checked, parse_target
from dualtrack.runtime.time_limit import within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.plugins.webhooks.targets import WebhookTarget

POST_SECONDS: Final = 5.0
"""From the name's resolution to the answer's head."""

MOST_READ: Final = 64 * 1024
"""Bytes of an answer that are read: its head, and what a buffer takes with it. The rest of a longer head is none."""

GONE: Final = 410
_REDIRECTS: Final = range(300, 400)
_DELIVERED: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """What came of a POST: the HTTP ``status``, or 0 and an ``error``; how long it took."""

    status: int = 0
    error: str = ""
    milliseconds: int = 0

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return self.status in _DELIVERED

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more."""
        return self.status == GONE


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(frozen=True, slots=True)
class Poster:
    """Posts. ``loopback``: whether this machine is allowed; ``trusted``: how certificates are checked."""

    loopback: bool = False
    seconds: float = POST_SECONDS
    names: Callable[[str, int], Sequence[str]] = resolve
    trusted: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> PostOutcome:
        """Send it. Raises nothing that a receiver can cause."""
        started = time.monotonic()
        open_now: list[_PinnedAddress] = []
        try:
            status, error = (
                within(self.seconds, partial(self._sent, url, body, headers, open_now), "post"),
                "",
            )
        except (TookTooLong, TimeoutError):
            status, error = 0, f"no answer within {self.seconds:g} s"
        except NotAllowed as wrong:
            status, error = 0, f"not allowed: {wrong}"
        except ssl.SSLError as wrong:
            status, error = 0, f"TLS: {wrong.reason or 'failed'}"
        except socket.gaierror:
            status, error = 0, "its name is not known"
        except (OSError, http.client.HTTPException, ValueError):
            status, error = 0, "the connection failed, or broke off"
        finally:
            for connection in open_now:
                connection.cut()
        if status in _REDIRECTS:
            error = "a redirect, which is not followed"
        return PostOutcome(status, error, round((time.monotonic() - started) * 1000))

    def _sent(self, url: str, body: bytes, headers: Mapping[str, str], open_now: list[_PinnedAddress]) -> int:
        target = parse_target(url, loopback=self.loopback)
        addresses = checked(self.names(target.host, target.port), target)
        connection = _PinnedAddress(target, addresses, self.trusted, self.seconds)
        open_now.append(connection)
        connection.request("POST", target.path, body, {**headers, "Connection": "close"})
        return connection.getresponse().status


class _BoundedBody(io.RawIOBase):
    """The first `MOST_READ` bytes of a stream, which then ends."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw, self._left = raw, MOST_READ

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        """Read some."""
        read: int | None = self._raw.readinto(buffer[: self._left])
        self._left -= read or 0
        return read

    def close(self) -> None:
        """Close both."""
        self._raw.close()
        super().close()


class _Head(http.client.HTTPResponse):
    """An answer of which only the head is read, within bounds, however many lines or interim answers it has."""

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_BoundedBody(self.fp.detach()))


class _PinnedAddress(http.client.HTTPConnection):
    """A connection to one of these addresses, whatever the name resolves to by now."""

    response_class = _Head

    def __init__(
        self, target: WebhookTarget, addresses: Sequence[str], trusted: ssl.SSLContext, seconds: float
    ) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self.default_port = 80 if target.is_plain else 443  # left out of the header Host
        self._target, self._addresses, self._trusted = target, addresses, trusted
        self._raw: socket.socket | None = None
        self._is_cut = False

    def connect(self) -> None:
        """Connect to the first address that answers. Raises OSError, also if it was cut meanwhile."""
        self._raw = self.sock = self._opened()
        if self._is_cut:
            self.cut()
            raise OSError("cut")
        if not self._target.is_plain:
            self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._target.host)

    def _opened(self) -> socket.socket:
        *others, last = self._addresses
        for address in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((address, self._target.port), self.timeout)
        return socket.create_connection((last, self._target.port), self.timeout)

    def cut(self) -> None:
        """End it, also while another thread connects, or reads from it."""
        self._is_cut = True
        for open_socket in (self._raw, self.sock):
            with contextlib.suppress(OSError):
                if open_socket is not None:
                    socket.socket.shutdown(open_socket, socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.close()
