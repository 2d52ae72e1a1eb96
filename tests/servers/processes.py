"""Servers in child processes: their ports, and their end."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def free_ports(count: int) -> list[int]:
    """Different free ports."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def free_port() -> int:
    """A free port."""
    return free_ports(1)[0]


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Run the command silently in an empty folder, with ``environment`` added to this process's; end it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
