"""The child processes of the local stack: started together, logged to files, ended together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack_stack.local.private import make_private
from dualtrack_stack.roots import own_python, project_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STOP_SECONDS = 12.0
"""How long children may take to save their state and end."""


WORKERS_SECONDS = 1.0
"""How long a child's own children may take to finish."""


class ChildDied(RuntimeError):
    """A process that the local stack needs has ended."""


@dataclass(frozen=True, slots=True)
class Child:
    """One running child; ``log`` is where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise `ChildDied`, with the end of its log, if it has ended."""
        code = self.process.poll()
        if code is not None:
            raise ChildDied(f"{self.name} ended with code {code}; the end of {self.log}:\n{_tail(self.log)}")

    def send(self, line: bytes) -> None:
        """Write a line into its lifeline."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()


class Children:
    """Starts children bound to this process (`dualtrack_stack.local.child`) and ends them all."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []

    def start(
        self,
        name: str,
        module: str,
        *args: str,
        environment: Mapping[str, str],
        keep_open: Sequence[int] = (),
    ) -> Child:
        """Run ``python -m MODULE ARGS`` with exactly this environment."""
        make_private(self._logs)
        log = self._logs / f"{name}.log"
        log.touch(mode=0o600)
        with log.open("ab") as output:
            process = subprocess.Popen(
                own_python("dualtrack_stack.local.child", module, *args),
                cwd=project_root(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                pass_fds=tuple(keep_open),
                umask=0o077,  # they store keys, tokens and conversations
                process_group=0,  # we pass on a Ctrl-C of the terminal ourselves, in order
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    def check(self) -> None:
        """Raise `ChildDied` if any has ended."""
        for child in self._children:
            child.check()

    def kill(self) -> None:
        """End all at once, with what they have spawned; `stop` has still to be called."""
        for child in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all: ask the latest first, wait for all, then kill the rest of their groups."""
        for child in reversed(self._children):
            with contextlib.suppress(ProcessLookupError):
                if child.process.poll() is None:
                    child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in reversed(self._children):
            _await_end(child.process, deadline)
            _await_group(child.process.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.wait()
            with contextlib.suppress(BrokenPipeError):
                if child.process.stdin:
                    child.process.stdin.close()
        self._children.clear()


def _await_end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait for a child that was asked to end. What it spawned is killed once it has had a moment.

    The emulator saves its state only when no request is open, and a function's worker in the middle of a
    model call would keep one open for two minutes.
    """
    spawned_until = time.monotonic() + WORKERS_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.1)
            return
        now = time.monotonic()
        if now >= spawned_until:
            for pid in _spawned_by(process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM if now < spawned_until + WORKERS_SECONDS else signal.SIGKILL)


def _await_group(leader: int) -> None:
    """Wait a moment for what an ended child has asked to end."""
    deadline = time.monotonic() + WORKERS_SECONDS
    while _spawned_by(leader) and time.monotonic() < deadline:
        time.sleep(0.05)


def _spawned_by(leader: int) -> list[int]:
    """The other processes of a child's group."""
    with contextlib.suppress(OSError):
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=False
        )
        rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
        return [
            int(pid)
            for pid, group, state in rows
            if int(group) == leader and int(pid) != leader and state[0] != "Z"
        ]
    return []


def _tail(log: Path, lines: int = 20) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    return ""
