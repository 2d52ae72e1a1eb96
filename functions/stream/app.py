"""The event stream of a chat as server-sent events (CONTRACT 5): a small ASGI app.

On AWS it runs behind API Gateway with Lambda Web Adapter; the local front port serves the same app.
It verifies tokens and keys itself, reads the chats table, and writes only the requests of keys and the leases that
limit a user's open streams (CONTRACT 4).
"""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import time
    from typing import TYPE_CHECKING, Any, Final

    import anyio
    import anyio.to_thread
    import boto3
    from dualtrack.api.id_tokens import verifier_of
    from dualtrack.api.identity import bearer_token, refuse_erased
    from dualtrack.api.key_door import key_door
    from dualtrack.api.key_format import is_key
    from dualtrack.api.parameters import LAST_EVENT_ID, check_ids
    from dualtrack.api.request_log import MESSAGE, NOT_SERVED, request_line
    from dualtrack.api.route import CHAT_READERS, EVENTS_PATH, KEY_PATH
    from dualtrack.clock import system_clock
    from dualtrack.errors import ApiError, not_found
    from dualtrack.runtime.plain_log import count_broken_stream, log_line
    from dualtrack.settings import settings_from
    from dualtrack.storage.clients import client_config
    from dualtrack.storage.deletions import Deletions
    from dualtrack.storage.keys import KeyStore
    from dualtrack.storage.leases import STREAMS, Leases
    from dualtrack.streaming.follow_events import HEARTBEAT, EventReader
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dualtrack.api.identity import Identity
    from dualtrack.settings import Settings
    from dualtrack.storage.leases import Lease
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_CUT_AFTER: Final = STREAMS.seconds - 10
"""Seconds after which a stream whose client does not read is closed: it must not outlive its lease."""


def create_app(settings: Settings, dynamodb: DynamoDBClient) -> Starlette:
    """``GET`` of `EVENTS_PATH` over a client that may read the chats table, count requests and write leases."""
    verifier = verifier_of(settings)
    door = key_door(
        settings, KeyStore(dynamodb, settings.chats_table, system_clock, settings.dualtrack_key_requests)
    )
    leases = Leases(dynamodb, settings.cache_table, system_clock)
    deletions = Deletions(dynamodb, settings.history_table, settings.chats_table, system_clock)
    reader = EventReader(dynamodb, settings.chats_table, system_clock)

    def identify(request: Request) -> Identity:
        """By a token, or by a key, which alone opens the keys' own path."""
        headers = request.headers.getlist
        token = bearer_token(headers("authorization"))
        if is_key(token) or request.url.path.startswith(KEY_PATH):
            identity = door.identify(token, headers)
            identity.require_scope(CHAT_READERS)
        else:
            identity = verifier.verify(token)
            door.refuse_name(headers)
        refuse_erased(deletions, identity)
        return identity

    async def events(request: Request) -> Response:
        identity = await anyio.to_thread.run_sync(identify, request)
        request.state.user = identity.user
        after = LAST_EVENT_ID.read(request.headers.get(LAST_EVENT_ID.name))
        check_ids(request.path_params)
        chat_id = request.path_params["chat_id"]
        chat = await anyio.to_thread.run_sync(reader.chat, identity.user, chat_id)
        identity.require_sight(chat.key_id)
        lease = await anyio.to_thread.run_sync(leases.take, identity.user, STREAMS)
        return LeasedStream(reader.follow(chat, after), leases, lease)

    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_headers=["Authorization", "Last-Event-ID"],
        expose_headers=["Retry-After"],
        max_age=3600,
    )
    return Starlette(
        routes=[Route(path, events) for path in (EVENTS_PATH, KEY_PATH + EVENTS_PATH)],
        exception_handlers={ApiError: _refused, HTTPException: _not_served, Exception: _broken},
        middleware=[Middleware(Logged), cors],
    )


class Logged:
    """Leaves a line in the log for each request when its answer has been sent, and counts streams that broke off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. A client that leaves is no error."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except ClientDisconnect:
            pass
        except Exception as error:
            log_line("ERROR", "The event stream broke off", error=repr(error), **_line(scope, 500, started))
            count_broken_stream()
            raise
        finally:
            log_line("INFO", MESSAGE, **_line(scope, status or 500, started))
        return None


def _line(scope: Scope, status: int, started: float) -> dict[str, Any]:
    path, state = scope.get("path_params") or {}, scope.get("state") or {}
    route = f"{scope['method']} {EVENTS_PATH}" if path else NOT_SERVED
    seconds = time.perf_counter() - started
    return request_line(route, status, seconds, state.get("user", ""), path.get("chat_id", ""))


class LeasedStream(StreamingResponse):
    """Events under a lease, which is released once: before the end is sent, or when the client has
    disconnected."""

    def __init__(self, events: AsyncIterator[bytes], leases: Leases, lease: Lease) -> None:
        super().__init__(self._body(events), media_type="text/event-stream; charset=utf-8", headers=_HEADERS)
        self._leases = leases
        self._held: Lease | None = lease

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, within the time limit of a stream."""
        try:
            with anyio.move_on_after(_CUT_AFTER):
                await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._free()

    async def _body(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Send a comment at once, so that the client sees the open stream before the first event."""
        yield HEARTBEAT
        async for piece in events:
            yield piece
        await self._free()  # a client that resumes at once must not find its own lease

    async def _free(self) -> None:
        held, self._held = self._held, None
        if held:
            await anyio.to_thread.run_sync(self._leases.free, held)


async def _refused(_: Request, error: Exception) -> Response:
    refusal: Any = error
    wait = refusal.extra.get("retry_after")
    return JSONResponse(refusal.body(), refusal.status, {"Retry-After": str(wait)} if wait else None)


async def _not_served(_: Request, error: Exception) -> Response:  # noqa: ARG001 - a path or a method
    refusal = not_found()
    return JSONResponse(refusal.body(), refusal.status)


async def _broken(_: Request, error: Exception) -> Response:  # noqa: ARG001 - the server logs it
    refusal = ApiError("internal", "Something went wrong on our side.")
    return JSONResponse(refusal.body(), refusal.status)


def app() -> Starlette:
    """The app of the function's own environment and role (uvicorn --factory)."""
    return create_app(settings_from(), boto3.client("dynamodb", config=client_config()))
