"""Puts an MCP server that speaks over standard input and output behind HTTP on this machine, so that the functions call
it like any other: ``python -m dualtrack_stack.local.stdio_bridge PORT``, and what it runs as one line of its lifeline,
``{"name", "command", "env", "cwd", "key"}``.

Messages are passed on as they are, under ids of the bridge's own; the handshake is made once for each process of the
server. ``GET /ready`` waits for the first one. Whoever lacks ``key`` in `KEY_HEADER`, a page of a browser for instance,
gets nothing.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from dualtrack_stack.local import lifeline
from dualtrack_stack.local.stdio_names import KEY_HEADER, PATH
from dualtrack_stack.local.stdio_process import Away, StdioProcess
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

MAX_REQUEST: Final = 6_291_456
_NO_METHOD: Final = -32601
_NOT_PARSED: Final = -32700
_BROKEN: Final = -32603


class Bridge:
    """The HTTP side of one server."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._key = str(told["key"])
        self.server = StdioProcess(
            str(told["name"]), list(told["command"]), dict(told["env"]), str(told["cwd"])
        )

    def app(self) -> Starlette:
        """Its routes."""
        return Starlette(
            routes=[Route("/ready", self._ready), Route(PATH, self._message, methods=["POST"])],
            lifespan=self._serving,
        )

    @contextlib.asynccontextmanager
    async def _serving(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self.server.end()

    def _is_known(self, request: Request) -> bool:
        return hmac.compare_digest(request.headers.get(KEY_HEADER, ""), self._key)

    async def _ready(self, request: Request) -> Response:
        if not self._is_known(request):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        try:
            await self.server.initialized()
        except Away as away:
            return JSONResponse({"problem": str(away)}, HTTPStatus.SERVICE_UNAVAILABLE)
        return JSONResponse({"problem": ""})

    async def _message(self, request: Request) -> Response:
        if not self._is_known(request):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        size = 0
        parts = []
        async for part in request.stream():
            size += len(part)
            if size > MAX_REQUEST:
                return Response(status_code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            parts.append(part)
        try:
            message = json.loads(b"".join(parts))
        except ValueError:
            return _error(None, _NOT_PARSED, "not JSON", HTTPStatus.BAD_REQUEST)
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return _error(None, _NOT_PARSED, "not a request", HTTPStatus.BAD_REQUEST)
        if "id" not in message:
            return Response(
                status_code=HTTPStatus.ACCEPTED
            )  # the bridge has told the server what it needs to know
        return await self._answer(message)

    async def _answer(self, message: dict[str, Any]) -> Response:
        method, own_id = message["method"], message["id"]
        try:
            if method == "initialize":
                return JSONResponse(
                    {"jsonrpc": "2.0", "id": own_id, "result": await self.server.initialized()}
                )
            if method == "server/discover":  # of the protocol without a handshake, which the server has had
                return _error(own_id, _NO_METHOD, "not served")
            answer = await self.server.ask(method, message.get("params"))
        except Away as away:
            return _error(own_id, _BROKEN, str(away), HTTPStatus.SERVICE_UNAVAILABLE)
        return JSONResponse({"jsonrpc": "2.0", "id": own_id, **answer})


def _error(own_id: Any, code: int, message: str, status: HTTPStatus = HTTPStatus.OK) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": own_id, "error": {"code": code, "message": message}}, status)


def main() -> None:
    """Serve on the loopback interface."""
    told = json.loads(lifeline.next_line())
    bridge = Bridge(told)
    uvicorn.run(bridge.app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
