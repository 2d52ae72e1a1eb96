"""Calls to MCP servers over streamable HTTP: one POST per call if the server allows it.

The 2026-07-28 protocol needs no handshake, so a call is one POST. A server of an older protocol is called with a
handshake (three more requests): its listing learns that, and is stored with it.

The SDK loses the HTTP status of an error and wraps exceptions in nested groups: a response hook keeps the status, and
`_cause` unwraps the groups.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.caching import CacheConfig, CacheEntry, CacheKey
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, HEADER_MISMATCH, INVALID_PARAMS, PARSE_ERROR, ListToolsResult, Tool
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from dualtrack.frozen import freeze, thaw
from dualtrack.tools.mcp.bounded import CALL, LISTING, BoundedTransport
from dualtrack.tools.mcp.failures import FailureKind, McpFailure, RequestFailure, kind_of_status, may_repeat
from dualtrack.tools.mcp.hints import HINTS
from dualtrack.tools.mcp.legal import own_arguments
from dualtrack.tools.mcp.lenient import Mending, lenient
from dualtrack.tools.mcp.results import tool_result
from dualtrack.tools.mcp.specs import ListedTool, ServerListing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from dualtrack.tool_values import ToolResult, ToolSpec
    from dualtrack.tools.mcp.config import McpServer

# The SDK logs what it cannot parse, which may be users' data.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
logging.getLogger("httpx2").setLevel(logging.WARNING)

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
LISTING_SECONDS: Final = 15.0
"""For a listing, including retries."""
MAX_PAGES: Final = 20
_TOO_LONG: Final = ListedTool(
    "*",
    "",
    freeze({}),
    problem=f"the server lists more than {MAX_PAGES} pages of tools; the rest is not read",
)
_NO_HEADERS: Final = "an annotation x-mcp-header of its schema is invalid"
_TIMED_OUT: Final = -32001
_NOT_SPOKEN: Final = frozenset({400, 404, 405, 406, 415, 426})
"""Statuses with which older servers refuse a call without a handshake: the tool did not run."""


@dataclass(frozen=True, slots=True)
class Retries:
    """The longest wait before each retry, in seconds; there is one retry for each."""

    waits: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def wait(self, attempt: int) -> bool:
        """Wait before the next attempt; false if there is none left."""
        if attempt >= len(self.waits):
            return False
        self.sleep(random.uniform(self.waits[attempt] / 2, self.waits[attempt]))  # noqa: S311 - jitter
        return True


@dataclass(frozen=True, slots=True)
class McpClient:
    """Calls MCP servers. ``seconds``: for a whole call, including retries.

    ``transport``: tests pass an ``httpx2.MockTransport``. ``handshake``: addresses of servers that do not support the
    stateless protocol.
    """

    seconds: float = 48.0
    retries: Retries = field(default_factory=Retries)
    transport: httpx2.AsyncBaseTransport | None = None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    handshake: set[str] = field(default_factory=set)

    def list_tools(self, server: McpServer, token: str | None) -> ServerListing:
        """Every tool that the server lists, and what the listing has learnt of the server. Raises `McpFailure`."""
        tools = self._with_retries(
            server, token, _listing, repeatable=True, seconds=min(LISTING_SECONDS, self.seconds)
        )
        return ServerListing(tools, handshake=server.url in self.handshake)

    def call_tool(
        self, server: McpServer, spec: ToolSpec, arguments: Mapping[str, Any], token: str | None
    ) -> ToolResult:
        """Call a tool; ``arguments`` have been validated, and have the names that were offered. Raises `McpFailure`.

        Retries if the server is down, and the tool is repeatable or was not reached.
        """

        async def call(client: Client, _: Mending) -> ToolResult:
            await (
                client.list_tools()
            )  # from `_KnownTool`, without a request, so that the client knows the headers
            return tool_result(await client.call_tool(spec.remote_name, thaw(own)))

        own = own_arguments(arguments, spec.renamed)
        return self._with_retries(
            server, token, call, repeatable=spec.repeatable, known=spec, seconds=self.seconds
        )

    def _with_retries(
        self,
        server: McpServer,
        token: str | None,
        act: Callable[[Client, Mending], Awaitable[T]],
        *,
        repeatable: bool,
        seconds: float,
        known: ToolSpec | None = None,
    ) -> T:
        deadline = self.clock() + seconds
        attempt = 0
        while True:
            try:
                return self._once(server, token, act, known, deadline)
            except McpFailure as failed:
                repeat = may_repeat(failed.failure, repeatable=repeatable) and self.clock() < deadline
                if not repeat or not self.retries.wait(attempt):
                    raise
                attempt += 1

    def _once(
        self,
        server: McpServer,
        token: str | None,
        act: Callable[[Client, Mending], Awaitable[T]],
        known: ToolSpec | None,
        deadline: float,
    ) -> T:
        if not server.handshake and server.url not in self.handshake:
            try:
                return self._run(_Request(server, token, LATEST_MODERN_VERSION, known), act, deadline)
            except McpFailure as failed:
                if not _may_shake_hands(failed.failure, known):
                    raise
        result = self._run(_Request(server, token, "auto", known), act, deadline)
        self.handshake.add(server.url)
        return result

    def _run(self, request: _Request, act: Callable[[Client, Mending], Awaitable[T]], deadline: float) -> T:
        left = max(0.1, deadline - self.clock())
        return asyncio.run(_exchange(request, act, left, self.transport))


def _may_shake_hands(failure: RequestFailure, known: ToolSpec | None) -> bool:
    """Whether to retry with a handshake: the server may be an older one, and no tool runs twice that must not.

    Some older servers run a call without a handshake, and answer in a form that is invalid in the new protocol.
    """
    if failure.kind == "too_large":
        return False
    if failure.kind == "protocol":
        return known is None or known.repeatable
    return failure.status in _NOT_SPOKEN and not failure.detail


@dataclass(frozen=True, slots=True)
class _Request:
    """The parameters of a connection."""

    server: McpServer
    token: str | None
    mode: str
    known: ToolSpec | None


@dataclass(slots=True)
class _Seen:
    """The HTTP responses of a connection: the last error status and its Retry-After."""

    status: int | None = None
    retry_after: str = ""
    answered: bool = False
    too_large: bool = False

    async def request(self, request: httpx2.Request) -> None:
        if request.method == "POST":
            self.status = None

    async def response(self, response: httpx2.Response) -> None:
        # GET and DELETE belong to the older protocols' sessions: optional, and often answered with 405.
        if response.request.method != "POST":
            return
        self.answered = True
        if response.status_code >= 400:
            self.status = response.status_code
            self.retry_after = response.headers.get("retry-after", "")[:40]


async def _exchange(
    request: _Request,
    act: Callable[[Client, Mending], Awaitable[T]],
    seconds: float,
    transport: httpx2.AsyncBaseTransport | None,
) -> T:
    seen, mending = _Seen(), Mending()
    bounded = BoundedTransport(
        transport or httpx2.AsyncHTTPTransport(trust_env=False), CALL if request.known else LISTING
    )
    http = httpx2.AsyncClient(
        headers=_headers(request),
        timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        event_hooks={"request": [seen.request], "response": [seen.response]},
        transport=bounded,
        trust_env=False,
    )
    try:
        with anyio.fail_after(seconds):
            async with (
                http,
                Client(
                    lenient(
                        streamable_http_client(
                            request.server.url, http_client=http, max_sse_event_size=bounded.limits.bytes
                        ),
                        mending,
                    ),
                    mode=request.mode,
                    cache=_known(request.known),
                    read_timeout_seconds=seconds,
                ) as client,
            ):
                return await act(client, mending)
    except Exception as error:
        cause = _cause(error)
        if cause is None:
            raise
        seen.too_large = bounded.exceeded
        raise McpFailure(_failure(request.server, cause, seen)) from None


def _headers(request: _Request) -> dict[str, str]:
    headers = dict(request.server.headers)
    if request.token:
        headers["Authorization"] = f"Bearer {request.token}"
    return headers


async def _listing(client: Client, mending: Mending) -> tuple[ListedTool, ...]:
    listed: list[ListedTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        listed += [_listed(tool) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            break
    else:
        listed.append(_TOO_LONG)
    kept = {tool.name for tool in listed}
    bad = [ListedTool(bad.name, "", freeze({}), freeze(bad.hints), bad.problem) for bad in mending.left_out]
    dropped = [
        ListedTool(name, "", freeze({}), problem=_NO_HEADERS) for name in mending.names if name not in kept
    ]
    return (*listed, *bad, *dropped)


def _listed(tool: Tool) -> ListedTool:
    told = tool.annotations.model_dump(by_alias=True) if tool.annotations else {}
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=freeze(tool.input_schema),
        hints=freeze({name: told[name] for name in HINTS if told.get(name) is not None}),
    )


@dataclass(frozen=True, slots=True)
class _KnownTool:
    """The client's response cache, with only the tool to call, from our catalogue.

    The client copies some arguments to headers and looks for an output schema after a call; without a listing it would
    request the list of all tools for every call.
    """

    listing: ListToolsResult

    async def get(self, key: CacheKey) -> CacheEntry | None:
        if key.method != "tools/list":
            return None
        return CacheEntry(self.listing, "private", expires_at=time.time() + 3600)

    async def set(self, key: CacheKey, entry: CacheEntry) -> None:
        """Stores nothing: a connection lives for one call."""

    async def delete(self, key: CacheKey) -> None:
        """As `set`."""

    async def clear(self) -> None:
        """As `set`."""


def _known(spec: ToolSpec | None) -> CacheConfig | None:
    if spec is None:
        return None
    schema = thaw(spec.input_schema)
    schema["properties"] = own_arguments(schema.get("properties", {}), spec.renamed)
    tool = Tool(name=spec.remote_name, input_schema=schema)
    return CacheConfig(store=_KnownTool(ListToolsResult(tools=[tool])), partition="call", target_id="call")


_KNOWN_CAUSES: Final = (MCPError, httpx2.HTTPError, TimeoutError, ValidationError, RuntimeError)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _cause(error: BaseException) -> BaseException | None:
    """The most specific exception, or None if any of them is not a failure of the server."""
    leaves = list(_leaves(error))
    if not all(isinstance(leaf, _KNOWN_CAUSES) for leaf in leaves):
        return None
    return min(
        leaves, key=lambda leaf: next(n for n, kind in enumerate(_KNOWN_CAUSES) if isinstance(leaf, kind))
    )


def _failure(server: McpServer, cause: BaseException, seen: _Seen) -> RequestFailure:
    kind: FailureKind
    kind, detail = ("too_large", "") if seen.too_large else _kind(cause, seen)
    reached = seen.answered or not isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
    if seen.status is not None and seen.status in _NOT_SPOKEN | {401, 403, 429}:
        reached = False
    return RequestFailure(kind, server.name, detail, seen.status, seen.retry_after, reached)


def _kind(cause: BaseException, seen: _Seen) -> tuple[FailureKind, str]:
    if isinstance(cause, MCPError) and cause.code in {INVALID_PARAMS, HEADER_MISMATCH}:
        return "refused", cause.message[:500]
    if seen.status is not None:
        return kind_of_status(seen.status), ""
    if isinstance(cause, MCPError):
        return _kind_of_code(cause)
    if isinstance(cause, TimeoutError | httpx2.TimeoutException):
        return ("down" if isinstance(cause, httpx2.ConnectTimeout) else "timeout"), ""
    if isinstance(cause, httpx2.HTTPError):
        return "down", ""
    return "protocol", ""


def _kind_of_code(error: MCPError) -> tuple[FailureKind, str]:
    if error.code == _TIMED_OUT:
        return "timeout", ""
    if error.code == CONNECTION_CLOSED:
        return "down", ""
    if error.code == PARSE_ERROR:
        return "protocol", ""
    return "refused", error.message[:500]
