"""Runs a command with a limit of memory, and ends with it whatever it has started: ``python -m
dualtrack_stack.local.supervised MEGABYTES COMMAND …``.

It is the process of a project's own tools. On AWS what a tool starts shares the function's memory and ends with its
environment; here each of these processes may take as much (on macOS there is no limit), and they are ended when the
command ends, at SIGTERM, and when the process that started this one is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
_LOOK_SECONDS: Final = 0.5
_END_SECONDS: Final = 5.0


class _Ended(BaseException):
    """Somebody wants it to end."""


def main() -> int:
    """Run the command to its end; its exit code."""
    megabytes, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, _end)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # what detaches itself stays a descendant
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
    parent = os.getppid()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    try:
        return subprocess.Popen(command).wait()
    except _Ended:
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        deadline = time.monotonic() + _END_SECONDS
        while (descendants := _descendants(os.getpid())) and time.monotonic() < deadline:
            for pid in descendants:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _end(*_: object) -> None:
    raise _Ended


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _descendants(leader: int) -> list[int]:
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        pairs = [tuple(map(int, line.split())) for line in listing.stdout]
    children: dict[int, list[int]] = {}
    for pid, parent in pairs:
        children.setdefault(parent, []).append(pid)
    found, open_ones = [], [leader]
    while open_ones:
        below = [pid for pid in children.get(open_ones.pop(), []) if pid != listing.pid]
        found += below
        open_ones += below
    return found


if __name__ == "__main__":
    sys.exit(main())
