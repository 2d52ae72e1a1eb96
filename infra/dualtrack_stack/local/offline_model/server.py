"""The HTTP surface: POST /v1/messages, and a control for tests.

``create_app`` makes the ASGI app; ``serve_offline_model`` runs it in a thread during a ``with`` block. The control
routes exist only if they are switched on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import reply as replies
from . import sse, tokens
from .refusal import RefusalError, error_body
from .script import Script, ScriptedResponse
from .service import MAX_BODY_BYTES, Settings, State, parsed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from starlette.requests import Request as HttpRequest
    from starlette.types import Send

    from .service import Recorded

_PLAIN = ScriptedResponse()


def create_app(
    settings: Settings | None = None,
    script: Script | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Starlette:
    """The ASGI app; its `State` is ``app.state.model``."""
    settings = settings or Settings()
    app = Starlette(
        routes=[
            Route("/v1/messages", _messages, methods=["POST"]),
            Route("/health", _health),
            *(_control_routes() if settings.control else ()),
        ],
        exception_handlers={RefusalError: _refused, HTTPException: _http_error, Exception: _broken},
    )
    app.state.model = State(settings, script or Script(), tokens.PromptCache(now, settings.cache_minimum))
    return app


def _control_routes() -> tuple[Route, ...]:
    return (
        Route("/control/script", _control_script, methods=["POST"]),
        Route("/control/requests", _control_requests),
        Route("/control/reset", _control_reset, methods=["POST"]),
    )


def _state(http: HttpRequest) -> State:
    state: State = http.app.state.model
    return state


async def _messages(http: HttpRequest) -> Response:
    state = _state(http)
    request = state.accepted(http.url.path, http.headers, await _read_body(http))
    scripted = state.scripted(request)
    step = scripted or _PLAIN
    if step.delay_first:
        await asyncio.sleep(step.delay_first)
    if step.status != 200:
        return _error(step.status, step.error_message, step.error_type, step.retry_after)
    delivery = state.deliver(request, scripted)
    if not request.stream:
        return JSONResponse(delivery.message(), headers=_request_id())
    delay = state.settings.chunk_delay if step.delay_chunk is None else step.delay_chunk
    events = delivery.events(step.chunk or state.settings.chunk)
    return _EventStream(_paced(events, step, delay), drops=_drops(step))


async def _health(http: HttpRequest) -> Response:
    del http
    return JSONResponse({"status": "ok", "model": "offline: rules, no language model"})


async def _read_body(http: HttpRequest) -> bytes:
    """The body; of one that is too large enough to see it."""
    body = bytearray()
    async for piece in http.stream():
        body.extend(piece)
        if len(body) > MAX_BODY_BYTES:
            break
    return bytes(body)


def _drops(step: ScriptedResponse) -> bool:
    return step.cut_after is not None and step.cut == "drop"


async def _paced(events: Iterable[sse.Event], step: ScriptedResponse, delay: float) -> AsyncIterator[bytes]:
    """The events with their delays, cut or broken as scripted."""
    for sent, event in enumerate(events):
        if sent == step.cut_after:
            return
        if sent == step.malformed_after:
            yield b'event: content_block_delta\ndata: {"type": "content_block_del\n\n'
            return
        if sent == step.error_after:
            kind, said = step.error_type or "overloaded_error", step.error_message if step.error_type else ""
            data = error_body(529, said or "Overloaded", replies.fresh_id("req"), kind)
            yield sse.Event("error", data).encode()
            return
        if event.paced and delay:
            await asyncio.sleep(delay)
        yield event.encode()


class _EventStream(StreamingResponse):
    """A stream of events; ``drops``: the connection breaks at its end instead of closing the body."""

    def __init__(self, events: AsyncIterator[bytes], *, drops: bool) -> None:
        headers = {**_request_id(), "cache-control": "no-cache"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._drops = drops

    async def stream_response(self, send: Send) -> None:
        if not self._drops:
            await super().stream_response(send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in self.body_iterator:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        # Returning without a last body makes the server close the connection.


def _request_id() -> dict[str, str]:
    return {"request-id": replies.fresh_id("req")}


def _error(status: int, message: str, kind: str = "", retry_after: float | None = None) -> Response:
    headers = _request_id()
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
    return JSONResponse(error_body(status, message, headers["request-id"], kind), status, headers)


async def _refused(http: HttpRequest, error: Exception) -> Response:
    del http
    assert isinstance(error, RefusalError)
    return _error(error.status, error.message)


async def _http_error(http: HttpRequest, error: Exception) -> Response:
    del http
    assert isinstance(error, HTTPException)
    return _error(
        error.status_code, error.detail, "" if error.status_code == 404 else "invalid_request_error"
    )


async def _broken(http: HttpRequest, error: Exception) -> Response:
    """A bug of the offline model itself: named in the response, since its log is quiet."""
    del http
    return _error(500, f"the offline model failed: {type(error).__name__}: {error}")


_RESPONSES = TypeAdapter(tuple[ScriptedResponse, ...])


async def _control_script(http: HttpRequest) -> Response:
    body = parsed(await _read_body(http))
    try:
        responses = _RESPONSES.validate_python((body or {}).get("responses"))
    except (ValidationError, AttributeError) as error:
        raise RefusalError(f"script: {error}") from None
    _state(http).script.add(*responses)
    return JSONResponse({"pending": len(_state(http).script.pending)})


async def _control_requests(http: HttpRequest) -> Response:
    return JSONResponse(
        {
            "requests": [
                {"path": call.path, "headers": call.headers, "body": call.body, "refused": call.refused}
                for call in tuple(_state(http).recorded)
            ]
        }
    )


async def _control_reset(http: HttpRequest) -> Response:
    _state(http).reset()
    return JSONResponse({"status": "ok"})


@dataclass(frozen=True, slots=True)
class OfflineModel:
    """A running server: its base URL, its script, its requests."""

    url: str
    state: State

    @property
    def script(self) -> Script:
        """Add responses here."""
        return self.state.script

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """The requests so far, in order of arrival, refused ones included."""
        with self.state.lock:
            return tuple(self.state.recorded)

    def reset(self) -> None:
        """As freshly started."""
        self.state.reset()


@contextlib.contextmanager
def serve_offline_model(
    script: Script | Iterable[ScriptedResponse | dict[str, Any]] = (),
    *,
    settings: Settings | None = None,
    port: int = 0,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[OfflineModel]:
    """Run the server in a thread; without ``settings`` it answers without delay and records requests."""
    settings = settings or Settings(chunk_delay=0.0, control=True)
    answers = script if isinstance(script, Script) else Script(script)
    app = create_app(settings, answers, now)
    with serve_in_thread(app, port) as url:
        yield OfflineModel(url, app.state.model)
