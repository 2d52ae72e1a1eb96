"""The local stack that the commands of one state folder share.

The first command that needs it starts it in the background (`dualtrack_stack.local.runner`). Each user of it is a guest
with a shared lock on ``guests``; the stack stays for some minutes after the last use. One that was started with other
settings, of another version or for another project, is not used: it ends first.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from dualtrack.settings import of_commands
from dualtrack_stack.local.credentials import Credentials
from dualtrack_stack.local.private import make_private
from dualtrack_stack.local.runner import KEEPER_FILE, end_keeper, is_locked
from dualtrack_stack.local.saved import WatchedFolders, look
from dualtrack_stack.local.stack import (
    GUESTS_FILE,
    HOST,
    KEYS_FILE,
    LOCK_FILE,
    RUNNER_FILE,
    CannotStart,
    answers,
)
from dualtrack_stack.local.started_with import differences
from dualtrack_stack.roots import own_python, project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack_stack.local.aws import Aws

    Report = Callable[[str], None]


class CannotStop(RuntimeError):
    """The stack is not a command's; the message says whose."""


_START_SECONDS: Final = 120.0
_SAVED_SECONDS: Final = 20.0


@contextmanager
def shared_stack(state_dir: Path, report: Report) -> Iterator[str]:
    """The address of the folder's stack, which runs at least until the end of the block; if none runs, one is started
    in the background.

    ``report`` is called with each slow step. Raises `CannotStart` with a message for the user.
    """
    make_private(state_dir)
    for name in (GUESTS_FILE, "starting"):
        (state_dir / name).touch(mode=0o600)
    with (state_dir / GUESTS_FILE).open("a") as guests:
        with (state_dir / "starting").open("a") as starting:
            waiting = "Waiting for the local stack that another command is starting"
            _lock(starting, fcntl.LOCK_EX, waiting, report)
            if _await_running(state_dir):
                _end_another(state_dir, report)
            # a guest only now: whoever waits here for the end of another stack does not keep it
            _lock(guests, fcntl.LOCK_SH, "Waiting for the stack of an earlier command to end", report)
            url = _await_running(state_dir) or _start(state_dir, report)
        _await_saved(state_dir, report)
        yield url


def _end_another(state_dir: Path, report: Report) -> None:
    """End the folder's stack if this command would start another one. What somebody runs with `dualtrack dev` stays,
    and answers."""
    try:
        written = json.loads((state_dir / RUNNER_FILE).read_text())
    except OSError:  # it has just ended
        return
    is_kept = is_locked(state_dir / KEEPER_FILE)
    theirs, variables = written.get("started_with", {}), written.get("variables", ())
    others = ", ".join(differences(theirs, variables, os.environ, unset=is_kept))
    if others and is_kept:
        report(f"The local stack has {others}: another starts in its place")
        end_keeper(state_dir, report)
    elif others:
        report(f"`dualtrack dev` answers; it has {others}")


def _start(state_dir: Path, report: Report) -> str:
    report(f"Starting the local stack; its data stays in {state_dir}")
    log = state_dir / "logs" / "keeper.log"
    make_private(log.parent)
    log.touch(mode=0o600)
    with log.open("ab") as errors:
        starter = subprocess.Popen(
            own_python("dualtrack_stack.local.runner", str(state_dir.resolve())),
            cwd=project_root(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # a Ctrl-C of the terminal is meant for the chat
        )
    assert starter.stdout is not None
    with starter.stdout as messages:
        keeper = json.loads(messages.readline() or "{}").get("pid")
        starter.wait()
        try:
            return _await_start(messages, report, log)
        except BaseException:
            if keeper:
                with suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGTERM)
                messages.read()  # until it has ended
            raise


def _await_start(messages: IO[str], report: Report, log: Path) -> str:
    for line in messages:
        message = json.loads(line)
        if "url" in message:
            report(f"Ready after {message['seconds']:.1f} s{_stays()}")
            return str(message["url"])
        if "problem" in message:
            raise CannotStart(message["problem"])
        report(message["step"])
    raise CannotStart(f"It ended without a message; see {log}.")


def _stays() -> str:
    minutes = of_commands().dualtrack_idle_seconds / 60
    return f"; stays {minutes:g} unused minutes (`uv run dualtrack stop` ends it)" if minutes else ""


def stop_stack(state_dir: Path, report: Report) -> bool:
    """End the stack that commands have left running, and wait for its end; whether there was one. Raises `CannotStop`
    for one that `dualtrack dev` runs."""
    if end_keeper(state_dir, report):
        return True
    if running_stack(state_dir):
        raise CannotStop("`dualtrack dev` runs this stack: end it there, with Ctrl-C.")
    return False


def _lock(file: IO[str], how: int, notice: str, report: Report) -> None:
    """Lock a file; the notice is reported if that has to wait. Ctrl-C ends the wait."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        report(notice)
        fcntl.flock(file, how)


def _await_running(state_dir: Path) -> str | None:
    """The address of the folder's stack; waits for a runner that is starting or stopping it."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        url = running_stack(state_dir)
        if url is not None or not is_locked(state_dir / LOCK_FILE) or time.monotonic() > deadline:
            return url
        time.sleep(0.2)


def _await_saved(state_dir: Path, report: Report) -> None:
    """Wait until the stack has taken up what is saved in its project now, and say what is wrong with it."""
    deadline = time.monotonic() + _SAVED_SECONDS
    while time.monotonic() < deadline:
        try:
            written = json.loads((state_dir / RUNNER_FILE).read_text())
        except OSError:  # it is ending: the command will see
            return
        watched = WatchedFolders(Path(written["root"]), Path(written["profiles"]))
        if written["seen"] == look(watched).digest():
            if written["problem"]:
                report(f"{written['problem']}\nThe last good version answers.")
            return
        time.sleep(0.05)
    report("What is saved has not been taken up yet; the last version answers.")


def running_stack(state_dir: Path) -> str | None:
    """The address of the local stack of this state folder, if one runs."""
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
    from dualtrack_stack.local.aws import Aws  # noqa: PLC0415 - loads botocore, which most commands do without

    lines = (state_dir / KEYS_FILE).read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    credentials = Credentials(values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"])
    return Aws(values["AWS_ENDPOINT_URL"], credentials)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, as another user
        return True
    return True
