"""Chats in which each step is run by an earlier release's code or by today's, at random, as no deploy mixes them.

The earlier release is taken from the repository's history into a folder, and its steps run in a process of their own
(`tests.drivers.earlier_steps`) on the same tables. The workflow, the clock and the invariants are those of today's
crash world.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from tests.drivers import crash_world
from tests.drivers.crash_world import (
    CLIENT_TOOL,
    DOCUMENTATION,
    LOOKUP,
    NOTE,
    QUESTION,
    READ,
    UNKNOWN,
    Scenario,
    World,
)
from tests.drivers.documents import ROOT
from tests.drivers.earlier_steps import read, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.requests import ChatRef

    from tests.drivers.faults import Process
    from tests.drivers.memory_aws import MemoryAws

SCENARIO: Final = Scenario(
    "a deploy", rounds=((DOCUMENTATION, NOTE, UNKNOWN), (READ,)), charged=20, always_asks=True
)
"""Every step of a chat, and the same for each query: the earlier release's world asks for the same tools."""

PAUSING: Final = Scenario(
    "a deploy in a pause",
    rounds=((DOCUMENTATION, NOTE, LOOKUP), (QUESTION,)),
    asks=(NOTE.tool,),
    tools=(CLIENT_TOOL,),
)
"""A pause for leave and for the client's tool, then one for an answer."""

_ASKED: Final = ("DOCUMENTATION", "NOTE", "UNKNOWN", "READ", "SEARCH", "LOOKUP", "QUESTION")
"""The names of tool calls in both releases' worlds."""

_REQUESTS: Final = ("start", "stop")
_PARTS: Final = ("layers", "infra", "tests")


class NoHistory(Exception):
    """The release's commit is missing: a shallow clone, or no repository."""


class Earlier:
    """A process with the earlier release's code; used as a context manager."""

    def __init__(self, folder: Path) -> None:
        """``folder``: an empty one, for the release's sources. Raises `NoHistory`."""
        _unpack(folder)
        script = Path(__file__).with_name("earlier_steps.py")
        roots = (folder, folder / "infra", folder / "layers" / "core" / "python")
        self._process = subprocess.Popen(
            [sys.executable, "-P", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))},
        )

    def step(self, world: World, name: str, **arguments: Any) -> Any:
        """Run one step on the world's account. Raises RuntimeError for a step that raised."""
        aws = world.aws
        with aws.lock:
            tables = {table_name: dict(items) for table_name, items in aws.tables.items()}
            account = (tables, dict(aws.objects), dict(aws.executions))
            frame = (account, world.clock.now, _plain(world.scenario), name, arguments)
            write(_open(self._process.stdin), frame)
            frame = read(_open(self._process.stdout))
            if frame is None:
                raise AssertionError("the earlier release's process is gone")
            (tables, aws.objects, aws.executions), world.clock.now, outcome, error = frame
            for table_name, items in tables.items():
                _take_over(aws, table_name, items)
        if error:
            raise RuntimeError(error)
        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes both pipes, and waits
            pass


def _plain(scenario: Scenario) -> dict[str, Any]:
    """What the earlier release's world has to know of a scenario."""
    names = {id(getattr(crash_world, name)): name for name in _ASKED}
    return {
        "rounds": tuple(tuple(names[id(asked)] for asked in turn) for turn in scenario.rounds),
        "asks": scenario.asks,
        "tools": scenario.tools,
        "decided": scenario.decided,
    }


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _take_over(aws: MemoryAws, name: str, items: dict[tuple[str, str], Any]) -> None:
    table = aws.table(name)
    for key in [key for key in table if key not in items]:
        table.forget(key)
    for key, item in items.items():
        table[key] = item


def earlier() -> str:
    """The newest tag of a release in this commit's past, else the commit itself: what 1.0.0 writes has to be read from
    then on (docs/releases.md)."""
    newest = ["git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0", "--match", "*[0-9].[0-9]*.[0-9]*"]
    found = subprocess.run(newest, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "HEAD"


def _unpack(folder: Path) -> None:
    """Unpack the sources of the earlier release from the repository's history."""
    archive = folder / "release.tar"
    done = subprocess.run(
        ["git", "-C", ROOT, "archive", "-o", archive, earlier(), *_PARTS], capture_output=True, check=False
    )
    if done.returncode:
        raise NoHistory(done.stderr.decode().strip())
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    archive.unlink()


@dataclass
class MixedWorld(World):
    """A world in which ``is_earlier`` says of each step, by its name, whose code runs it; ``ran`` has them in order.

    ``is_repeated``: of each step but a request, whether the other release's code has already run it and its answer was
    lost.
    """

    earlier: Earlier | None = None
    is_earlier: Callable[[str], bool] = lambda _: False
    is_repeated: Callable[[str], bool] = lambda _: False
    ran: list[tuple[str, str]] = field(default_factory=list)

    def _mixed(self, name: str, today: Callable[[], Any], **arguments: Any) -> Any:
        is_earlier = self.is_earlier(name)
        if name not in _REQUESTS and self.is_repeated(name):
            self._run(name, today, arguments, is_earlier=not is_earlier)
        return self._run(name, today, arguments, is_earlier=is_earlier)

    def _run(
        self, name: str, today: Callable[[], Any], arguments: dict[str, Any], *, is_earlier: bool
    ) -> Any:
        self.ran.append((name, "earlier" if is_earlier else "today"))
        if is_earlier and self.earlier:
            return self.earlier.step(self, name, **arguments)
        return today()

    def start(self, message: str, conversation_id: str, process: Process) -> int:
        """POST /v1/chats → the status of the response."""
        status: int = self._mixed(
            "start",
            lambda: World.start(self, message, conversation_id, process),
            message=message,
            conversation_id=conversation_id,
        )
        return status

    def turn(self, ref: ChatRef, process: Process) -> Any:
        """One delivery of a turn."""
        return self._mixed("turn", lambda: World.turn(self, ref, process), ref=asdict(ref))

    def tool(self, ref: ChatRef, call_id: str, process: Process, fn: str = "tool") -> Any:
        """One delivery of a tool's call."""
        return self._mixed(
            "tool",
            lambda: World.tool(self, ref, call_id, process, fn),
            ref=asdict(ref),
            call_id=call_id,
            fn=fn,
        )

    def summarise(self, ref: ChatRef, process: Process) -> Any:
        """One delivery of the state behind the answer."""
        return self._mixed("summarise", lambda: World.summarise(self, ref, process), ref=asdict(ref))

    def end(self, ref: ChatRef, error: str, number: int, process: Process) -> Any:
        """One delivery to `abort`."""
        return self._mixed(
            "end",
            lambda: World.end(self, ref, error, number, process),
            ref=asdict(ref),
            error=error,
            number=number,
        )

    def stop(self, ref: ChatRef, process: Process) -> Any:
        """DELETE /v1/chats/{id}."""
        return self._mixed("stop", lambda: World.stop(self, ref, process), ref=asdict(ref))

    def look_at_open_chats(self, process: Process) -> Any:
        """One delivery to `sweep`."""
        return self._mixed("look_at_open_chats", lambda: World.look_at_open_chats(self, process))

    def decide(self, ref: ChatRef, only: int | None, process: Process) -> Any:
        """POST /v1/chats/{id}/decisions."""
        return self._mixed(
            "decide", lambda: World.decide(self, ref, only, process), ref=asdict(ref), only=only
        )
