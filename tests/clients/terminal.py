"""The command ``dualtrack`` on its own terminal: send it keys, read what it draws."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Final, Self

_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 120.0
_OWN: Final = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes standard input the controlling terminal, so that Ctrl-C works, then executes the command."""


class Terminal:
    """A context manager. ``shown`` is everything drawn so far, with control characters."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        command = [sys.executable, "-m", "dualtrack_stack.cli.main", *arguments]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OWN, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            cwd=_ROOT,
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "PYTHONIOENCODING": "utf-8",
                "PROMPT_TOOLKIT_NO_CPR": "1",  # no terminal answers the query for the cursor's position
            },
        )
        os.close(theirs)
        self._read = b""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    @property
    def shown(self) -> str:
        return self._read.decode(errors="replace")

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def until(self, text: str) -> str:
        """Wait until this text is drawn, after the previously awaited one; returns what was drawn up to it."""
        deadline = time.monotonic() + _SECONDS
        while (position := self._read.find(text.encode(), self._seen)) < 0:
            assert self._more(deadline), f"{text!r} was not drawn:\n{self.shown}"
        before, self._seen = self._seen, position + len(text.encode())
        return self._read[before : self._seen].decode(errors="replace")

    def terminate(self) -> None:
        """Send the command a SIGTERM."""
        self._process.terminate()

    def end(self) -> int:
        """Wait until the command has ended; its exit code."""
        deadline = time.monotonic() + _SECONDS
        while self._more(deadline):
            pass
        return self._process.wait(timeout=_SECONDS)

    def _more(self, deadline: float) -> bool:
        """Read more; false at the end, or when the time is up."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            part = os.read(self._ours, 65536) if ready else b""
        except OSError:  # Linux reports the other side's end as an input/output error
            part = b""
        self._read += part
        return bool(part)
