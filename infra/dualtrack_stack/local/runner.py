"""Runs the local stack: `serve` in the foreground until a signal, or in the background (``python -m
dualtrack_stack.local.runner STATE_DIR``) for the commands of one state folder, until nobody has used it for a while.

`dualtrack_stack.local.shared` starts the background one. Its guests hold a shared lock on the file ``guests``, and
each request touches it. It ends when there have been neither for some minutes, or when somebody asks for that by a
lock on ``leave``; running workflows first come to their end. It writes messages to its standard output, a JSON object
a line: ``{"pid"}`` first, then a ``{"step"}`` for each step of the start, then ``{"url", "seconds"}``, or
``{"problem"}`` if it cannot start.
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

from dualtrack.settings import of_commands
from dualtrack_stack.local.private import make_private
from dualtrack_stack.local.processes import ChildDied
from dualtrack_stack.local.reload import ENDING, Reload
from dualtrack_stack.local.stack import GUESTS_FILE, CannotStart, LocalStack, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str], None]

KEEPER_FILE: Final = "keeper"
"""Locked by the process of a background stack, until its end."""
LEAVE_FILE: Final = "leave"
"""Share-locked by whoever waits for the end of a background stack."""

WORK_SECONDS: Final = 60.0
"""How long a stack that is to end waits for running workflows: summaries take seconds. Unfinished work continues with
the next start."""

_LOOK_SECONDS: Final = 0.1


class Deleted(Exception):
    """The state folder is gone; another stack may already have made it anew."""


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
        end_keeper(state_dir, report)
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


def end_keeper(state_dir: Path, report: Report) -> bool:
    """End the background stack of the folder once no command uses it and no workflow runs in it, and wait for that;
    whether there was one."""
    if not is_locked(state_dir / KEEPER_FILE):
        return False
    report("Waiting for the stack of an earlier command to end")
    is_told = False
    with (state_dir / LEAVE_FILE).open("a") as leave:
        fcntl.flock(leave, fcntl.LOCK_SH)
        while is_locked(state_dir / KEEPER_FILE):
            if not is_told and _has_guests(state_dir):
                is_told = not report("Another command still uses it")
            time.sleep(_LOOK_SECONDS)
    return True


def _has_guests(state_dir: Path) -> bool:
    path = state_dir / GUESTS_FILE
    return is_locked(path, alone=True) and not is_locked(path)


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


def keep(
    stack: LocalStack,
    guests: IO[str],
    look: Callable[[], None],
    idle_seconds: float,
    work_seconds: float = WORK_SECONDS,
) -> None:
    """Return once nobody has used the stack for some seconds, or is to end it, and it has no work, or has worked on for
    some seconds more. ``guests`` is then locked exclusively, so no new guest can come. ``look`` is called in between.
    Raises `Deleted`.
    """
    folder = Path(guests.name).parent
    unused_since = due_since = None
    touched = 0.0
    while True:
        stack.check()
        status, now = os.fstat(guests.fileno()), time.monotonic()
        if not status.st_nlink:
            raise Deleted
        is_alone = _lock_alone(guests)
        if unused_since is None or not is_alone or status.st_mtime != touched:
            unused_since, touched = now, status.st_mtime
        is_due = is_alone and (
            now - unused_since >= idle_seconds or is_locked(folder / LEAVE_FILE, alone=True)
        )
        due_since = (now if due_since is None else due_since) if is_due else None
        if due_since is not None and (not _works(stack) or now - due_since >= work_seconds):
            return
        if is_alone:
            fcntl.flock(guests, fcntl.LOCK_UN)
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
    # never closed: who waits for the lock waits for the end of this process, not only of its stack
    fcntl.flock(os.open(state_dir / KEEPER_FILE, os.O_CREAT | os.O_WRONLY, 0o600), fcntl.LOCK_EX)
    with (state_dir / GUESTS_FILE).open("a") as guests:
        try:
            # never the port of an earlier `dev`: who waits there for the next one would reach this stack, which ends
            # soon
            port = free_port()
            with LocalStack(state_dir, port=port, report=lambda step: _tell(step=step)) as stack:
                _tell(url=stack.url, seconds=stack.seconds_to_ready)
                sys.stdout.close()
                try:
                    keep(stack, guests, Reload(stack, _log).look, of_commands().dualtrack_idle_seconds)
                except Deleted:
                    stack.kill()
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
