"""Runs the local stack: `serve` in the foreground until a signal, or in the background (``python -m
dualtrack_stack.local.runner STATE_DIR``) for the commands of one state folder, until the last of them ends.

`dualtrack_stack.local.shared` starts the background one. Its guests hold a shared lock on the file ``guests``; it ends
when there are none and no workflow runs, so a command that has its answer need not wait for what follows it. It writes
messages to its standard output, a JSON object a line: ``{"pid"}`` first, then a ``{"step"}`` for each step of the
start, then ``{"url", "seconds"}``, or ``{"problem"}`` if it cannot start.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from dualtrack_stack.local.private import make_private
from dualtrack_stack.local.processes import ChildDied
from dualtrack_stack.local.reload import ENDING, Reload
from dualtrack_stack.local.stack import CannotStart, LocalStack, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str], None]

GUESTS_FILE: Final = "guests"
"""Share-locked by every command that uses the stack; exclusively locked by a stack that is ending."""
KEEPER_FILE: Final = "keeper"
"""Locked by the process of a background stack, until its end."""

WORK_SECONDS: Final = 60.0
"""How long a stack without guests waits for running workflows: summaries take seconds. Unfinished work continues with
the next start."""

_CHECK_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.1


class _Stopped(BaseException):
    """The signal to end; no handler of errors catches it, as with KeyboardInterrupt."""


def _stop(*_: object) -> None:
    # only once: a second Ctrl-C must not interrupt saving the state
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise _Stopped


def serve(state_dir: Path, *, port: int, reset: bool, report: Report) -> int:
    """Run the stack in the foreground until SIGINT or SIGTERM; gives the exit code."""
    for number in ENDING:
        signal.signal(number, _stop)
    try:
        _await_keeper(state_dir, report)
        with LocalStack(state_dir, port=port, reset=reset, report=report) as stack:
            print(f"ready {stack.url}", flush=True)
            reload = Reload(stack, report)
            while True:
                stack.check()
                reload.look()
                time.sleep(_LOOK_SECONDS)
    except (CannotStart, ChildDied) as problem:
        print(problem, file=sys.stderr)
        return 1
    except _Stopped:
        return 0


def _await_keeper(state_dir: Path, report: Report) -> None:
    """Wait for the stack of an earlier command that is about to end; one that still has guests does not count."""
    deadline = time.monotonic() + WORK_SECONDS
    reported = False
    while is_locked(state_dir / KEEPER_FILE) and time.monotonic() < deadline:
        if is_locked(state_dir / GUESTS_FILE, alone=True) and not is_locked(state_dir / GUESTS_FILE):
            return
        if not reported:
            report("Waiting for the stack of an earlier command to end")
        reported = True
        time.sleep(_CHECK_SECONDS)


def is_locked(path: Path, *, alone: bool = False) -> bool:
    """Whether another process has a lock that conflicts with ours, shared or (``alone``) exclusive."""
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def keep(stack: LocalStack, guests: IO[str], look: Callable[[], None], seconds: float = WORK_SECONDS) -> None:
    """Return once the stack is unused and has no work, or after some seconds of work without a guest.
    ``guests`` is then locked exclusively, so no new guest can come. ``look`` is called in between.
    """
    alone_since: float | None = None
    while True:
        stack.check()
        if _lock_alone(guests):
            alone_since = alone_since or time.monotonic()
            if not _works(stack) or time.monotonic() - alone_since >= seconds:
                return
            fcntl.flock(guests, fcntl.LOCK_UN)
        else:
            alone_since = None
        look()
        time.sleep(_LOOK_SECONDS)


def _lock_alone(guests: IO[str]) -> bool:
    try:
        fcntl.flock(guests, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _works(stack: LocalStack) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - loads while the stack starts

    try:
        return stack.works()
    except (BotoCoreError, ClientError):  # a stack that cannot be asked is not waited for
        return False


def main() -> None:
    """Run a stack for the guests of a state folder, detached from the command that started it."""
    if os.fork():
        os._exit(0)  # its starter may end before it
    state_dir = Path(sys.argv[1])
    for number in ENDING:
        signal.signal(number, _stop)
    _tell(pid=os.getpid())
    make_private(state_dir)
    with (state_dir / KEEPER_FILE).open("a") as own, (state_dir / GUESTS_FILE).open("a") as guests:
        fcntl.flock(own, fcntl.LOCK_EX)
        try:
            # never the port of an earlier `dev`: who waits there for the next one would reach this stack, which ends
            # soon
            port = free_port()
            with LocalStack(state_dir, port=port, report=lambda step: _tell(step=step)) as stack:
                _tell(url=stack.url, seconds=stack.seconds_to_ready)
                sys.stdout.close()
                keep(stack, guests, Reload(stack, _log).look)
        except _Stopped:
            pass
        except (CannotStart, ChildDied) as problem:
            print(problem, file=sys.stderr)
            _tell(problem=str(problem))


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _tell(**message: Any) -> None:
    if not sys.stdout.closed:
        with contextlib.suppress(BrokenPipeError):  # the command that started the stack has ended
            print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
