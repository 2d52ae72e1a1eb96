"""The local stack as a process: what it prints, stores, refuses, and leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.clients.stack_client import PATIENCE
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")

START_SECONDS = 120.0
STOP_SECONDS = 30.0


@dataclass
class Runner:
    """A process ``dualtrack dev`` of a state folder."""

    state_dir: Path
    process: subprocess.Popen[str]

    def ready(self) -> str:
        """The address that it printed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready http://127.0.0.1:"), line
        return line.split()[1]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(STOP_SECONDS)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def left_behind(self) -> list[str]:
        """Command lines of living processes that belong to this state folder."""
        return [command for command in _commands(self.state_dir) if command]


def run(state_dir: Path, *options: str) -> Runner:
    settings = {
        key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dualtrack_stack.cli.main", "dev", "--state-dir", str(state_dir), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=settings,
        umask=0o022,
    )
    return Runner(state_dir, process)


def refused(state_dir: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dualtrack_stack.cli.main", "dev", "--state-dir", str(state_dir), *options],
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


def _commands(state_dir: Path) -> Iterator[str]:
    """Command lines that name the state folder in arguments or environment; every child does."""
    sign = str(state_dir).encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes()
                if sign in command or sign in (folder / "environ").read_bytes():
                    yield command.replace(b"\0", b" ").decode(errors="replace")


def until_gone(runner: Runner) -> list[str]:
    """The processes still there at the end of the patience."""
    deadline = time.monotonic() + STOP_SECONDS
    while (remaining := runner.left_behind()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return remaining


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Runner]:
    runner = run(tmp_path / "state", "--port", "0")
    yield runner
    if runner.process.poll() is None:
        runner.end()


def test_state_survives_a_restart_and_no_process_survives_the_end(running: Runner) -> None:
    url = running.ready()
    first = httpx.get(f"{url}/dev/token", params={"user": "ann"}).json()
    headers = {"Authorization": f"Bearer {first['token']}"}
    created = httpx.post(
        f"{url}/v1/conversations", json={"title": "Kept"}, headers=headers, timeout=PATIENCE
    ).json()
    known = json.loads((running.state_dir / "dev.json").read_text())
    assert known["url"] == url
    assert len(running.left_behind()) >= 6  # runner, emulator, front, model, documents, one function
    assert running.end() == 0
    assert running.left_behind() == []
    assert not (running.state_dir / "dev.json").exists()

    again = run(running.state_dir, "--port", "0")
    try:
        assert again.ready() == url  # the port is reused
        second = httpx.get(f"{url}/dev/token", params={"user": "ann"}).json()
        assert second["user_id"] == first["user_id"]
        headers = {"Authorization": f"Bearer {second['token']}"}
        listed = httpx.get(f"{url}/v1/conversations", headers=headers, timeout=PATIENCE).json()
        assert [c["conversation_id"] for c in listed["conversations"]] == [created["conversation_id"]]
    finally:
        assert again.end(signal.SIGINT) == 0
    assert again.left_behind() == []


def readable(folder: Path) -> list[str]:
    """Paths with any permission for others than the owner. The stack works meanwhile: what is gone is not readable."""
    found = []
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & 0o077:
                found.append(str(path))
    return found


def test_only_the_owner_can_read_what_it_stores(tmp_path: Path) -> None:
    """A folder of an earlier release is made private; files of children and functions are private too."""
    state_dir = tmp_path / "state"
    (state_dir / "logs").mkdir(parents=True)
    (state_dir / "logs" / "emulator.log").write_text("of an earlier run")
    (state_dir / "kept").write_text("of an earlier run")
    assert len(readable(state_dir)) == 4
    runner = run(state_dir, "--port", "0")
    try:
        url = runner.ready()
        token = httpx.get(f"{url}/dev/token", params={"user": "ann"}, timeout=PATIENCE).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        httpx.post(f"{url}/v1/conversations", json={"title": "Mine"}, headers=headers, timeout=PATIENCE)
        assert readable(state_dir) == []
    finally:
        runner.end()
    assert len(list(state_dir.rglob("*"))) > 20, "the emulator has saved its state"
    assert readable(state_dir) == []


def account(keys: Path) -> subprocess.CompletedProcess[str]:
    """The account's answer to a shell that has sourced the file of keys."""
    identity = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
    command = f'. "{keys}" && exec "{sys.executable}" -c "{identity}"'
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_the_file_of_keys_opens_the_account_for_one_run(running: Runner) -> None:
    running.ready()
    keys = running.state_dir / "aws.env"
    written = keys.read_text()
    asked = account(keys)
    assert asked.stdout == "arn:aws:iam::000000000000:root\n", asked.stderr
    assert running.end() == 0
    assert not keys.exists()

    again = run(running.state_dir, "--port", "0")
    try:
        again.ready()
        assert keys.read_text() != written
        old = running.state_dir.parent / "old.env"
        old.write_text(written)
        assert "403" in account(old).stderr or "Refused" in account(old).stderr
    finally:
        again.end()


def test_no_process_survives_a_killed_runner(running: Runner) -> None:
    running.ready()
    running.end(signal.SIGKILL)
    assert until_gone(running) == []


def test_a_second_runner_of_the_same_folder_is_refused(running: Runner) -> None:
    url = running.ready()
    code, message = refused(running.state_dir, "--port", "0")
    assert code == 1
    assert "already uses" in message
    assert httpx.get(f"{url}/health").status_code == 200  # the first is not affected


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, message = refused(tmp_path / "state", "--port", str(port))
    assert code == 1
    assert f"Port {port} is taken" in message
    assert "--port" in message


def test_a_runner_terminated_during_its_start_leaves_nothing(tmp_path: Path) -> None:
    runner = run(tmp_path / "state", "--port", "0")
    deadline = time.monotonic() + START_SECONDS
    while not (runner.state_dir / "logs" / "emulator.log").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert runner.end() == 0
    assert until_gone(runner) == []


def command(state_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command; its output ends with the command, even if it leaves processes running."""
    settings = {
        key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))
    }
    return subprocess.run(
        [sys.executable, "-m", "dualtrack_stack.cli.main", *arguments, "--state-dir", str(state_dir)],
        capture_output=True,
        text=True,
        env=settings,
        timeout=START_SECONDS,
        check=False,
        cwd=state_dir.parent,
    )


@pytest.mark.skipif(not LONG, reason="starts stacks of its own: DUALTRACK_LONG=1")
def test_commands_share_a_stack_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first question to later commands: one stack, one user, who starts with 1,000 credits. Other settings,
    `dev` and `stop` end it."""
    state_dir = tmp_path / "state"
    monkeypatch.setenv("DUALTRACK_IDLE_SECONDS", "600")
    asked = command(state_dir, "chat", "How do I set up OAuth for Twitter ads?")
    assert (asked.returncode, "1,035 left · $" in asked.stdout) == (0, True), asked.stderr
    further = command(state_dir, "chat", "--last", "--json", "Show me the full code from earlier")
    chat = json.loads(further.stdout)
    assert (chat["message_id"], chat["status"], bool(chat["summary"])) == ("q2", "done", True)
    listed = json.loads(command(state_dir, "conversations", "--json").stdout)["conversations"]
    assert [conversation["conversation_id"] for conversation in listed] == [chat["conversation_id"]]
    shown = json.loads(command(state_dir, "show", "q1-r-sum", "--json").stdout)
    assert shown["ref"] == "q1-r", "the first chat's summaries were written after its command had ended"
    spent = json.loads(command(state_dir, "credits", "show", "--json").stdout)
    assert (spent["available"], spent["pack"]["remaining"]) == (chat["credits_remaining"], 1000)

    first = json.loads((state_dir / "dev.json").read_text())["pid"]
    assert asked.stderr.count("; stays 10 unused minutes") == 1
    assert "Starting" not in further.stderr, "the second command found the stack of the first"

    monkeypatch.setenv("DUALTRACK_MODEL", "claude-sonnet-5")
    other = command(state_dir, "tools")
    assert "has another DUALTRACK_MODEL: another starts in its place" in other.stderr
    assert json.loads((state_dir / "dev.json").read_text())["pid"] != first
    stopped = command(state_dir, "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "The local stack has ended.\n")
    assert list(_commands(state_dir)) == []
    monkeypatch.delenv("DUALTRACK_MODEL")
    command(state_dir, "tools")

    runner = run(state_dir, "--port", "0")  # in place of what the last command left running
    try:
        url = runner.ready()
        refused = command(state_dir, "stop")
        assert (refused.returncode, "`dualtrack dev` runs this stack" in refused.stderr) == (4, True)
        own = httpx.get(f"{url}/dev/token").json()
        name = httpx.get(f"{url}/dev/status").json()["user"]
        assert own["user_id"] == httpx.get(f"{url}/dev/token", params={"user": name}).json()["user_id"]
        headers = {"Authorization": f"Bearer {own['token']}"}
        ledger = httpx.get(f"{url}/v1/credits/ledger", headers=headers, timeout=PATIENCE).json()["entries"]
        grants = [entry for entry in ledger if entry["kind"] == "grant"]
        assert [grant["amount"] for grant in grants] == [1000], (
            "a second start with the same state grants nothing"
        )
    finally:
        assert runner.end() == 0
    assert until_gone(runner) == []
