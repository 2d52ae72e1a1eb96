"""HTTP/1.1 of the front port: what announces a body that no request may have is refused before it is waited for."""

from __future__ import annotations

import json
from typing import Final

import h11
from dualtrack.api.sizes import TOO_LARGE_BODY
from dualtrack.message_files import UPLOADED_BYTES
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_BYTES: Final = UPLOADED_BYTES
"""Of the largest body that any route takes: a file for a message."""
LINGER_SECONDS: Final = 5.0
_TOO_LARGE: Final = json.dumps(TOO_LARGE_BODY).encode()


class BoundedBodies(H11Protocol):
    """uvicorn's own protocol; a chunk or a whole body of more than `MOST_BYTES` is a 413 by its announced size.

    What a caller sends behind that is read and dropped until they have read the answer and close, `LINGER_SECONDS` at
    most: a connection that closes with unread bytes is reset, and the reset can overtake the answer (RFC 9112, 9.6).
    """

    _is_refused = False

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        cycle = self.cycle
        if cycle is None or cycle.response_started or self.transport.is_closing():
            return
        if _announced(self.conn) > MOST_BYTES:
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            answer = h11.Response(status_code=413, headers=headers, reason=b"Content Too Large")
            for event in (answer, h11.Data(data=_TOO_LARGE), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            cycle.disconnected = True
            cycle.message_event.set()
            self._is_refused = True
            self.flow.resume_reading()
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _announced(connection: h11.Connection) -> int:
    """The bytes that are still to come of the chunk or body that has begun; h11 has no public name for them."""
    reader = connection._reader
    return max(getattr(reader, "_bytes_in_chunk", 0), getattr(reader, "_remaining", 0))
