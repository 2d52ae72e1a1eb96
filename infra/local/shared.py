"""The local stack that the commands of one state folder share.

The first that needs it starts it. Whoever uses it is a guest, with a shared lock on ``guests``; whoever
started it takes that lock for itself before it ends the stack, and so waits for the last guest.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from infra.local.credentials import Credentials
from infra.local.private import make_private
from infra.local.stack import HOST, KEYS_FILE, LOCK_FILE, RUNNER_FILE, LocalStack, answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from infra.local.aws import Aws

    Report = Callable[[str], None]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_START_SECONDS: Final = 120.0


@contextmanager
def shared_stack(state_dir: Path, report: Report) -> Iterator[str]:
    """The address of the folder's stack: of the one that runs, else of one that lasts as long as the block.

    ``report`` is told what takes time. Raises RuntimeError with a message for the user if none can start.
    """
    with ExitStack() as held:
        make_private(state_dir)
        for name in ("guests", "starting"):
            (state_dir / name).touch(mode=0o600)
        guests = held.enter_context((state_dir / "guests").open("a"))
        fcntl.flock(guests, fcntl.LOCK_SH)
        with (state_dir / "starting").open("a") as starting:
            _lock(starting, "Waiting for the local stack that another command is starting", report)
            url = _await_running(state_dir)
            if url is None:
                url = _start(held, state_dir, report)
                # Runs first when the block ends, so the stack goes when its last guest has gone.
                held.callback(_lock, guests, "Another command still uses this stack: waiting for it", report)
        yield url


def _start(held: ExitStack, state_dir: Path, report: Report) -> str:
    report(f"No local stack runs here: starting one; what it stores stays in {state_dir}")
    _on_exit(held, {number: signal.getsignal(number) for number in _SIGNALS})
    stack = held.enter_context(LocalStack(state_dir, port=0, report=report))
    # A second Ctrl-C must not break off the saving of state.
    _on_exit(held, dict.fromkeys(_SIGNALS, signal.SIG_IGN))
    report(f"Ready after {stack.seconds_to_ready:.1f} s")
    return stack.url


def _on_exit(held: ExitStack, handlers: Mapping[signal.Signals, Any]) -> None:
    """Handle these signals so from the time when the stack of contexts unwinds to here."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            held.callback(signal.signal, number, handler)


def _lock(file: IO[str], notice: str, report: Report) -> None:
    """Lock a file for this command alone; the notice is reported if that has to wait. Ctrl-C ends the wait."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        report(notice)
        fcntl.flock(file, fcntl.LOCK_EX)


def _await_running(state_dir: Path) -> str | None:
    """The address of the folder's stack, waited for if a runner is starting or stopping it just now."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        url = running_stack(state_dir)
        if url is not None or not _is_locked(state_dir / LOCK_FILE) or time.monotonic() > deadline:
            return url
        time.sleep(0.2)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def running_stack(state_dir: Path) -> str | None:
    """The address of the local stack that serves this state folder, if one does."""
    try:
        written = json.loads((state_dir / RUNNER_FILE).read_text())
        url, pid = str(written["url"]), int(written["pid"])
        port = int(url.removeprefix(f"http://{HOST}:"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # A file that a crash left behind may name a port that now belongs to something else.
    return url if _alive(pid) and answers(port, "/health") else None


def account_of(state_dir: Path) -> Aws:
    """The emulated account of the stack that serves this state folder, as its root."""
    from infra.local.aws import Aws  # noqa: PLC0415 - loads botocore, which most commands do without

    lines = (state_dir / KEYS_FILE).read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    credentials = Credentials(values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"])
    return Aws(values["AWS_ENDPOINT_URL"], credentials)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, but is somebody else's
        return True
    return True
