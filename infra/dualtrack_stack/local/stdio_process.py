"""A process of an MCP server that speaks over its standard input and output, one JSON-RPC message a line.

It is a stranger: what is no message is passed over, a line of more than `MAX_LINE` ends it, of its standard error the
first megabyte is kept, and a process that ends is started again when somebody asks, ever later if it ends again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shutil
import sys
import time
from typing import Any, Final

from dualtrack_stack.roots import own_python

MAX_LINE: Final = 16 << 20
MAX_ERRORS: Final = 1 << 20
MAX_OPEN: Final = 100
MEGABYTES: Final = 8_192
START_SECONDS: Final = 120.0
"""For the handshake: a runner may fetch a package first."""
CALL_SECONDS: Final = 60.0
_LAST_WAIT: Final = 60.0
_LIVED: Final = 30.0
"""A process that has lived this long ends its predecessors' account."""
PROTOCOL: Final = "2025-11-25"
_NO_METHOD: Final = -32601


class Away(Exception):
    """The server does not answer; the message says why."""


class StdioProcess:
    """The server: at most one process of it at a time, started by the first who asks."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], cwd: str) -> None:
        self.name = name
        self._command, self._env, self._cwd = command, env, cwd
        self._running: _Running | None = None
        self._starting = asyncio.Lock()
        self._failures = 0
        self._started = 0.0
        self._why = ""

    async def initialized(self) -> Any:
        """The result of the handshake. Raises `Away`."""
        return (await self._alive()).hello

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The ``result`` or ``error`` of a request. Raises `Away`."""
        return await (await self._alive()).ask(method, params, CALL_SECONDS)

    async def end(self) -> None:
        """End the process."""
        if self._running:
            await self._running.end()

    async def _alive(self) -> _Running:
        async with self._starting:
            running = self._running
            if running and running.is_alive:
                return running
            if running:
                self._count(running)
            wait = min(_LAST_WAIT, 2.0 ** (self._failures - 1)) if self._failures else 0.0
            if (left := self._started + wait - time.monotonic()) > 0:
                raise Away(f"{self.name}: {self._why}; it is started again in {left:.0f} s")
            self._started = time.monotonic()
            if shutil.which(self._command[0], path=self._env.get("PATH")) is None:
                self._failures += 1
                self._why = f"there is no program {self._command[0]} on this machine"
                raise Away(f"{self.name}: {self._why}: install it, or write another command")
            self._running = await _Running.begun(self._command, self._env, self._cwd)
            try:
                await self._running.shake_hands()
            except Away as away:
                await self._running.end()
                self._count(self._running, str(away))
                raise Away(f"{self.name}: {away}") from None
            return self._running

    def _count(self, ended: _Running, why: str = "") -> None:
        self._running = None
        self._failures = 1 if time.monotonic() - self._started > _LIVED else self._failures + 1
        self._why = why or ended.why


class _Running:
    """One process, from its start to its end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.hello: Any = None
        self.why = "it has ended"
        self._process = process
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._writing = asyncio.Lock()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_errors())]
        self.is_alive = True

    @classmethod
    async def begun(cls, command: list[str], env: dict[str, str], cwd: str) -> _Running:
        """Started, below a process that ends all that it starts."""
        pipe = asyncio.subprocess.PIPE
        words = own_python("dualtrack_stack.local.supervised", str(MEGABYTES), *command)
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, limit=MAX_LINE
        )
        return cls(process)

    async def shake_hands(self) -> None:
        """Begin the session. Raises `Away`."""
        params = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "dualtrack", "version": "1"},
        }
        answer = await self.ask("initialize", params, START_SECONDS)
        if "result" not in answer:
            raise Away(f"it refuses the handshake: {str(answer.get('error'))[:200]}")
        self.hello = answer["result"]
        await self._write({"method": "notifications/initialized"})

    async def ask(self, method: str, params: Any, seconds: float) -> dict[str, Any]:
        """Raises `Away` if the process ends, or takes longer."""
        if len(self._open) >= MAX_OPEN:
            raise Away(f"{MAX_OPEN} calls are open")
        number = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        message = {"id": number, "method": method, **({} if params is None else {"params": params})}
        try:
            async with asyncio.timeout(seconds):
                await self._write(message)
                return await answer
        except TimeoutError:
            told = {"requestId": number, "reason": "out of time"}
            await self._write_if_it_can({"method": "notifications/cancelled", "params": told})
            raise Away(f"it did not answer within {seconds:.0f} s") from None
        except (ConnectionError, RuntimeError):
            raise Away(self.why) from None
        finally:
            del self._open[number]

    async def end(self) -> None:
        """End the process, and wait for it."""
        self._over(self.why)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        for task in self._tasks:
            task.cancel()
        await self._process.wait()

    async def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        async with self._writing:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self._process.stdin.drain()

    async def _write_if_it_can(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError):
            async with asyncio.timeout(1):
                await self._write(message)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        why = ""
        try:
            while line := await self._process.stdout.readline():
                await self._take(line)
        except ValueError:
            why = f"it wrote a line of more than {MAX_LINE >> 20} MB"
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        code = await self._process.wait()
        self._over(why or f"it has ended with code {code}")

    async def _take(self, line: bytes) -> None:
        """One line: an answer, a request of the server's, or what is neither."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        if "method" in message:
            if "id" in message:
                await self._write_if_it_can({"id": message["id"], **_answer_to(message["method"])})
            return
        waiting = self._open.get(message["id"]) if isinstance(message.get("id"), int) else None
        if waiting and not waiting.done():
            waiting.set_result({key: message[key] for key in ("result", "error") if key in message})

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        kept = 0
        while part := await self._process.stderr.read(65_536):
            if kept < MAX_ERRORS:
                sys.stderr.write(part[: MAX_ERRORS - kept].decode(errors="replace"))
                sys.stderr.flush()
            kept += len(part)

    def _over(self, why: str) -> None:
        self.is_alive = False
        self.why = why
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(why))


def _answer_to(method: Any) -> dict[str, Any]:
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": _NO_METHOD, "message": "not served"}}
