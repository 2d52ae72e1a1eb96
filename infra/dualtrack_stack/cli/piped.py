"""Text that is piped into a command: read if somebody sends it, without waiting for one who never will.

A pipe, a socket or a file read from its beginning sends text. A terminal, a device (``/dev/null``), a closed
descriptor and a file that somebody else has begun to read (``while read …; done < list``) do not. A pipe tells nothing
before its first byte: a program may be about to write, or a supervisor (CI, ``ssh`` without a terminal) may hold it
open for ever. So where nobody watches, silence has a limit; on a terminal the command says that it waits.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str], None]

_FIRST_SECONDS: Final = 5.0
_NEXT_SECONDS: Final = 60.0
_PIECE: Final = 65_536
_WAITING: Final = "Waiting for the end of standard input. Without it: </dev/null"
_SILENT: Final = "Nothing came from standard input within 5 seconds, so the question is asked without it. `--file -` waits for it."


class Unfinished(Exception):
    """Standard input began and did not end."""


def piped(limit: int, report: Report) -> bytes:
    """What standard input sends, at most ``limit`` + 1 bytes; empty if nobody sends anything. ``report`` is told of a
    wait. Raises `Unfinished`."""
    source = _source()
    if source is None or not _begins(source, report):
        return b""
    data = bytearray()
    while len(data) <= limit:
        if not _is_ready(source, None if sys.stderr.isatty() else _NEXT_SECONDS):
            raise Unfinished(
                f"Standard input sent {len(data):,} bytes and did not end. `--file -` waits for it."
            )
        piece = os.read(source, min(_PIECE, limit + 1 - len(data)))
        if not piece:
            break
        data += piece
    return bytes(data)


def _source() -> int | None:
    """The descriptor of standard input, if somebody may send something there."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and os.lseek(descriptor, 0, os.SEEK_CUR) == 0:
            return descriptor
    except (AttributeError, OSError):  # closed, or no file of the system
        return None
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _begins(source: int, report: Report) -> bool:
    if _is_ready(source, _FIRST_SECONDS):
        return True
    is_watched = sys.stderr.isatty()
    report(_WAITING if is_watched else _SILENT)
    return is_watched


def _is_ready(source: int, seconds: float | None) -> bool:
    """Whether something can be read, or the end has come."""
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else seconds * 1_000))
