"""A strict fake of Context7 v2 on loopback: refuses what the real one refuses, records its requests.

Behaviour is set through the control object: ``libraries`` and ``sections`` are its data, ``answers`` a queue of
responses that are sent first.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.datastructures import QueryParams
    from starlette.requests import Request

SEPARATOR = "\n\n" + 32 * "-" + "\n\n"
_STATES = ("finalized", "initial", "processing", "error", "delete")


@dataclass
class FakeContext7:
    """``sections`` maps a library id to a function (query) -> code snippets. ``search_answers`` and ``context_answers``
    are responses sent one by one before the data. Every answer comes after ``delay`` seconds.
    """

    api_key: str = ""
    delay: float = 0.0
    libraries: list[dict[str, Any]] = field(default_factory=list)
    sections: dict[str, Callable[[str], list[dict[str, Any]]]] = field(default_factory=dict)
    search_answers: deque[Any] = field(default_factory=deque)
    context_answers: deque[Any] = field(default_factory=deque)
    always_context: Any = None
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def searches(self) -> list[dict[str, str]]:
        return [params for path, params in self.requests if path.endswith("/search")]

    def contexts(self) -> list[dict[str, str]]:
        return [params for path, params in self.requests if path.endswith("/context")]

    async def search(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        if refused := self._checked(request, {"libraryName", "query", "fast"}, {"libraryName", "query"}):
            return refused
        if self.search_answers:
            return await _given(self.search_answers.popleft(), request)
        return JSONResponse({"results": self.libraries, "searchFilterApplied": False})

    async def context(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        allowed = {"libraryId", "query", "type", "fast"}
        if refused := self._checked(request, allowed, {"libraryId", "query"}):
            return refused
        if self.context_answers:
            return await _given(self.context_answers.popleft(), request)
        if self.always_context is not None:
            return await _given(self.always_context, request)
        return self.data(request)

    def data(self, request: Request) -> Response:
        """The answer for a query, from the sections."""
        return self._data(request.query_params["libraryId"], request.query_params)

    def _data(self, identity: str, params: QueryParams) -> Response:
        if not re.fullmatch(r"/[^/]+/[^/]+([/@][^/]+)?", identity):
            return error(400, "invalid_library_id")
        if params.get("type", "txt") not in ("txt", "json"):
            return error(400, "validation_error")
        if identity not in self.sections:
            return error(404, "library_not_found")
        snippets = self.sections[identity](params["query"])
        if params.get("type") == "json":
            return JSONResponse({"codeSnippets": snippets, "infoSnippets": []})
        return PlainTextResponse(SEPARATOR.join(as_text(snippet) for snippet in snippets))

    def _checked(self, request: Request, allowed: set[str], needed: set[str]) -> Response | None:
        names = [name for name, _ in request.query_params.multi_items()]
        self.requests.append((request.url.path, dict(request.query_params)))
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return error(401, "invalid_api_key")
        if set(names) - allowed or needed - set(names) or len(names) != len(set(names)):
            return error(400, "validation_error")
        for name in needed:
            if not 1 <= len(request.query_params[name]) <= 500:
                return error(400, "validation_error")
        return (
            None
            if request.query_params.get("fast", "true") in ("true", "false")
            else error(400, "validation_error")
        )


def error(status: int, name: str, headers: dict[str, str] | None = None, **more: str) -> Response:
    """Context7's error form."""
    return JSONResponse({"error": name, "message": f"{name}.", **more}, status_code=status, headers=headers)


def library(identity: str, title: str, **more: Any) -> dict[str, Any]:
    """One search result with every documented field."""
    base = {
        "id": identity,
        "title": title,
        "description": f"{title} documentation",
        "branch": "main",
        "lastUpdateDate": "2026-11-01T00:00:00Z",
        "state": "finalized",
        "totalTokens": 50_000,
        "totalSnippets": 100,
        "stars": 10,
        "trustScore": 8,
        "benchmarkScore": 80,
        "versions": [],
    }
    assert more.get("state", "finalized") in _STATES
    return {**base, **more}


def snippet(
    title: str, description: str, code: str = "", url: str = "", language: str = "python"
) -> dict[str, Any]:
    """One code snippet with every documented field."""
    return {
        "codeTitle": title,
        "codeDescription": description,
        "codeLanguage": language,
        "codeTokens": 100,
        "codeId": url or f"https://docs.example.com/{re.sub('[^a-z0-9]+', '-', title.lower())}",
        "pageTitle": "Documentation",
        "codeList": [{"language": language, "code": code}] if code else [],
    }


def as_text(item: dict[str, Any]) -> str:
    """A snippet in the form of ``type=txt``."""
    codes = "".join(f"\n\n```{code['language']}\n{code['code']}\n```" for code in item["codeList"])
    return f"### {item['codeTitle']}\n\nSource: {item['codeId']}\n\n{item['codeDescription']}{codes}"


async def _given(answer: Any, request: Request) -> Response:
    result = answer(request) if callable(answer) and not isinstance(answer, Response) else answer
    return result if isinstance(result, Response) else await result


@contextmanager
def serve_context7(control: FakeContext7) -> Iterator[FakeContext7]:
    """The control object with its ``url`` while it is served. Every other path is recorded and 404."""

    async def other(request: Request) -> Response:
        control.paths.append(request.url.path)
        return Response(json.dumps({"error": "not_found"}), status_code=404)

    routes = [
        Route("/api/v2/libs/search", control.search),
        Route("/api/v2/context", control.context),
        Route("/{rest:path}", other, methods=["GET", "POST", "PUT", "DELETE"]),
    ]
    with serve_in_thread(Starlette(routes=routes)) as url:
        control.url = url
        yield control
