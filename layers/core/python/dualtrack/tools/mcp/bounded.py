"""What a server may send over a connection: bytes after decompression, and JSON values.

The SDK reads a JSON body whole and makes objects of all of it: 0.6 MB of gzip would be 600 MB of text, 12 MB of small
blocks 900 MB of objects. So bodies are counted before the SDK sees them, piece by piece, whatever they say about their
length; a connection that exceeds a limit ends at once. What is counted is given out as well-formed text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httpx2

from dualtrack.tools.mcp.well_formed import WellFormed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_ESCAPES: Final = re.compile(rb"\\[^\r\n]")
_STRINGS: Final = re.compile(rb'"[^"\r\n]*["\r\n]?')
"""A string, or the piece of one that ends with its line: JSON has none over several lines."""
_OF_THE_BODY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding", "content-type"})


class TooLargeError(httpx2.SSEError):
    """A server has sent more than it may. An `SSEError`, because the SDK ends a stream at once for no other."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Of all bodies of a connection: decoded ``bytes``, and JSON ``values`` (members, items, arrays, objects)."""

    bytes: int
    values: int


LISTING: Final = BodyLimits(4 * 1024 * 1024, 50_000)
CALL: Final = BodyLimits(16 * 1024 * 1024, 100_000)


@dataclass(slots=True)
class Values:
    """Counts the JSON values of a text that arrives in pieces, without parsing it: structure outside strings."""

    count: int = 0
    _before: bytes = b""
    """What the next piece continues: a quotation mark if it begins in a string, half of an escape."""

    def take(self, piece: bytes) -> None:
        """Count a piece, in linear time."""
        text = _ESCAPES.sub(b"", self._before + piece)
        half = b"\\" if text.endswith(b"\\") else b""
        outside = _STRINGS.sub(b"", text)
        self.count += sum(outside.count(mark) for mark in (b"{", b"[", b","))
        line = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :]
        self._before = (b'"' if line.count(b'"') % 2 else b"") + half


@dataclass(slots=True)
class BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that gives out decoded bodies within limits. ``exceeded``: one of them was reached."""

    inner: httpx2.AsyncBaseTransport
    limits: BodyLimits
    exceeded: bool = False
    _bytes: int = 0
    _values: Values = field(default_factory=Values)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, whose body is counted as it is read."""
        response = await self.inner.handle_async_request(request)
        # without a charset: what is counted is what is parsed, UTF-8
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in _OF_THE_BODY
        ]
        return httpx2.Response(
            response.status_code,
            headers=[*headers, ("content-type", kind)],
            stream=_Body(self, response),
            extensions=response.extensions,
        )

    def take(self, piece: bytes) -> None:
        """Count a piece of a body. Raises `TooLargeError`."""
        self._bytes += len(piece)
        self._values.take(piece)
        if self._bytes > self.limits.bytes or self._values.count > self.limits.values:
            self.exceeded = True
            raise TooLargeError("The server has sent too much.")

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


@dataclass(slots=True)
class _Body(httpx2.AsyncByteStream):
    """A body, decompressed in pieces of at most 1 MiB and counted."""

    owner: BoundedTransport
    response: httpx2.Response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        text = WellFormed()
        async for piece in self.response.aiter_bytes():
            self.owner.take(piece)
            yield text.take(piece)
        yield text.end()

    async def aclose(self) -> None:
        await self.response.aclose()
