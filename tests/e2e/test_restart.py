"""A stack stopped or killed in the middle of a chat, and started again on the same state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.local.tokens import SignedInUser

from tests.clients.stack_client import PATIENCE, Person, Root, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.script import Script


def _processes(state_dir: Path) -> list[str]:
    """The processes of a state folder: functions by their path, others by their parent."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(state_dir) in line]


def _ended_in_the_middle(
    state_dir: Path, environment: dict[str, str], script: Script, end: signal.Signals
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """An answered chat, one that waits for a decision, and one whose model call was running when the stack ended."""
    runner = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dualtrack_stack.cli.main",
            "dev",
            "--port",
            "0",
            "--state-dir",
            str(state_dir),
        ],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with runner:
        try:
            assert runner.stdout is not None
            url = runner.stdout.readline().removeprefix("ready ").strip()
            token = httpx.get(f"{url}/dev/token", params={"user": "ann"}, timeout=PATIENCE).json()
            ann = Person(url, SignedInUser(token["token"], token["user_id"]))
            script.says("Kept over the night.")
            kept = ann.ask(script.question())
            script.asks(("count_files", {}))
            waiting = ann.wait_for_tool(script.question(), "count_files")
            script.says("Never said.", delay_first=60)
            broken = ann.start(script.question())
            ann.until(broken["chat_id"], lambda event: event.kind == "turn")
            ann.http.close()
        finally:
            runner.send_signal(end)
    wait_for(lambda: not _processes(state_dir))
    return kept, waiting, broken


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_chat_running_when_the_stack_ends_fails_and_everything_else_is_kept(
    environment: dict[str, str], script: Script, tmp_path: Path, end: signal.Signals
) -> None:
    kept, waiting, broken = _ended_in_the_middle(tmp_path, environment, script, end)
    with LocalStack(tmp_path, environment=environment) as stack:
        ann = Person(stack.url, stack.token("ann"))
        assert ann.chat(kept["chat_id"]) == kept
        events = ann.events(broken["chat_id"])
        assert (events[-1].kind, events[-1].data["code"]) == ("error", "internal")
        assert ann.chat(broken["chat_id"])["credits_used"] == 0
        credits_ = ann.credits()
        assert (credits_["available"], credits_["held"]) == (40, 5)
        (listed,) = ann.get("/v1/pauses")["pauses"]
        script.says("There are 42 files.")
        decision = {"decisions": [{"id": listed["calls"][0]["id"], "result": "42"}]}
        decided = ann.http.post(f"/v1/chats/{waiting['chat_id']}/decisions", json=decision)
        assert (decided.status_code, decided.json()["status"]) == (200, "running")
        events = ann.events(waiting["chat_id"])
        assert [event.id for event in events] == list(range(1, len(events) + 1))
        assert ann.chat(waiting["chat_id"])["response"] == "There are 42 files."
        script.says("Well again.")
        following = ann.ask(script.question(), broken["conversation_id"])
        assert (following["message_id"], following["response"]) == ("q2", "Well again.")
        assert Root(stack, tmp_path).execution_status(broken["chat_id"]) == "FAILED"
        ann.http.close()
