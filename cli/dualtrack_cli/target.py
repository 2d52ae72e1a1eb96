"""Which stack a command talks to, and as whom.

``--url`` names a stack. Without it the local stack of the state folder is used if it runs, else one is
started for the length of the command; what it stored stays in the state folder.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from dualtrack_cli.client import ApiClient, ClientError, Refused, Unreachable, is_loopback
from infra.local.private import make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Report = Callable[[str], None]

RUNNER_FILE: Final = "dev.json"
"""Written into the state folder by a running local stack: ``{"url", "pid"}``."""
LOCK_FILE: Final = "lock"
"""Locked by whoever runs the stack of the folder, from before its start until after its end."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_START_SECONDS: Final = 120.0


class NoToken(ClientError):  # noqa: N818 - a mistake of usage, named after what is missing
    """A stack that hands out no tokens needs one from its user."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says about the stack; ``env_token`` is the environment's DUALTRACK_TOKEN."""

    url: str | None
    token: str | None
    env_token: str | None
    state_dir: Path


@dataclass(frozen=True, slots=True)
class Target:
    """A stack that serves and an ID token for it.

    ``dev``: the token came from the stack itself, which hands out others too (local stacks only).
    ``mode``: ``offline`` or ``live``, empty for a stack that is not local.
    """

    url: str
    token: str
    dev: bool
    mode: str = ""

    def client(self) -> ApiClient:
        """A client with this identity."""
        return ApiClient(self.url, self.token)


@contextmanager
def open_target(wanted: Wanted, report: Report) -> Iterator[Target]:
    """The stack to talk to, for the length of the block. ``report`` is told what takes time.

    Raises `Unreachable` if a local one cannot start.
    """
    if wanted.url is not None:
        yield _identified(wanted.url.rstrip("/"), wanted.token or wanted.env_token)
        return
    with ExitStack() as held:
        make_private(wanted.state_dir)
        for name in ("guests", "starting"):
            (wanted.state_dir / name).touch(mode=0o600)
        guests = held.enter_context((wanted.state_dir / "guests").open("a"))
        fcntl.flock(guests, fcntl.LOCK_SH)
        with (wanted.state_dir / "starting").open("a") as starting:
            _lock(starting, "Waiting for the local stack that another command is starting", report)
            url = _await_running(wanted.state_dir)
            if url is None:
                url = _start(held, wanted.state_dir, report)
                # Runs first when the block ends, so the stack goes when its last guest has gone.
                held.callback(_lock, guests, "Another command still uses this stack: waiting for it", report)
        yield _identified(url, wanted.token)


def _start(held: ExitStack, state_dir: Path, report: Report) -> str:
    from infra.local.stack import LocalStack  # noqa: PLC0415 - heavy, and only needed here

    report(f"No local stack runs here: starting one; what it stores stays in {state_dir}")
    _on_exit(held, {number: signal.getsignal(number) for number in _SIGNALS})
    try:
        stack = held.enter_context(LocalStack(state_dir, port=0, report=report))
    except RuntimeError as error:  # CannotStart, DeployFailed, ChildDied: the last two load much to name
        raise Unreachable(f"The local stack cannot start. {error}") from error
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
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # A file that a crash left behind may name a port that now belongs to something else.
    if not is_loopback(url) or not _alive(pid):
        return None
    try:
        with ApiClient(url) as client:
            client.call("GET", "/health")
    except ClientError:
        return None
    return url


def dev_token(url: str, user: str, *, admin: bool = False) -> tuple[str, str]:
    """(ID token, user id) of a user of a local stack; the user is made if there is none of that name."""
    params = {"user": user, **({"admin": "1"} if admin else {})}
    with ApiClient(url) as client:
        answer = client.call("GET", "/dev/token", params=params)
    return str(answer["token"]), str(answer["user_id"])


def login_name() -> str:
    """Who sits at this machine, as a user name for the local stack."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name for this uid
        return "me"


def _identified(url: str, token: str | None) -> Target:
    if not is_loopback(url):
        if not token:
            raise NoToken(f"{url} needs an ID token: give --token or set DUALTRACK_TOKEN.")
        return Target(url, token, dev=False)
    mode = _mode(url)
    if token:
        return Target(url, token, dev=False, mode=mode)
    try:
        return Target(url, dev_token(url, login_name())[0], dev=True, mode=mode)
    except Refused as error:
        raise NoToken(f"{url} hands out no tokens: give --token or set DUALTRACK_TOKEN.") from error


def _mode(url: str) -> str:
    """``offline`` or ``live``; nothing for a stack that is not local, for instance behind a tunnel."""
    try:
        with ApiClient(url) as client:
            status: Any = client.call("GET", "/dev/status")
    except Refused:
        return ""
    return str(status["mode"]) if hasattr(status, "get") and status.get("mode") else ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, but is somebody else's
        return True
    return True
