"""The API of corpora over HTTP: the function `api` itself, with a job that takes one step each time it is read.

Tokens are ``<user>`` or ``<user>+admin``; without one the server acts as a local stack, which issues them. Files are
uploaded to this server.
"""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.corpora.courses import CoursesKind
from dualtrack.corpora.ingest import Ingest, ingest
from dualtrack.knowledge.vectors import pack
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.storage.corpora import upload_key
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.drivers.corpus_world import limited
from tests.drivers.world import SETTINGS
from tests.servers.voyage import words_as_vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request

    from tests.clients.api_client import Api

CORPUS = "courses"


class Words:
    """Embeddings that are bags of words."""

    model = "words"

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        return tuple(pack(words_as_vector(text)) for text in texts)

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class CorporaServer:
    """``broken``: jobs fail; ``full``: uploads are refused."""

    api: Api
    broken: bool = False
    full: bool = False
    puts: list[int] = field(default_factory=list)
    loop: BackgroundLoop = field(default_factory=BackgroundLoop)

    async def handle(self, request: Request) -> Response:
        """Any request."""
        body = await request.body()
        return await run_in_threadpool(self._answer, request, body)

    def _answer(self, request: Request, body: bytes) -> Response:
        path = request.url.path
        if path == "/dev/status":
            return JSONResponse({"mode": "offline"})
        if path == "/dev/token":
            user = request.query_params.get("user", "grace") + (
                "+admin" if "admin" in request.query_params else ""
            )
            return JSONResponse({"token": user, "user_id": user})
        if path.startswith("/put/"):
            return self._put(path.removeprefix("/put/"), request, body)
        user, _, group = request.headers["authorization"].removeprefix("Bearer ").partition("+")
        if request.method == "GET" and (job := re.search(r"/jobs/(jb_\w+)$", path)):
            self._go_on(job[1])
        answer = self.api.of(user, ["admin"] if group else None).call(request.method, path, raw=body or None)
        text = re.sub(
            r'"https://[^"]*/uploads/courses/(\w+)\?[^"]*"', rf'"{request.base_url}put/\1"', answer.text
        )
        return Response(text, answer.status, media_type="application/json")

    def _put(self, upload_id: str, request: Request, body: bytes) -> Response:
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        as_announced = request.headers.get("x-amz-checksum-sha256") == checksum
        if self.full or not as_announced or request.headers["content-type"] != "application/octet-stream":
            return Response("<Error/>", 403)
        self.puts.append(len(body))
        key = upload_key(CORPUS, upload_id)
        self.api.world.stores.bodies.s3.put_object(Bucket=SETTINGS.bodies_bucket, Key=key, Body=body)
        return Response()

    def _go_on(self, job_id: str) -> None:
        stores, embedder = self.api.world.stores, Words()
        if self.broken:
            job = stores.corpus_jobs.find(CORPUS, job_id)
            assert job is not None
            stores.corpus_jobs.fail(job, "Something went wrong on our side. Try again.")
            return
        ingest(Ingest(stores, CoursesKind(), embedder, self.loop), job_id, limited(1))


@contextmanager
def serve_corpora(api: Api, **more: Any) -> Iterator[tuple[str, CorporaServer]]:
    """The server's address, and the server."""
    server = CorporaServer(api, **more)
    methods = ["GET", "POST", "PUT", "DELETE"]
    with serve_in_thread(Starlette(routes=[Route("/{path:path}", server.handle, methods=methods)])) as url:
        try:
            yield url, server
        finally:
            server.loop.close()
