"""Readers of hostile files in a process of their own, with bounded memory and time, so that one exhausts only itself.

`run` starts ``python -m MODULE ARGUMENT…``, which limits itself first (`limit_this`), reads the file from standard
input and writes its answer to standard output. If it refuses the file, it writes the reason (`refuse`).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.errors import TookTooLong
from dualtrack.runtime.environment import for_a_child

if TYPE_CHECKING:
    from collections.abc import Sequence

_REFUSED: Final = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of computing, and bytes of address space."""

    seconds: int
    memory: int


class Refused(Exception):
    """The reader does not take the file; the message is its reason."""


class Failed(Exception):
    """It ended otherwise: mostly by a limit."""


def run(module: str, arguments: Sequence[str], data: bytes, limits: Limits) -> bytes:
    """What the module writes. Raises `Refused`, `TookTooLong`, `Failed`."""
    command = [sys.executable, "-m", module, *arguments]
    modules = os.pathsep.join(path for path in sys.path if path)
    environment = {"PYTHONPATH": modules, "PYTHONUTF8": "1", **for_a_child()}
    try:
        done = subprocess.run(  # noqa: S603 - our own program, the file on its input
            command, input=data, capture_output=True, env=environment, timeout=2 * limits.seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise TookTooLong(module, 2 * limits.seconds) from error
    if done.returncode == _REFUSED:
        raise Refused(done.stdout.decode())
    if done.returncode:
        raise Failed(done.stderr[-2000:].decode("utf-8", "replace"))
    return done.stdout


def limit_this(limits: Limits) -> None:
    """Bound this process; nothing lifts that again."""
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def refuse(reason: str) -> int:
    """Say why the file is not taken. Returns the exit code."""
    sys.stdout.buffer.write(reason.encode("utf-8", "replace"))
    return _REFUSED
