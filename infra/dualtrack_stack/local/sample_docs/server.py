"""GET /api/v2/libs/search and /api/v2/context in the shape of Context7's v2 API, strict on parameters.

Source: Context7's OpenAPI description 2.0.0. Errors are ``{"error", "message"}``; a library that moved
is a 301 whose body holds the new id, without a Location.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from . import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.requests import Request

    from .catalogue import SampleLibrary, Snippet

SEPARATOR = "\n\n" + "-" * 32 + "\n\n"
MAX_PARAMETER = 500
_LIBRARY_ID = re.compile(r"/[^/]+/[^/]+([/@][^/]+)?")


class DocsError(Exception):
    """An error answer: HTTP status, Context7's error name, message, further fields."""

    def __init__(self, status: int, error: str, message: str, extra: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": error, "message": message, **(extra or {})}


def create_app() -> Starlette:
    """The ASGI app."""
    return Starlette(
        routes=[
            Route("/api/v2/libs/search", _search, methods=["GET"]),
            Route("/api/v2/context", _context, methods=["GET"]),
            Route("/health", _health),
        ],
        exception_handlers={DocsError: _docs_error, HTTPException: _http_error},
    )


async def _search(http: Request) -> Response:
    parameters = _parameters(http, required=("libraryName", "query"), optional=("fast",))
    libraries = catalogue.search(parameters["libraryName"], parameters["query"])
    return JSONResponse(
        {"results": [_listed(library) for library in libraries], "searchFilterApplied": False}
    )


async def _context(http: Request) -> Response:
    parameters = _parameters(http, required=("libraryId", "query"), optional=("type", "fast"))
    kind = parameters.get("type", "txt")
    if kind not in ("txt", "json"):
        raise _invalid("type must be one of: txt, json")
    snippets = catalogue.ordered(_known(parameters["libraryId"]), parameters["query"])
    if kind == "json":
        return JSONResponse(_as_json(snippets))
    return PlainTextResponse(SEPARATOR.join(_as_text(snippet) for snippet in snippets))


async def _health(http: Request) -> Response:
    del http
    return JSONResponse({"status": "ok", "documents": "sample"})


def _parameters(http: Request, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, str]:
    """The query parameters, each at most once; DocsError 400 for anything else."""
    _check_key(http)
    parameters: dict[str, str] = {}
    for name, value in http.query_params.multi_items():
        if name not in (*required, *optional):
            raise _invalid(f"unknown parameter: {name}")
        if name in parameters:
            raise _invalid(f"{name} is given more than once")
        parameters[name] = value
    for name in required:
        if not 1 <= len(parameters.get(name, "")) <= MAX_PARAMETER:
            raise _invalid(f"{name} is required and takes 1 to {MAX_PARAMETER} characters")
    if parameters.get("fast", "false") not in ("true", "false"):
        raise _invalid("fast must be true or false")
    return parameters


def _check_key(http: Request) -> None:
    """Anonymous is fine, any bearer token too; another scheme is a mistake of the client."""
    header = http.headers.get("authorization")
    if header is not None and not re.fullmatch(r"Bearer \S+", header):
        raise DocsError(401, "invalid_api_key", "Invalid API key. Send it as: Authorization: Bearer <key>")


def _invalid(message: str) -> DocsError:
    return DocsError(400, "validation_error", message)


def _known(library_id: str) -> SampleLibrary:
    if not _LIBRARY_ID.fullmatch(library_id):
        raise DocsError(
            400, "invalid_library_id", "libraryId must look like /owner/repo or /owner/repo/version"
        )
    if library_id in catalogue.REDIRECTED:
        moved = catalogue.REDIRECTED[library_id]
        raise DocsError(301, "library_redirected", f"Library moved to {moved}", {"redirectUrl": moved})
    if library_id in catalogue.UNFINISHED:
        raise DocsError(202, "library_not_finalized", "Library is not finalized yet, try again later")
    library = catalogue.find(library_id)
    if library is None:
        plain = "/".join(library_id.replace("@", "/").split("/")[:3])
        error = "tag_not_found" if catalogue.find(plain) else "library_not_found"
        raise DocsError(404, error, f"No documents for {library_id}")
    return library


def _listed(library: SampleLibrary) -> dict[str, Any]:
    return {
        "id": library.id,
        "title": library.title,
        "description": library.description,
        "branch": library.branch,
        "lastUpdateDate": f"{library.updated}T00:00:00.000Z",
        "state": "finalized",
        "totalTokens": sum(snippet.tokens for snippet in library.snippets),
        "totalSnippets": len(library.snippets),
        "stars": library.stars,
        "trustScore": library.trust,
        "benchmarkScore": library.benchmark,
        "versions": list(library.versions),
    }


def _as_json(snippets: tuple[Snippet, ...]) -> dict[str, Any]:
    return {
        "codeSnippets": [_code_snippet(snippet) for snippet in snippets if snippet.code],
        "infoSnippets": [
            {
                "pageId": snippet.source,
                "breadcrumb": f"{snippet.page} > {snippet.title}",
                "content": snippet.description,
                "contentTokens": snippet.tokens,
            }
            for snippet in snippets
            if not snippet.code
        ],
    }


def _code_snippet(snippet: Snippet) -> dict[str, Any]:
    return {
        "codeTitle": snippet.title,
        "codeDescription": snippet.description,
        "codeLanguage": snippet.code[0][0],
        "codeTokens": snippet.tokens,
        "codeId": snippet.source,
        "pageTitle": snippet.page,
        "codeList": [{"language": language, "code": code} for language, code in snippet.code],
    }


def _as_text(snippet: Snippet) -> str:
    fences = (f"```{language}\n{code}\n```" for language, code in snippet.code)
    return "\n\n".join((f"### {snippet.title}", f"Source: {snippet.source}", snippet.description, *fences))


async def _docs_error(http: Request, error: Exception) -> Response:
    del http
    assert isinstance(error, DocsError)
    return JSONResponse(error.body, error.status)


async def _http_error(http: Request, error: Exception) -> Response:
    del http
    assert isinstance(error, HTTPException)
    name = "not_found" if error.status_code == 404 else "method_not_allowed"
    return JSONResponse({"error": name, "message": error.detail}, error.status_code, error.headers)


@contextlib.contextmanager
def serve_sample_docs(port: int = 0) -> Iterator[str]:
    """Run the server in a thread; gives its base URL."""
    with serve_in_thread(create_app(), port) as url:
        yield url
