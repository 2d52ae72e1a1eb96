"""The engine ``ladybug`` in a child process that can reach little more than the database file.

The child (`child.py`) shares none of the function's memory, has no environment, and only three descriptors. This module
limits its time; the child's own limits bound memory, and its sandbox what it can reach. One child answers the queries
of our tools until one fails; an untrusted query gets its own child, and only one child runs at a time.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.runtime.environment import for_a_child
from dualtrack.tools.graph.engine import QueryFailed, QueryTimedOut, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.tools.graph.engine import GraphValue

MAX_ROWS: Final = 200
"""Maximum rows of a query (PROFILES 4)."""

_CHILD: Final = Path(__file__).with_name("child.py")


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a query: ``seconds`` from its start to its last row, the engine's ``threads``, and in bytes the buffer
    ``pool``, the largest database that can be opened (``reserve``), and the ``result`` as JSON."""

    seconds: float = 10.0
    threads: int = 2
    pool: int = 512 << 20
    reserve: int = 8 << 30
    result: int = 2_000_000

    @property
    def address_space(self) -> int:
        """What the child may map: the reserve takes no memory, and the pool is mapped beside the data that is read."""
        return self.reserve + 2 * self.pool + (1 << 30)


DEFAULT_LIMITS: Final = QueryLimits()


@dataclass(eq=False, slots=True)
class Ladybug:
    """A database file, opened read-only. Its child process ends with this object.

    ``told`` gets the layers of the first child's sandbox, each with the reason why it is not in force; empty if it
    is."""

    database: Path
    limits: QueryLimits = DEFAULT_LIMITS
    told: Callable[[Mapping[str, str]], None] | None = None
    _child: _Child | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """At most ``limit`` rows, never more than `MAX_ROWS`. Raises `QueryFailed` and `QueryTimedOut`."""
        with self._lock:
            child, self._child = self._child, None
            if child is None or child.is_dead:
                child = _Child(self.database, self.limits)
            rows = self._read(child, query, parameters, limit)
            self._child = child  # a child whose query failed is not used again
            return rows

    def read_foreign(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """As `read`, in a child for this query alone."""
        with self._lock:
            self._child = None
            return self._read(_Child(self.database, self.limits), query, parameters, limit)

    def _read(self, child: _Child, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        try:
            return child.read(query, parameters, limit)
        finally:
            if self.told and child.layers:
                self.told(child.layers)
                self.told = None


class _Child:
    """The child process. It is killed when this object is collected: as soon as nothing refers to it."""

    def __init__(self, database: Path, limits: QueryLimits) -> None:
        self._limits = limits
        self.layers: Mapping[str, str] = {}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", "-B", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=for_a_child(),
            close_fds=True,
            start_new_session=True,
        )
        self.end: Final = weakref.finalize(self, _end, self._process)
        self._send(
            {
                "package": _package(),
                "database": str(database),
                "threads": limits.threads,
                "pool": limits.pool,
                "reserve": limits.reserve,
                "address_space": limits.address_space,
                "seconds": int(limits.seconds * limits.threads) + 1,
            }
        )

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, for example by a signal when the system ran out of memory."""
        return self._process.poll() is not None

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """See `Ladybug.read`. After any error, this child is not used again."""
        try:
            reply = self._reply(query, parameters, min(limit, MAX_ROWS))
        except BaseException:
            self.end()
            raise
        if "rows" in reply:
            rows = tuple(tuple(row) for row in reply["rows"])
            return Rows(tuple(reply["columns"]), rows, reply["more"])
        self.end()
        if "failed" in reply:
            raise QueryFailed(_one_line(reply["failed"]))
        raise QueryTimedOut("the query took too much memory: ask for less.")

    def _reply(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> dict[str, Any]:
        deadline = time.monotonic() + self._limits.seconds
        self._send(
            {
                "query": query,
                "parameters": dict(parameters),
                "limit": limit,
                "bytes": self._limits.result,
            }
        )
        try:
            reply: dict[str, Any] = json.loads(self._line(deadline))
        except ValueError:
            # killed by a limit, or the engine crashed
            raise QueryTimedOut("the engine gave up on the query: ask for less.") from None
        self.layers = reply.get("layers", {})  # none if it could not open the database
        return reply

    def _send(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died: its answer is empty then
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()

    def _line(self, deadline: float) -> bytes:
        """Its answer to a query as a line; incomplete if it died."""
        assert self._process.stdout is not None
        received = bytearray()
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN | select.POLLHUP)
        while len(received) <= 2 * self._limits.result:
            if not poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
                raise QueryTimedOut("the query took too long: ask for less.")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            received += chunk
            if not chunk or chunk.endswith(b"\n"):
                return bytes(received)
        raise QueryFailed("the rows are too large: return fewer or smaller values.")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with suppress(BrokenPipeError), process:  # unflushed input
        pass


def _package() -> str:
    """Where the engine is installed; it is never imported into this process."""
    spec = find_spec("ladybug")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("ladybug")
    return str(Path(spec.origin).parent)


def _one_line(words: str) -> str:
    return " ".join(words.split())
