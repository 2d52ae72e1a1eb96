"""A transport between a server and the SDK that mends what the server sends (`dualtrack.tools.mcp.mended`)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from dualtrack.tools.mcp.mended import mended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp.client._transport import ReadStream, TransportStreams

    from dualtrack.tools.mcp.mended import BadTool

    Received = SessionMessage | Exception


@dataclass(slots=True)
class Mending:
    """``left_out``: the listed tools that cannot be offered; ``names``: those that the SDK was given."""

    left_out: list[BadTool] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def take(self, item: Received) -> Received:
        """The message, its result mended."""
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse):
            return item
        result, bad = mended(item.message.result)
        self.left_out += bad
        self.names += [tool["name"] for tool in result.get("tools", ()) if isinstance(tool, dict)]
        return SessionMessage(item.message.model_copy(update={"result": result}), item.metadata)


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[TransportStreams], mending: Mending
) -> AsyncIterator[TransportStreams]:
    """The transport, its messages mended."""
    async with transport as (reading, writing):
        yield _Mended(reading, mending), writing


@dataclass(slots=True)
class _Mended:
    """The stream of messages from the server."""

    inner: ReadStream[Received]
    mending: Mending

    @property
    def last_context(self) -> Any:
        return getattr(self.inner, "last_context", None)

    async def receive(self) -> Received:
        return self.mending.take(await self.inner.receive())

    async def aclose(self) -> None:
        await self.inner.aclose()

    def __aiter__(self) -> _Mended:
        return self

    async def __anext__(self) -> Received:
        return self.mending.take(await self.inner.__anext__())

    async def __aenter__(self) -> _Mended:
        await self.inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self.inner.__aexit__(exc_type, exc_val, exc_tb)
