"""The pipe between a child process and the local stack that started it.

The parent holds the write end of the child's standard input. When the parent ends, for any reason, the pipe
closes: the child gets SIGTERM and time to save its state, then its whole process group, the workers
it spawned included, is killed. That needs no help from the kernel; on Linux the parent-death signal covers the moment
before the watching thread runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

GRACE_SECONDS: Final = 10.0
_PR_SET_PDEATHSIG: Final = 1
_lines: Final[queue.SimpleQueue[str]] = queue.SimpleQueue()


def attach() -> None:
    """Make standard input this process's lifeline; what the parent writes there comes line by line."""
    _ask_for_death_signal()
    lifeline = os.dup(0)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_watch, args=(lifeline,), name="lifeline", daemon=True).start()


def next_line() -> str:
    """The next line from the parent; waits for it."""
    return _lines.get()


def end_group() -> None:
    """Ask processes that this one has started to end with it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(os.getpgrp(), signal.SIGTERM)


def _ask_for_death_signal() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _watch(lifeline: int) -> None:
    with os.fdopen(lifeline, encoding="utf-8") as pipe:
        for line in pipe:
            _lines.put(line)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)
