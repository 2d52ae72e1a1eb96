"""An MCP server for tests of the deployed stack: tools that wait for each other, fail, hang, or return megabytes.

It gives a chat arbitrary tools without any hook in the product: the stack is configured with it by the setting
``MCP_SERVERS``, as with any server.
"""

from __future__ import annotations

import base64
import contextlib
import random
import socket
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio.to_thread
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, ToolAnnotations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "kit"
"""The server's name and the prefix of its tools: ``kit_meet`` …"""

MEET_SECONDS = 20.0
HOLD_SECONDS = 60.0
READING = ToolAnnotations(read_only_hint=True)


@dataclass
class Gate:
    """Where calls of one name wait. ``arrived`` is set by the first call, ``released`` by the test."""

    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


@dataclass
class ToolServer:
    """A running server: its address, the calls it got, and where they wait."""

    url: str = ""
    calls: Counter[str] = field(default_factory=Counter)
    """Calls by ``tool:name``, counted when they begin."""
    pages: dict[str, str] = field(default_factory=dict)
    """What ``page`` returns, by name."""
    photos: dict[str, bytes] = field(default_factory=dict)
    """What ``photo`` returns, by name: PNG files."""
    server: MCPServer = field(default_factory=lambda: MCPServer(NAME))
    _gates: dict[str, Gate] = field(default_factory=dict)
    _barriers: dict[str, threading.Barrier] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def offering(self, name: str, description: str, hints: ToolAnnotations = READING) -> Iterator[None]:
        """One more tool while the block runs; it says that it only reads."""

        async def more(name: str) -> str:
            self.count("more", name)
            return f"More of {name}."

        self.server.add_tool(more, name, None, description, hints, structured_output=False)
        try:
            yield
        finally:
            self.server.remove_tool(name)

    def gate(self, name: str) -> Gate:
        """Where the calls of ``hold`` and ``write`` with this name wait."""
        with self._lock:
            return self._gates.setdefault(name, Gate())

    def barrier(self, group: str, size: int) -> threading.Barrier:
        """Where the calls of ``meet`` with this group wait for each other."""
        with self._lock:
            return self._barriers.setdefault(group, threading.Barrier(size))

    def count(self, tool: str, name: str) -> None:
        """Remember a call."""
        with self._lock:
            self.calls[f"{tool}:{name}"] += 1

    def release_all(self) -> None:
        """Release all waiting calls."""
        with self._lock:
            gates, barriers = list(self._gates.values()), list(self._barriers.values())
        for gate in gates:
            gate.released.set()
        for barrier in barriers:
            barrier.abort()


def _make(board: ToolServer) -> MCPServer:
    server, reading = board.server, READING

    @server.tool(annotations=reading, structured_output=False)
    async def meet(group: str, size: int) -> str:
        """Come back when ``size`` calls of the group are here at the same moment."""
        board.count("meet", group)
        try:
            await _in_thread(lambda: board.barrier(group, size).wait(MEET_SECONDS))
        except threading.BrokenBarrierError:
            raise ToolError("The others did not come.") from None
        return f"All {size} of {group} were here at once."

    @server.tool(annotations=reading, structured_output=False)
    async def hold(name: str) -> str:
        """Wait until the test lets go."""
        board.count("hold", name)
        await _wait(board.gate(name))
        return f"{name} was let go."

    @server.tool(structured_output=False)
    async def write(name: str) -> str:
        """Change the world, then wait until the test lets go."""
        board.count("write", name)
        await _wait(board.gate(name))
        return f"{name} is written."

    @server.tool(annotations=reading, structured_output=False)
    async def echo(text: str) -> str:
        """The text again."""
        board.count("echo", text)
        return text

    @server.tool(annotations=reading, structured_output=False)
    async def picture(media_type: str, data: str) -> CallToolResult:
        """What the caller calls an image."""
        image = ImageContent(type="image", mime_type=media_type, data=data)
        return CallToolResult(content=[image])

    @server.tool(annotations=reading, structured_output=False)
    async def fail(reason: str) -> str:
        """Report an error."""
        raise ToolError(reason)

    @server.tool(annotations=reading, structured_output=False)
    async def crash() -> str:
        """Break."""
        raise RuntimeError("nobody should read this")

    @server.tool(annotations=reading, structured_output=False)
    async def big(megabytes: int) -> str:
        """Numbered lines of 80 characters that do not compress, so many megabytes (10^6) in all."""
        return big_text(megabytes)

    _lay_down(server, board)
    return server


def _lay_down(server: MCPServer, board: ToolServer) -> None:
    """The tools that return what a test has stored."""

    @server.tool(annotations=READING, structured_output=False)
    async def page(name: str) -> str:
        """The text stored under a name by the test."""
        return board.pages[name]

    @server.tool(annotations=READING, structured_output=False)
    async def photo(name: str) -> CallToolResult:
        """The picture stored under a name by the test."""
        data = base64.b64encode(board.photos[name]).decode()
        return CallToolResult(content=[ImageContent(type="image", mime_type="image/png", data=data)])


def big_text(megabytes: int) -> str:
    """What the tool ``big`` returns."""
    noise = random.Random(megabytes)
    return "".join(f"{number:014d} {noise.randbytes(32).hex()}\n" for number in range(megabytes * 12_500))


async def _in_thread(wait: Callable[[], object]) -> None:
    await anyio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=_THREADS)


async def _wait(gate: Gate) -> None:
    gate.arrived.set()
    await _in_thread(lambda: gate.released.wait(HOLD_SECONDS))


_THREADS = anyio.CapacityLimiter(100)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()


@contextlib.contextmanager
def serve_tools() -> Iterator[ToolServer]:
    """The server while the block runs."""
    board = ToolServer()
    app = _make(board).streamable_http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        ws="none",
        lifespan="on",  # the SDK's sessions need it
        access_log=False,
        log_config=None,
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        board.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            if not server.ready.wait(20):
                raise RuntimeError("the tool server did not start")
            yield board
        finally:
            board.release_all()
            server.should_exit = True
            thread.join(10)
