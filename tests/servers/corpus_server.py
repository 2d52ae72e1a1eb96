"""A fake of the graph's corpora API on loopback: uploads, and jobs that check each file as the loader does.

A job is done when it is created. It publishes its files' names, and a schema that the test sets.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.corpora.graph.load import counted
from dualtrack.corpora.kinds import FileRefused
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

CORPUS = "/v1/admin/corpora/graph"
TOKEN = "token-of-an-administrator"


@dataclass
class Published:
    """The server's content, and the requests it got."""

    most: int = 20_000_000
    """Maximum bytes of an upload."""
    schema: dict[str, Any] | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    _uploads: dict[str, bytes] = field(default_factory=dict)

    async def corpus(self, request: Request) -> Response:
        return _for_admins(
            request, {"documents": [{"title": name} for name in self.files], "schema": self.schema}
        )

    async def uploads(self, request: Request) -> Response:
        body = await request.json()
        too_large = [file for file in body["files"] if not 1 <= file["size"] <= self.most]
        announced = [file["sha256"] for file in body["files"]]
        if set(body) != {"files"} or too_large:
            return _refuse(400, "invalid_request", f"{too_large}")
        base = str(request.base_url)
        uploads = [
            {"upload_id": sha256, "name": file["name"], "url": f"{base}put/{sha256}", "headers": {}}
            for sha256, file in zip(announced, body["files"], strict=True)
        ]
        return _for_admins(request, {"uploads": uploads})

    async def put(self, request: Request) -> Response:
        data = await request.body()
        upload = request.path_params["upload"]
        if len(data) > self.most or hashlib.sha256(data).hexdigest() != upload:
            return Response(status_code=403)
        self._uploads[upload] = data
        return Response()

    async def job(self, request: Request) -> Response:
        body = await request.json()
        files = {file["name"]: self._uploads[file["upload_id"]] for file in body["files"]}
        looked_at = [_looked_at(name, data) for name, data in files.items()]
        job: dict[str, Any] = {"status": "done", "to_embed": 0, "url": "/", "files": looked_at}
        if any(file["state"] == "refused" for file in looked_at):
            job |= {"status": "failed", "error": "Nothing was loaded."}
        else:
            self.files = files if body["reset"] else self.files | files
        self.jobs.append(job)
        return _for_admins(request, job)


def _looked_at(name: str, data: bytes) -> dict[str, Any]:
    try:
        counts, problems = counted(name, data)
    except FileRefused as refusal:
        return {"name": name, "state": "refused", "reason": str(refusal)}
    if problems.count:
        reason = f"has {problems.count} bad rows"
        return {"name": name, "state": "refused", "reason": reason, "problems": list(problems.lines)}
    return {"name": name, "state": "read", "title": name, "counts": dict(counts), "outcome": "added"}


def _for_admins(request: Request, answer: dict[str, Any]) -> Response:
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return _refuse(403, "forbidden", "Only for the group admin.")
    return JSONResponse(answer)


def _refuse(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)


@contextmanager
def corpus_server(published: Published) -> Iterator[str]:
    """Serve it; the base URL."""
    routes = [
        Route("/dev/status", lambda _: _refuse(404, "not_found", "Not found.")),
        Route(CORPUS, published.corpus),
        Route(f"{CORPUS}/uploads", published.uploads, methods=["POST"]),
        Route(f"{CORPUS}/jobs", published.job, methods=["POST"]),
        Route("/put/{upload}", published.put, methods=["PUT"]),
    ]
    with serve_in_thread(Starlette(routes=routes)) as url:
        yield url
