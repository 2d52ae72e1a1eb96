"""The engine ``ladybug``: each query in a child process that has the database file and little else.

The child (`child.py`) is started anew for every query: nothing of the function's memory is in it, no environment, no
descriptor but its three. What it does is bounded in time from here, in memory and in writing by its own limits.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.tools.graph.engine import QueryFailed, QueryTimedOut, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.tools.graph.engine import Value

MAX_ROWS: Final = 200
"""Of one query (PROFILES 4)."""

_CHILD: Final = Path(__file__).with_name("child.py")
_KEPT: Final = ("LD_LIBRARY_PATH",)
"""Of the environment, where it is set: where the interpreter's own libraries lie."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one query. ``seconds`` from its start to its last row, ``threads`` of the engine, and in bytes: ``pool`` for
    what it has in memory, ``reserve`` for the largest database that it can open, ``result`` for its rows."""

    seconds: float = 10.0
    threads: int = 2
    pool: int = 512 << 20
    reserve: int = 8 << 30
    result: int = 2_000_000

    @property
    def address_space(self) -> int:
        """What the child may map: the reserve is address space alone, and the pool is mapped beside what is read."""
        return self.reserve + 2 * self.pool + (1 << 30)


DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Ladybug:
    """A database file, opened read-only by each query."""

    database: Path
    limits: Limits = DEFAULT_LIMITS

    def read(self, query: str, parameters: Mapping[str, Value], limit: int) -> Rows:
        """At most ``limit`` rows, never more than `MAX_ROWS`. Raises `QueryFailed` and `QueryTimedOut`."""
        told = self._ask(query, parameters, min(limit, MAX_ROWS))
        if "failed" in told:
            raise QueryFailed(_one_line(told["failed"]))
        if "exhausted" in told:
            raise QueryTimedOut("the query took too much memory: ask for less.")
        rows = tuple(tuple(row) for row in told["rows"])
        return Rows(tuple(told["columns"]), rows, told["more"])

    def _ask(self, query: str, parameters: Mapping[str, Value], limit: int) -> dict[str, Any]:
        asked = {
            "package": _package(),
            "database": str(self.database),
            "query": query,
            "parameters": dict(parameters),
            "limit": limit,
            "threads": self.limits.threads,
            "pool": self.limits.pool,
            "reserve": self.limits.reserve,
            "address_space": self.limits.address_space,
            "seconds": int(self.limits.seconds * self.limits.threads) + 1,
            "bytes": self.limits.result,
        }
        data = _run(json.dumps(asked).encode(), self.limits.seconds, 2 * self.limits.result)
        try:
            told: dict[str, Any] = json.loads(data)
        except ValueError:
            # killed by a limit, or a crash of the engine's
            raise QueryTimedOut("the engine gave up on the query: ask for less.") from None
        return told


def _run(request: bytes, seconds: float, most: int) -> bytes:
    """What a child says to the request. It is dead when this returns."""
    deadline = time.monotonic() + seconds
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", "-B", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        close_fds=True,
        start_new_session=True,
    ) as child:
        try:
            _tell(child, request)
            return _said(child, deadline, most)
        finally:
            child.kill()


def _tell(child: subprocess.Popen[bytes], request: bytes) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(request)
        child.stdin.close()
    except BrokenPipeError:
        pass  # it died: what it says is then empty


def _said(child: subprocess.Popen[bytes], deadline: float, most: int) -> bytes:
    assert child.stdout is not None
    said = bytearray()
    poll = select.poll()
    poll.register(child.stdout, select.POLLIN | select.POLLHUP)
    while len(said) <= most:
        if not poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
            raise QueryTimedOut("the query took too long: ask for less.")
        chunk = os.read(child.stdout.fileno(), 1 << 16)
        if not chunk:
            return bytes(said)
        said += chunk
    raise QueryFailed("the rows are too large: return fewer or smaller values.")


def _package() -> str:
    """Where the engine is installed; it is never imported into this process."""
    spec = find_spec("ladybug")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("ladybug")
    return str(Path(spec.origin).parent)


def _one_line(words: str) -> str:
    return " ".join(words.split())
