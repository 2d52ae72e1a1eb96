"""Processes of functions as copies of one that has loaded what they import (`dualtrack_stack.local.fork_server`).

Where a copy cannot be made, the process is started as it always was: on macOS, whose libraries do not take it, for
functions whose packages start threads as they are loaded, and with variables that Python reads as it begins.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

THREADED: Final = frozenset({"embed", "ingest", "search"})
"""Functions known to import numpy, which starts threads: a server that has loaded it copies nobody any more."""

FORKS: Final = "DUALTRACK_FORKS"
"""``off``: no copies; each process loads its packages itself, as on AWS, for measurements of what that takes."""

LAYERS: Final = "_LAMBDA_LAYERS_DIRS"
"""The variable in which the emulator names the folders of a process's layers."""

_PROGRAM: Final = Path(__file__).with_name("fork_server.py")
_MOST_SERVERS: Final = 4
"""Of as many combinations of layers; the one that was made first ends for a further one."""

_ANSWER_BYTES: Final = 64
_ANSWER_SECONDS: Final = 120.0  # it may have to load packages first
_ARGUMENTS: Final = frozenset({"cwd", "stdin", "stdout", "stderr", "text", "bufsize", "env"})


class Fork:
    """A copy, as far as the emulator uses a `subprocess.Popen`. Its exit code is not known."""

    def __init__(self, pid: int, pipes: Sequence[int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = (
            _text(pipe, mode) for pipe, mode in zip(pipes, ("w", "r", "r"), strict=True)
        )
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self.returncode = -1

    def poll(self) -> int | None:
        """-1 once it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._descriptor], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("fork", timeout or 0)
            self.returncode = -1
            os.close(self._descriptor)
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)


@dataclass(frozen=True, slots=True)
class _Server:
    socket: socket.socket
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        """Its copies stay."""
        self.socket.close()
        self.process.kill()
        self.process.wait()


class ForkServers:
    """A server for each combination of layers, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, ...], _Server] = {}
        self._threaded = set(THREADED)

    def popen(self, command: list[str], **more: Any) -> Fork | None:
        """A copy in place of a ``Popen`` of these arguments, or None."""
        environment: Mapping[str, str] = more.get("env") or {}
        name = environment.get("POWERTOOLS_SERVICE_NAME", "")
        if name in self._threaded or not can_fork(command, environment) or set(more) != _ARGUMENTS:
            return None
        layers = tuple(os.path.realpath(folder) for folder in environment[LAYERS].split(os.pathsep))
        job = {"command": command, "cwd": more["cwd"], "env": dict(environment)}
        (given_in, to_child), (from_child, given_out), (errors, given_errors) = (
            os.pipe(),
            os.pipe(),
            os.pipe(),
        )
        given, kept = (given_in, given_out, given_errors), (to_child, from_child, errors)
        try:
            pid = self._fork(name, command[0], layers, job, given)
        finally:
            for descriptor in given:
                os.close(descriptor)
        if pid:
            return Fork(pid, kept)
        for descriptor in kept:
            os.close(descriptor)
        return None

    def close(self) -> None:
        """End the servers; they also end with this process."""
        with self._lock:
            while self._servers:
                self._servers.popitem()[1].end()

    def _fork(
        self,
        name: str,
        python: str,
        layers: tuple[str, ...],
        job: Mapping[str, Any],
        descriptors: Sequence[int],
    ) -> int:
        """The copy's process id; 0 without one. A server that has died or got threads makes place for another."""
        with self._lock:
            answer = b""
            with contextlib.suppress(OSError):
                server = self._servers.get(layers) or self._started(python, layers)
                passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                server.socket.sendmsg([json.dumps(job).encode()], passed)
                answer = server.socket.recv(_ANSWER_BYTES)
            pid = int(answer or b"0")
            if answer and not pid:
                self._threaded.add(name)
            if not pid and layers in self._servers:
                self._servers.pop(layers).end()
            return pid

    def _started(self, python: str, layers: tuple[str, ...]) -> _Server:
        if len(self._servers) == _MOST_SERVERS:
            self._servers.pop(next(iter(self._servers))).end()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_ANSWER_SECONDS)
        with its:
            process = subprocess.Popen(
                [python, "-P", str(_PROGRAM), str(its.fileno()), *layers],
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._servers[layers] = _Server(ours, process)
        return self._servers[layers]


def can_fork(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a copy may stand for this process of the emulator's."""
    return (
        sys.platform == "linux"
        and len(command) == len(("python", "script"))
        and command[0] == sys.executable
        and LAYERS in environment
        and environment.get(FORKS) != "off"
        and _of_python(environment) == _of_python(os.environ)
    )


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def _text(descriptor: int, mode: str) -> IO[str]:
    """A pipe as `subprocess` opens it for text; each line is sent at once."""
    return open(descriptor, mode, buffering=1, encoding=sys.stdout.encoding)
