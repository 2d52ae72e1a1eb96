"""The event stream of a chat as server-sent events (CONTRACT 5), and APIs of plug-ins: a small ASGI app.

On AWS it runs behind API Gateway with Lambda Web Adapter; the local front port serves the same app.
It verifies tokens and keys itself. For events it reads the chats table, and writes only the requests of keys and the
leases that limit a user's open streams (CONTRACT 4). What a plug-in's API needs besides, admission above all, is loaded
with its first request: it would double this function's cold start.
"""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import time
    from dataclasses import replace
    from functools import cache, partial
    from typing import TYPE_CHECKING, Any, Final

    import anyio.to_thread
    import boto3
    from dualtrack.api.id_tokens import verifier_of
    from dualtrack.api.identity import bearer_token, refuse_erased
    from dualtrack.api.key_door import key_door
    from dualtrack.api.key_format import is_key
    from dualtrack.api.parameters import LAST_EVENT_ID, check_ids
    from dualtrack.api.request_log import MESSAGE, NOT_SERVED, request_line
    from dualtrack.api.route import CHAT_READERS, EVENTS_PATH, KEY_PATH
    from dualtrack.api.streamed import StreamedRoute, StreamServices, api_at, streamed_apis
    from dualtrack.chat_times import ANSWER_SECONDS
    from dualtrack.clock import system_clock
    from dualtrack.errors import ApiError, not_found
    from dualtrack.runtime.clients import LazyClient, client_config
    from dualtrack.runtime.plain_log import count_broken_stream, log_line
    from dualtrack.settings import settings_from
    from dualtrack.storage.deletions import Deletions
    from dualtrack.storage.keys import KeyStore
    from dualtrack.storage.leases import STREAMS, Leases
    from dualtrack.streaming.follow_events import HEARTBEAT, EventReader, PollIntervals
    from dualtrack.streaming.leased_stream import BrokenOff, LeasedStream
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dualtrack.api.identity import ApiCaller
    from dualtrack.settings import Settings
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as ASGIScope

_EVENTS: Final = StreamedRoute("GET", EVENTS_PATH, CHAT_READERS)


def create_app(settings: Settings, dynamodb: DynamoDBClient, s3: Any, step_functions: Any) -> Starlette:
    """``GET`` of `EVENTS_PATH`, and the APIs of plug-ins, over clients with the function's role."""
    verifier = verifier_of(settings)
    door = key_door(
        settings, KeyStore(dynamodb, settings.chats_table, system_clock, settings.dualtrack_key_requests)
    )
    leases = Leases(dynamodb, settings.cache_table, system_clock, settings.dualtrack_open_streams)
    deletions = Deletions(dynamodb, settings.history_table, settings.chats_table, system_clock)
    reader = EventReader(dynamodb, settings.chats_table, system_clock)

    def identify(request: Request, route: StreamedRoute) -> ApiCaller:
        """By a token, or by a key with one of the route's scopes, which alone opens the keys' own path."""
        headers = request.headers.getlist
        token = bearer_token(headers("authorization"))
        if is_key(token) or request.url.path.startswith(KEY_PATH):
            identity = door.identify(token, headers, for_owner=route.for_owner)
            identity.require_scope(route.scopes)
        else:
            identity = verifier.verify(token)
            door.refuse_name(headers)
        refuse_erased(deletions, identity)
        return identity

    async def events(request: Request) -> Response:
        identity = await anyio.to_thread.run_sync(identify, request, _EVENTS)
        request.state.user = identity.user
        after = LAST_EVENT_ID.read(request.headers.get(LAST_EVENT_ID.name))
        check_ids(request.path_params)
        chat_id = request.path_params["chat_id"]
        chat = await anyio.to_thread.run_sync(reader.chat, identity.user, chat_id)
        identity.require_sight(chat.key_id)
        lease = await anyio.to_thread.run_sync(leases.take, identity.user, STREAMS)
        return LeasedStream(_opened(reader.follow(chat, after)), leases, lease)

    following = replace(reader, pace=PollIntervals(stream=ANSWER_SECONDS))
    services = StreamServices(settings, dynamodb, s3, step_functions, following, identify)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_headers=["Authorization", "Last-Event-ID"],
        expose_headers=["Retry-After"],
        max_age=3600,
    )
    return Starlette(
        routes=[
            *(Route(path, events) for path in (EVENTS_PATH, KEY_PATH + EVENTS_PATH)),
            *(Mount(api.path, Later(partial(api.open, services))) for api in streamed_apis()),
        ],
        exception_handlers={ApiError: _refused, HTTPException: _not_served, Exception: _broken},
        middleware=[Middleware(AccessLog), cors],
    )


class Later:
    """An app that is made at its first request."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = cache(make)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        app = await anyio.to_thread.run_sync(self._make)
        await app(scope, receive, send)


async def _opened(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Send a comment at once, so that the client sees the open stream before the first event."""
    yield HEARTBEAT
    async for piece in events:
        yield piece


class AccessLog:
    """Leaves a line in the log for each request when its answer has been sent, and counts streams that broke off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
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
        except (ClientDisconnect, BrokenOff):
            pass
        except Exception as error:
            log_line("ERROR", "The event stream broke off", error=repr(error), **_line(scope, 500, started))
            count_broken_stream()
            raise
        finally:
            log_line("INFO", MESSAGE, **_line(scope, status or 500, started))
        return None


def _line(scope: ASGIScope, status: int, started: float) -> dict[str, Any]:
    path, state = scope.get("path_params") or {}, scope.get("state") or {}
    served = state.get("route") or (EVENTS_PATH if "chat_id" in path else "")
    route = f"{scope['method']} {served}" if served else NOT_SERVED
    chat_id = path.get("chat_id") or state.get("chat_id", "")
    return request_line(route, status, time.perf_counter() - started, state.get("user", ""), chat_id)


async def _refused(request: Request, error: Exception) -> Response:
    refusal: Any = error
    if api := api_at(request.url.path):
        return api.refused(refusal)
    wait = refusal.extra.get("retry_after")
    return JSONResponse(refusal.body(), refusal.status, {"Retry-After": str(wait)} if wait else None)


async def _not_served(request: Request, error: Exception) -> Response:  # noqa: ARG001 - a path or a method
    return await _refused(request, not_found())


async def _broken(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the server logs it
    return await _refused(request, ApiError("internal", "Something went wrong on our side."))


def app() -> Starlette:
    """The app of the function's own environment and role (uvicorn --factory)."""
    dynamodb = boto3.client("dynamodb", config=client_config())
    return create_app(settings_from(), dynamodb, LazyClient("s3"), LazyClient("stepfunctions"))
