"""A proxy between a client and the stack that ends the first streams in the middle of an event."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request


@dataclass
class CuttingProxy:
    """``cuts``: bytes after which each of the first streams ends; ``resumed``: the Last-Event-ID of each stream."""

    upstream: str
    cuts: list[int]
    resumed: list[str] = field(default_factory=list)
    url: str = ""

    async def pass_on(self, request: Request) -> Response:
        """Forward the request unchanged, except for the Host header."""
        left_out = {"host", "accept-encoding", "connection"}
        headers = {name: value for name, value in request.headers.items() if name not in left_out}
        client = httpx.AsyncClient(timeout=60, trust_env=False)
        asked = client.build_request(
            request.method,
            f"{self.upstream}{request.url.path}",
            params=request.query_params,
            headers=headers,
            content=await request.body(),
        )
        answer = await client.send(asked, stream=True)
        kept = {
            name: value for name, value in answer.headers.items() if name in ("content-type", "retry-after")
        }
        if not request.url.path.endswith("/events"):
            content = await answer.aread()
            await client.aclose()
            return Response(content, answer.status_code, kept)
        self.resumed.append(request.headers.get("last-event-id", ""))
        limit = self.cuts.pop(0) if self.cuts else None
        return StreamingResponse(_cut(client, answer, limit), answer.status_code, kept)


async def _cut(client: httpx.AsyncClient, answer: httpx.Response, limit: int | None) -> AsyncIterator[bytes]:
    sent = 0
    try:
        async for piece in answer.aiter_raw():
            part = piece if limit is None else piece[: limit - sent]
            yield part
            sent += len(part)
            if sent == limit:
                return
    finally:
        await answer.aclose()
        await client.aclose()


@contextmanager
def cutting(upstream: str, *cuts: int) -> Iterator[CuttingProxy]:
    """A proxy in front of a stack."""
    proxy = CuttingProxy(upstream, list(cuts))

    app = Starlette(routes=[Route("/{path:path}", proxy.pass_on, methods=["GET", "POST"])])
    with serve_in_thread(app) as proxy.url:
        yield proxy
