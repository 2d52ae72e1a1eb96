"""Context7's v2 API over httpx: search for libraries, fetch the sections for a phrasing of the question.

The API: ``GET /api/v2/libs/search`` and ``GET /api/v2/context``. Errors are JSON ``{"error", "message"}``. 202 means
"not finalised yet"; 301 has the new library id in the body (``redirectUrl``), and no Location to follow.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx

from dualtrack.message_files import as_utf8
from dualtrack.tools.documentation.chunking import chunks_of_json, chunks_of_text, one_line
from dualtrack.tools.documentation.values import (
    Context7Error,
    DocSection,
    LibraryMatch,
    LibraryUnavailable,
    TryLater,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dualtrack.tools.documentation.settings import RetrievalSettings

SEARCH: Final = "/api/v2/libs/search"
CONTEXT: Final = "/api/v2/context"
_LIBRARY_ID: Final = re.compile(r"(?!.*/\.+(?:[/@]|$))/[\w.~%+-]+/[\w.~%+-]+(?:[/@][\w.~%+-]+)?")
_WEB_PAGE: Final = re.compile(r"\s*+<(?:!doctype\s++html|html)\b", re.IGNORECASE)
"""As a proxy or a portal sends it, with any content type and status 200."""
_SHORT_PAUSE: Final = 0.25
_MAX_MOVES: Final = 2


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The whole body of a 200 response, bounded; this is what is cached. ``is_json``: by its content type."""

    text: str
    is_json: bool


class LibraryMoved(Context7Error):
    """The library has a new id."""

    def __init__(self, library_id: str) -> None:
        super().__init__("the library has moved")
        self.library_id = library_id


class Context7:
    """Requests to the configured address. Redirects are never followed. A busy answer is retried once if the pause
    that Context7 asks for is within the settings' limit.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        settings: RetrievalSettings,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.address = str(http.base_url)
        self._http = http
        self._settings = settings
        self._sleep = sleep

    async def get(self, path: str, params: Mapping[str, str]) -> FetchedPage:
        """The page. Raises `Context7Error` or one of its subclasses."""
        try:
            return await self._once(path, params)
        except TryLater as busy:
            pause = _SHORT_PAUSE if busy.seconds is None else busy.seconds
            if pause > self._settings.limits.retry_after:
                raise
            await self._sleep(pause)
            return await self._once(path, params)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _once(self, path: str, params: Mapping[str, str]) -> FetchedPage:
        try:
            async with self._http.stream("GET", path, params=dict(params)) as response:
                text = await _bounded_text(response, self._settings.bounds.response_bytes)
        except httpx.TimeoutException as error:
            raise Context7Error("Context7 did not answer in time") from error
        except httpx.HTTPError as error:
            raise TryLater("Context7 cannot be reached") from error
        if response.status_code != httpx.codes.OK:
            raise refusal(response.status_code, response.headers, text)
        kind = response.headers.get("content-type", "")
        if "html" in kind or _WEB_PAGE.match(text):
            error = Context7Error("Context7 is not reached: a web page came in place of its answer")
            error.look_at = "CONTEXT7_URL, and what stands between it and this stage"
            raise error
        return FetchedPage(text, "json" in kind)


def search_params(library: str, question: str) -> dict[str, str]:
    """Parameters of the search for libraries."""
    return {"libraryName": library, "query": question}


def context_params(
    library_id: str, phrasing: str, settings: RetrievalSettings, kind: str = "json"
) -> dict[str, str]:
    """Parameters of a context request. ``fast`` skips Context7's own rerank, because ours follows."""
    params = {"libraryId": library_id, "query": phrasing, "type": kind}
    return {**params, "fast": "true"} if settings.context_fast else params


def refusal(status: int, headers: Mapping[str, str], text: str) -> Context7Error:
    """The error for a status other than 200. Its message is for the model, and so for the user."""
    body = _object(text)
    if status == httpx.codes.MOVED_PERMANENTLY:
        moved = library_id(body.get("redirectUrl"))
        return (
            LibraryMoved(moved)
            if moved
            else LibraryUnavailable("Context7 moved this library without saying where")
        )
    if status == httpx.codes.TOO_MANY_REQUESTS:
        seconds = _retry_after(headers)
        when = "" if seconds is None else f"; it can be tried again in {seconds:g} s"
        return TryLater(f"Context7's rate limit is reached{when}", seconds)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return TryLater(f"Context7 is not available just now (status {status})", _retry_after(headers))
    kind, message = _REFUSALS.get(status, (Context7Error, f"Context7 refused the request (status {status})"))
    error = kind(message)
    error.look_at = _LOOK_AT.get(status, "")
    return error


_LOOK_AT: Final = {401: "CONTEXT7_API_KEY", 402: "the account of CONTEXT7_API_KEY"}
_REFUSALS: Final[Mapping[int, tuple[type[Context7Error], str]]] = {
    202: (
        LibraryUnavailable,
        "Context7 is still indexing this library; it can be tried again in some minutes",
    ),
    401: (Context7Error, "Context7 does not serve this deployment at the moment"),
    402: (Context7Error, "this deployment's spending limit at Context7 is reached"),
    403: (LibraryUnavailable, "this deployment may not read that library at Context7"),
    404: (LibraryUnavailable, "Context7 does not know this library"),
    422: (LibraryUnavailable, "Context7 has no usable documentation of this library"),
}


def libraries_of(page: FetchedPage, settings: RetrievalSettings) -> tuple[LibraryMatch, ...]:
    """The search's results in Context7's order, at most ``candidates``. Raises `Context7Error` if the body is not in
    the documented form.
    """
    results = _object(page.text).get("results")
    if not isinstance(results, list):
        raise Context7Error("Context7 answered with something that is not a list of libraries")
    libraries = [_library(item, settings) for item in results if isinstance(item, Mapping)]
    return tuple(library for library in libraries if library)[: settings.bounds.candidates]


def chunks_of(page: FetchedPage, settings: RetrievalSettings) -> tuple[DocSection, ...]:
    """The sections of a context page; a body that is not JSON is read as text. Raises `Context7Error` if it is
    declared as JSON but cannot be parsed.
    """
    if not page.text.strip():
        return ()
    document = _object(page.text)
    if document:
        return chunks_of_json(document, settings.bounds)
    if page.is_json:
        raise Context7Error("Context7 answered with malformed JSON")
    return chunks_of_text(page.text, settings.bounds)


def library_id(value: object) -> str:
    """The id if valid (``/owner/name``, with an optional version), else empty."""
    return value if isinstance(value, str) and len(value) <= 200 and _LIBRARY_ID.fullmatch(value) else ""


async def following_moves(
    library: str, ask: Callable[[str], Awaitable[FetchedPage]]
) -> tuple[str, FetchedPage]:
    """The page and the library's current id, after at most two moves."""
    for _ in range(_MAX_MOVES):
        try:
            return library, await ask(library)
        except LibraryMoved as moved:
            library = moved.library_id
    try:
        return library, await ask(library)
    except LibraryMoved as error:
        raise LibraryUnavailable("Context7 moved this library more often than is followed") from error


async def _bounded_text(response: httpx.Response, limit: int) -> str:
    """The body. Raises `Context7Error` as soon as it exceeds the limit (in decoded bytes)."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > limit:
            raise Context7Error("Context7 answered with more than can be read")
        parts.append(part)
    return as_utf8(b"".join(parts)).decode("utf-8-sig", errors="replace")


def _library(item: Mapping[str, Any], settings: RetrievalSettings) -> LibraryMatch | None:
    identity = library_id(item.get("id"))
    if not identity:
        return None
    title, description = item.get("title"), item.get("description")
    state = item.get("state")
    return LibraryMatch(
        id=identity,
        title=one_line(title, settings.bounds.title)
        if isinstance(title, str) and title.strip()
        else identity,
        description=description if isinstance(description, str) else "",
        state=state if isinstance(state, str) else "finalized",
        trust=_number(item.get("trustScore")),
        benchmark=_number(item.get("benchmarkScore")),
        snippets=int(_number(item.get("totalSnippets"))),
    )


def _number(value: object) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if usable else 0.0  # type: ignore[arg-type]


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; None for a date or an invalid value."""
    value = headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(?:\.\d+)?", value) else None
