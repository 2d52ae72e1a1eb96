"""The HTTP surface: POST /v1/messages and /v1/messages/count_tokens, and a control for tests.

``create_app`` makes the ASGI app; ``serve_offline_model`` runs it in a thread during a ``with`` block. The control
routes exist only if they are switched on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dualtrack.models.prices import OFFLINE
from dualtrack_stack.local.loopback import serve_in_thread
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import reply as replies
from . import rules, sse, tokens, wire
from .models import limits_of
from .refusal import RefusalError, error_body
from .script import Script, ScriptedResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from starlette.requests import Request as HttpRequest
    from starlette.types import Send

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 128
"""Nesting of a body, the limit of serde_json. The API's own is not documented; common limits are 128 and more."""
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})
_ROLES = ("user", "assistant", "system")
_PLAIN = ScriptedResponse()
_Body = TypeVar("_Body", bound=wire.Countable)


@dataclass(frozen=True, slots=True)
class Settings:
    """``chunk`` characters a text delta, ``chunk_delay`` seconds before each.

    ``control`` switches the control routes on; ``cache_minimum`` and ``context_window`` (tokens) replace the
    models' own. ``only_samples``: the documentation that the tools search is the sample documents.
    """

    chunk: int = 20
    chunk_delay: float = 0.015
    control: bool = False
    cache_minimum: int | None = None
    context_window: int | None = None
    only_samples: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as received. ``headers`` without the key; ``refused`` is the reason if it was refused."""

    path: str
    headers: dict[str, str]
    body: Any
    refused: str = ""


@dataclass
class State:
    """The server's state: the script, the requests, the prompt cache, the paused turns."""

    settings: Settings
    script: Script
    cache: tokens.PromptCache
    recorded: list[Recorded] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, entry: Recorded) -> None:
        """Keep a request, if there are control routes to read it."""
        if self.settings.control:
            with self.lock:
                self.recorded.append(entry)

    def is_paused(self, message: wire.AssistantMessage) -> bool:
        """Whether an assistant message is one that this server ended with ``pause_turn``."""
        return _fingerprint([block.model_dump(mode="json") for block in message.content]) in self.paused

    def reset(self) -> None:
        """As freshly started."""
        self.script.clear()
        self.cache.clear()
        with self.lock:
            self.recorded.clear()
            self.paused.clear()


def _fingerprint(blocks: Iterable[dict[str, Any]]) -> str:
    """The compared parts of an assistant message that is sent back: its content, not its breakpoints or nulls."""
    kept = [
        {key: value for key, value in block.items() if key != "cache_control" and value is not None}
        for block in blocks
    ]
    return json.dumps(kept, sort_keys=True)


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
            Route("/v1/messages/count_tokens", _count_tokens, methods=["POST"]),
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
    request = await _accepted(http, wire.Request)
    state = _state(http)
    scripted = state.script.take(request)
    step = scripted or _PLAIN
    if step.delay_first:
        await asyncio.sleep(step.delay_first)
    if step.status != 200:
        return _error(step.status, step.error_message, step.error_type, step.retry_after)
    only_samples = state.settings.only_samples
    response = scripted.reply() if scripted else replies.decide(request, only_samples=only_samples)
    reply = replies.signed(request, response)
    if reply.stop_reason == "pause_turn":
        state.paused.add(_fingerprint(_as_sent_back(reply.content)))
    usage = state.cache.use(request)
    message_id = replies.fresh_id("msg")
    if not request.stream:
        body = sse.message(reply, message_id, OFFLINE, usage)
        return JSONResponse(body, headers=_request_id())
    chunk = step.chunk or state.settings.chunk
    delay = state.settings.chunk_delay if step.delay_chunk is None else step.delay_chunk
    events = sse.events(reply, message_id, OFFLINE, usage, chunk)
    return _EventStream(_paced(events, step, delay), drops=_drops(step))


def _as_sent_back(content: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    parsed = wire.AssistantMessage.model_validate({"role": "assistant", "content": list(content)})
    return [block.model_dump(mode="json") for block in parsed.content]


async def _count_tokens(http: HttpRequest) -> Response:
    request = await _accepted(http, wire.Countable)
    return JSONResponse({"input_tokens": tokens.count(request)}, headers=_request_id())


async def _health(http: HttpRequest) -> Response:
    del http
    return JSONResponse({"status": "ok", "model": "offline: rules, no language model"})


async def _accepted(http: HttpRequest, shape: type[_Body]) -> _Body:
    """The request, checked as the real API checks it; RefusalError otherwise. It is recorded either way."""
    headers = {name: value for name, value in http.headers.items() if name not in _SECRET_HEADERS}
    body: Any = None
    try:
        _check_headers(http)
        body = _parsed(await _read_body(http))
        request = _validated(shape, body)
        rules.check(request, _state(http).is_paused)
        _check_fits(request, _state(http).settings.context_window)
    except RefusalError as refusal:
        _state(http).record(Recorded(http.url.path, headers, body, refusal.message))
        raise
    _state(http).record(Recorded(http.url.path, headers, body))
    return request


def _check_headers(http: HttpRequest) -> None:
    bearer = http.headers.get("authorization", "")
    key = (
        bearer.removeprefix("Bearer ") if bearer.startswith("Bearer ") else http.headers.get("x-api-key", "")
    )
    if not key.strip():
        raise RefusalError(
            "authentication: a key is required (Authorization: Bearer, or x-api-key)", status=401
        )
    if not http.headers.get("anthropic-version"):
        raise RefusalError("anthropic-version: header is required")
    if not http.headers.get("content-type", "").startswith("application/json"):
        raise RefusalError("content-type: must be application/json")


async def _read_body(http: HttpRequest) -> bytes:
    body = bytearray()
    async for piece in http.stream():
        body.extend(piece)
        if len(body) > MAX_BODY_BYTES:
            raise RefusalError("Request exceeds the maximum size", status=413)
    return bytes(body)


def _parsed(raw: bytes) -> Any:
    try:
        body = json.loads(raw, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        _check_depth(body, MAX_DEPTH)
        # Lone surrogates pass Python's parser, but cannot be encoded.
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RefusalError("The request body is not valid JSON") from None
    return body


def _finite(text: str) -> float:
    """JSON has no NaN, and no number may exceed a double."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _check_depth(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError("nested too deep")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in inner:
        _check_depth(child, levels - 1)


def _validated(shape: type[_Body], body: Any) -> _Body:
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(_shown_path(first["loc"]))
        raise RefusalError(f"{path}: {first['msg']}" if path else first["msg"]) from None


def _shown_path(location: tuple[int | str, ...]) -> list[str]:
    """``messages.0.content.1``: pydantic adds the role, the discriminator of messages."""
    if location[:1] == ("messages",):
        location = (*location[:2], *location[3:]) if location[2:3] and location[2] in _ROLES else location
    return [str(part) for part in location]


def _check_fits(request: wire.Countable, context_window: int | None) -> None:
    window = limits_of(request.model).context_window if context_window is None else context_window
    total = tokens.count(request)
    if isinstance(request, wire.Request) and total > window:
        raise RefusalError(f"prompt is too long: {total} tokens > {window} maximum")


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
            data = error_body(529, "Overloaded", replies.fresh_id("req"))
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
    body = _parsed(await _read_body(http))
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
