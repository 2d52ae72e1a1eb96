"""A stream under a lease, which limits how many a user has open (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from dualtrack.storage.leases import Lease, Leases

HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
_BEFORE_THE_END: Final = 10
"""Seconds before its lease ends in which a stream is cut whose client does not read."""


class BrokenOff(Exception):
    """A body cannot be completed: the connection ends without its end, so that the client sees it."""


class LeasedStream(StreamingResponse):
    """A body under a lease, which is released once: before the end is sent, or when the client has disconnected."""

    def __init__(
        self,
        content: AsyncIterator[bytes],
        leases: Leases,
        lease: Lease,
        media_type: str = EVENT_STREAM,
        headers: dict[str, str] = HEADERS,
    ) -> None:
        super().__init__(self._body(content), media_type=media_type, headers=headers)
        self._leases = leases
        self._held: Lease | None = lease
        self._seconds = lease.bound.seconds - _BEFORE_THE_END

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, within the time of the lease."""
        try:
            with anyio.move_on_after(self._seconds):
                await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._free()

    async def _body(self, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in content:
            yield piece
        await self._free()  # a client that comes back at once must not find its own lease

    async def _free(self) -> None:
        held, self._held = self._held, None
        if held:
            await anyio.to_thread.run_sync(self._leases.free, held)
