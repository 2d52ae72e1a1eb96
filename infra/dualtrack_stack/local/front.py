"""The front port of the local stack: API, events and page on one address.

It replaces API Gateway's public endpoint. Requests are passed on to the emulator's REST API; event streams are served
here by the ASGI app of the function ``stream`` with the credentials of its role, because the emulator buffers
responses; so are plug-ins' own APIs. Started by the local stack as a child:
``python -m dualtrack_stack.local.front FD``; the configuration comes as one JSON line once everything is deployed, and
again when settings change what ``GET /dev/status`` answers, or a project its profiles.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import uvicorn
from dualtrack.api.route import EVENTS_PATH, KEY_PATH
from dualtrack.api.routes.conversations import ATTACHMENT_PATH
from dualtrack.api.sizes import EVENT_BYTES, TOO_LARGE_BODY
from dualtrack.api.streamed import streamed_apis
from dualtrack.errors import NO_ROUTE
from dualtrack.profiles import all_profiles, profile_from
from dualtrack.settings import settings_from
from dualtrack.storage.uploads import FOLDER
from dualtrack_stack.local import lifeline
from dualtrack_stack.local.aws import Aws, role_client
from dualtrack_stack.local.aws_sizes import answer_bytes, event_bytes
from dualtrack_stack.local.bounded_http import MOST_BYTES, BoundedBodies
from dualtrack_stack.local.credentials import Credentials
from dualtrack_stack.local.front_config import FrontConfig
from dualtrack_stack.local.guard import foreign, headers_of
from dualtrack_stack.local.tokens import BadName, LocalUsers
from dualtrack_stack.page import web
from dualtrack_stack.roots import OURS
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, compile_path
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from types import ModuleType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT: Final = 10 * 1024 * 1024
"""API Gateway's limit of a request, in bytes."""

UPLOAD_LIMIT: Final = MOST_BYTES
"""Of a file for a message, the largest that is put, in bytes (CONTRACT 4)."""

UPLOADS: Final = ("/{bucket}/corpora/uploads/{rest:anything}", f"/{{bucket}}/{FOLDER}{{rest:anything}}")
"""Where files for a corpus and for messages are put, on the emulator's S3. The page sends them here, to its own
origin."""

IN_FLIGHT: Final = 8
"""Every concurrent invocation is a process of its own on this machine; further requests wait."""

TARGET_LIMIT: Final = 8 * 1024
"""CloudFront's limit of an address, path and query, in bytes."""

BODY_SECONDS: Final = 30.0
"""How long a request's body may take to arrive."""

GATEWAY_SECONDS: Final = 32.0
"""API Gateway gives up after 29 s; the emulator does so itself, at worst a little later."""

_ADDED: Final = tuple(api.path for api in streamed_apis())
_API: Final = re.compile(rf"({'|'.join(('/v1', '/key/v1', *_ADDED))})(/|$)|/health$|/openapi\.json$")
_KEY: Final = re.compile(rb"bearer +dt_", re.IGNORECASE)
_REFUSED: Final = "This stack answers its own page and the programs of this machine"
_UPLOADED_WITH: Final = ("content-type", "x-amz-checksum-sha256")
_EVENTS: Final = compile_path(EVENTS_PATH)[0]
_FILE: Final = compile_path(ATTACHMENT_PATH)[0]
_ANY_TYPE: Final = ("", "*/*")
_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "host",
        "keep-alive",
        "proxy-authorization",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Anything(PathConvertor):
    """The rest of a path, line breaks included: Starlette's own convertor stops at ``%0a``."""

    regex = "(?s:.*)"


register_url_convertor("anything", Anything())


class BodyTooLarge(Exception):
    """The request is over `BODY_LIMIT`."""


class Gateway:
    """Passes requests on to the emulator's REST API, with a limit on concurrency. Requests that wait for an
    answer (``?wait=``) have a separate queue, so that they never delay the others.
    """

    def __init__(self, config: FrontConfig) -> None:
        self._base = httpx.URL(config.endpoint_url)
        port = self._base.port
        self._host = f"{config.rest_api_id}.execute-api.localhost:{port}"
        self._stage = config.gateway_stage.encode()
        self._lanes = {waiting: asyncio.Semaphore(IN_FLIGHT) for waiting in (True, False)}
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(GATEWAY_SECONDS, connect=5.0),
            limits=httpx.Limits(max_connections=4 * IN_FLIGHT),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def __call__(self, request: Request) -> Response:
        try:
            body = await _read(request)
        except BodyTooLarge:
            return too_large()
        except TimeoutError:
            return _late()
        if _is_too_large(request.scope, body):
            return too_large()
        try:
            async with self._lanes["wait" in request.query_params]:
                answer = await self._client.request(
                    request.method, self._target(request), headers=self._headers(request), content=body
                )
        except httpx.TimeoutException:
            return error(504, "timeout", "The request took too long.")
        except httpx.TransportError:
            return error(503, "unavailable", "The local stack is not available; its logs say why.")
        return _passed_back(answer)

    async def upload(self, request: Request) -> Response:
        """Pass a file on to the emulator's S3 at its signed address: the page may only call its own origin."""
        try:
            content = await _read(request, UPLOAD_LIMIT)
        except BodyTooLarge:
            return error(413, "too_large", "The file is too large.")
        except TimeoutError:
            return error(408, "timeout", "The file did not arrive in time.")
        path, query = request.scope["raw_path"], request.scope["query_string"]
        target = self._base.copy_with(raw_path=path + b"?" + query)
        kept = {name: request.headers[name] for name in _UPLOADED_WITH if name in request.headers}
        try:
            return _passed_back(await self._client.request("PUT", target, headers=kept, content=content))
        except httpx.TransportError:
            return error(503, "unavailable", "The local stack is not available; its logs say why.")

    def _target(self, request: Request) -> httpx.URL:
        path: bytes = request.scope["raw_path"]
        query: bytes = request.scope["query_string"]
        raw = b"/" + self._stage + path + (b"?" + query if query else b"")
        return self._base.copy_with(raw_path=raw)

    def _headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        # The emulator refuses pages, but this page is its own server's.
        left_out = _HOP_BY_HOP | (
            {"origin"} if request.headers.get("origin") in _own(request.headers) else set()
        )
        # API Gateway decodes a file only for clients that accept a binary type first; here others can read it too.
        any_file = _FILE.fullmatch(request.url.path) and request.headers.get("accept", "") in _ANY_TYPE
        added = [(b"accept", b"application/octet-stream")] if any_file else []
        left_out |= {"accept"} if any_file else set()
        kept = [(name, value) for name, value in request.headers.raw if name.decode().lower() not in left_out]
        return [*kept, *added, (b"host", self._host.encode())]


async def _read(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """Raises `BodyTooLarge`, and TimeoutError for a body that does not arrive."""
    chunks: list[bytes] = []
    size = 0
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge
            chunks.append(chunk)
    return b"".join(chunks)


def _passed_back(answer: httpx.Response) -> Response:
    if answer_bytes(answer.status_code, answer.headers.raw, answer.content) > EVENT_BYTES:
        return error(502, "internal", "Internal error.")  # as API Gateway answers for a function that fails
    response = Response(answer.content, status_code=answer.status_code)
    if answer.status_code in (204, 304):
        response.body = b""
    response.raw_headers = [
        (name.lower(), value)
        for name, value in answer.headers.raw
        # httpx has already undone a content encoding
        if name.decode().lower() not in _HOP_BY_HOP | {"content-encoding"}
    ]
    if answer.status_code not in (204, 304):
        response.raw_headers.append((b"content-length", str(len(response.body)).encode()))
    return response


def _is_too_large(scope: Scope, body: bytes) -> bool:
    """Whether Lambda would refuse the event of this request."""
    query = scope["query_string"].decode("latin-1")
    return event_bytes(scope["method"], scope["path"], query, scope["headers"], body) > EVENT_BYTES


async def _bounded(scope: Scope, receive: Receive) -> Receive | Response:
    """What receives the request again, whose body was read; the refusal of one that is too large or late."""
    try:
        body = await _read(Request(scope, receive))
    except BodyTooLarge:
        return too_large()
    except TimeoutError:
        return _late()
    except ClientDisconnect:
        return receive  # nobody is there to be answered
    if _is_too_large(scope, body):
        return too_large()
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return read.pop() if read else await receive()

    return again


def too_large() -> JSONResponse:
    """413, as the gateway answers."""
    return JSONResponse(TOO_LARGE_BODY, 413)


def _late() -> JSONResponse:
    return error(408, "timeout", "The request did not arrive in time.")


def error(status: int, code: str, message: str) -> JSONResponse:
    """An error in the contract's form."""
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


def _odd_address(scope: Scope) -> Response | None:
    """The refusal of an address that CloudFront or API Gateway would not pass on either."""
    if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_LIMIT:
        return error(400, "invalid_request", "The address is too long.")
    # the emulator resolves dots, and would answer for another service of this stack
    if {b".", b".."} & set(scope["raw_path"].split(b"/")):
        return error(404, "not_found", NO_ROUTE)
    return None


def _to_key_door(scope: Scope) -> Scope:
    """A request with an API key goes to the keys' own path, as CloudFront leads it (stacks/key_door.js)."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    if not sent or not _KEY.match(sent[0]) or not scope["path"].startswith("/v1/"):
        return scope
    prefix = KEY_PATH.encode()
    return {**scope, "path": KEY_PATH + scope["path"], "raw_path": prefix + scope["raw_path"]}


def _is_streamed(scope: Scope) -> bool:
    """Whether the function ``stream`` serves the request."""
    path = scope["path"]
    is_events = scope["method"] == "GET" and _EVENTS.fullmatch(path.removeprefix(KEY_PATH))
    return bool(is_events) or path.startswith(tuple(f"{added}/" for added in _ADDED))


async def _not_served(_: Request, problem: Exception) -> Response:  # noqa: ARG001 - a path or a method
    return error(404, "not_found", NO_ROUTE)


async def _broken(_: Request, problem: Exception) -> Response:  # noqa: ARG001 - the server logs it
    return error(500, "internal", "Something went wrong on our side.")


class Front:
    """The whole app: refuses pages of other origins, serves events, and routes the rest."""

    def __init__(self, config: FrontConfig, stream: ASGIApp) -> None:
        self._config = config
        self._stream = stream
        self._tokens = LocalUsers(_root(config), config.user_pool_id, config.client_id)
        self._app = Starlette(
            routes=self._routes(),
            lifespan=lambda _app: self.lifespan(),
            exception_handlers={HTTPException: _not_served, Exception: _broken},
        )

    def renew(self, config: FrontConfig) -> None:
        """Answer ``GET /dev/status`` by this from now on, and offer these profiles."""
        self._config = dataclasses.replace(self._config, status=config.status)
        offer(config.profiles)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if odd := _odd_address(scope):
                return await odd(scope, receive, send)
            headers = headers_of(scope)
            others = self._config.origins if _API.match(scope["path"]) else ()
            reason = foreign(headers, origins={*_own(headers), *others})
            if reason:
                # never issue tokens to another site's page
                refused = error(403, "forbidden", f"{_REFUSED}: {reason}.")
                return await refused(scope, receive, send)
            scope = _to_key_door(scope)
            if _is_streamed(scope):
                bounded = await _bounded(scope, receive) if scope["method"] == "POST" else receive
                if isinstance(bounded, Response):
                    return await bounded(scope, receive, send)
                return await self._stream(scope, bounded, send)
        return await self._app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Requests can be passed on while this is open."""
        self._gateway = Gateway(self._config)
        yield
        await self._gateway.close()

    def _routes(self) -> list[Route]:
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
        forwarded = ("/v1", "/v1/{rest:anything}", "/key/v1/{rest:anything}", "/health", "/openapi.json")
        return [
            Route("/dev/token", self._token, methods=["GET"]),
            Route("/dev/status", self._status, methods=["GET"]),
            *(Route(path, self._forward_upload, methods=["PUT"]) for path in UPLOADS),
            *(Route(path, self._forward, methods=methods) for path in forwarded),
            Route("/config.json", self._page_config, methods=["GET"]),
            Route("/{path:anything}", self._page, methods=["GET"]),
        ]

    async def _forward(self, request: Request) -> Response:
        return await self._gateway(request)

    async def _forward_upload(self, request: Request) -> Response:
        return await self._gateway.upload(request)

    async def _status(self, _request: Request) -> Response:
        return JSONResponse(dict(self._config.status))

    async def _token(self, request: Request) -> Response:
        user = request.query_params.get("user", self._config.user)
        admin = request.query_params.get("admin", "") in ("1", "true")
        try:
            identity = await run_in_threadpool(self._tokens.identity, user, admin=admin)
        except BadName as problem:
            return error(400, "invalid_request", str(problem))
        return JSONResponse(dataclasses.asdict(identity))

    async def _page_config(self, _request: Request) -> Response:
        return JSONResponse(web.config(api="", uploads="", sign_in={"kind": "local"}), headers=web.headers())

    async def _page(self, request: Request) -> Response:
        path = request.path_params["path"] or "index.html"
        path = "docs.html" if path == "docs" else path
        file = web.files().get(path)  # the file system is not asked about a name from outside
        if file is None:
            return error(404, "not_found", NO_ROUTE)
        response = await StaticFiles(directory=file.parent).get_response(file.name, request.scope)
        response.headers.update(web.headers(path))
        return response


def _own(headers: Mapping[str, str]) -> tuple[str, str]:
    """The origins of a page that was loaded from the address in these headers."""
    host = headers.get("host", "")
    return f"http://{host}", f"https://{host}"


def _root(config: FrontConfig) -> Aws:
    return Aws(config.endpoint_url, Credentials(config.access_key, config.secret_key))


def offer(profiles: Iterable[dict[str, Any]]) -> None:
    """Offer the library's profiles and these. On AWS the function ``stream`` has them in its layer."""
    all_profiles.cache_clear()
    known = all_profiles()
    known |= {profile.name: profile for profile in map(profile_from, profiles)}


def stream_app(module: ModuleType, config: FrontConfig) -> ASGIApp:
    """The ASGI app of the function ``stream``, with its environment and its role."""
    services = ("dynamodb", "s3", "stepfunctions")
    clients = (role_client(_root(config), config.stream_role_arn, service) for service in services)
    app: ASGIApp = module.create_app(settings_from(config.stream_environment), *clients)
    return app


def counted(app: ASGIApp, used: Path) -> ASGIApp:
    """The same app; ``used`` is touched when a request begins and when it ends."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        _touch(used)
        try:
            await app(scope, receive, send)
        finally:
            _touch(used)

    return call


def _touch(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # nobody counts, or the state folder was deleted
        os.utime(path)


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _next_config() -> FrontConfig:
    return FrontConfig(**json.loads(lifeline.next_line()))


def _renew(front: Front) -> None:
    while True:
        front.renew(_next_config())


def main() -> None:
    """Serve on the inherited socket once the configuration has come."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    # slow imports, done while the stack is still being deployed
    module = _load("stream_app", OURS / "functions" / "stream" / "app.py")
    config = _next_config()
    offer(config.profiles)
    front = Front(config, stream_app(module, config))
    threading.Thread(target=_renew, args=(front,), name="renew", daemon=True).start()
    server = uvicorn.Server(
        uvicorn.Config(
            counted(front, Path(config.used)),
            loop="asyncio",
            http=BoundedBodies,
            ws="none",
            lifespan="on",
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
    )
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
