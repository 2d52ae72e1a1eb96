"""The clients of examples/clients with the stack, over connections that break within an event; the recipes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.node import node

from tests.clients.stack_client import PATIENCE, wait_for
from tests.servers.cutting_proxy import cutting
from tests.servers.webhook_receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
ANSWER = "Sign each request, “as they say”, with OAuth 1.0a."


def _command(name: str) -> list[str]:
    if name.endswith(".py"):
        return [sys.executable, str(CLIENTS / name)]
    if name.endswith(".mts"):
        return [node(), str(CLIENTS / name)]
    if not (shutil.which("curl") and shutil.which("awk")):
        pytest.skip("curl or awk is not installed")
    return ["sh", str(CLIENTS / name)]


def _ask(name: str, url: str, question: str, token: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DUALTRACK_URL": url, "NO_PROXY": "*"}
    if token:
        environment["DUALTRACK_TOKEN"] = token
    return subprocess.run(
        [*_command(name), question],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("name", ["stream_chat.py", "stream-chat.mts", "stream-chat.sh"])
def test_a_client_prints_the_whole_answer_over_breaking_connections(
    root: Root, script: Script, name: str
) -> None:
    script.asks(("kit_echo", {"text": "a"}), text="Let me look.")
    script.says(ANSWER, chunk=9)
    with cutting(root.stack.url, 250, 700) as proxy:
        run = _ask(name, proxy.url, script.question())
    assert run.returncode == 0, run
    assert len(proxy.resumed) >= 3
    assert proxy.resumed[0] == ""
    later = [int(last_id or 0) for last_id in proxy.resumed]
    assert later == sorted(later)
    assert later[2] > 0
    if name.endswith(".sh"):
        assert run.stdout.count("\nevent: done\n") == 1
        assert ANSWER in run.stdout
    else:
        assert run.stdout == f"{ANSWER}\n"
        assert run.stderr.count("[kit_echo") == 1, "no event was received twice"


@pytest.mark.parametrize("name", ["stream_chat.py", "stream-chat.mts", "stream-chat.sh"])
def test_a_client_prints_what_is_wrong(root: Root, name: str) -> None:
    run = _ask(name, root.stack.url, "Hello?", token="none")
    assert run.returncode != 0
    assert "unauthorized" in run.stdout + run.stderr


def test_the_guide_names_each_client() -> None:
    guide = (CLIENTS.parents[1] / "docs" / "api.md").read_text()
    named = {path.name for path in CLIENTS.iterdir()} - {"README.md"}
    assert all(f"examples/clients/{name}" in guide for name in named)


@pytest.mark.parametrize("name", ["own_tools.py", "own-tools.mts"])
def test_a_client_runs_its_own_tool(root: Root, script: Script, tmp_path: Path, name: str) -> None:
    """The second call, of a folder that is not there, is an error for the model; neither costs credits."""
    for number in range(3):
        (tmp_path / f"{number}.txt").touch()
    nowhere = str(tmp_path / "nowhere")
    script.asks(("count_files", {"folder": str(tmp_path)}), ("count_files", {"folder": nowhere}))
    script.says("There are three.")
    run = _ask(name, root.stack.url, script.question())
    assert (run.returncode, run.stdout) == (0, "There are three.\n"), run
    results = [
        block for block in script.requests()[-1]["messages"][-1]["content"] if block["type"] == "tool_result"
    ]
    assert "3 files" in str(results[0])
    assert (results[1]["is_error"], nowhere in str(results[1])) == (True, True)


def test_a_digest_comes_from_the_stack_to_the_room_and_the_users_other_chats_do_not(
    root: Root, ann: Person, script: Script, tmp_path: Path
) -> None:
    """The key's own scope keeps them apart: it may not read what it has not started."""
    key = ann.http.post("/v1/keys", json={"name": "digest", "scopes": ["chat"]}).json()["key"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hook = {"url": f"http://127.0.0.1:{port}", "events": ["chat.done"]}
    secret = ann.http.post("/v1/webhooks", json=hook).json()["secret"]
    told = tmp_path / "posted.txt"
    with receiving() as room, digesting(root, key, secret, port, room.url, tmp_path):
        script.says("My own secret.")
        ann.ask(script.question())
        script.says("Two releases.")
        bearer = {"Authorization": f"Bearer {key}"}
        chat = ann.http.post("/v1/chats?wait=25", json={"message": script.question()}, headers=bearer).json()
        ann.finish(chat["chat_id"])
        wait_for(lambda: root.invoke("Deliver", {}) and told.exists() and len(told.read_text().split()) == 2)
        assert [json.loads(one.body) for one in room.of("/ok")] == [{"text": "Two releases."}]


@contextlib.contextmanager
def digesting(root: Root, key: str, secret: str, port: int, room: str, folder: Path) -> Iterator[None]:
    environment = {
        **os.environ, "DUALTRACK_URL": root.stack.url, "DUALTRACK_API_KEY": key, "WEBHOOK_SECRET": secret,
        "PORT": str(port), "ROOM_URL": f"{room}/ok", "NO_PROXY": "*",
    }  # fmt: skip
    program = [sys.executable, str(CLIENTS.parent / "digest" / "digest.py")]
    with subprocess.Popen(
        program, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as receiver:
        try:
            assert receiver.stdout is not None
            assert receiver.stdout.readline().startswith("listening")
            yield
        finally:
            receiver.kill()


def test_a_report_is_written_with_its_costs(root: Root, script: Script, tmp_path: Path) -> None:
    """Started again, it asks nothing."""
    questions = tmp_path / "questions.txt"
    questions.write_text(f"{script.question('One?')}\n{script.question('Two?')}\n")
    for text in ("The first.", "The second."):
        script.says(text)
    environment = {**os.environ, "DUALTRACK_URL": root.stack.url, "NO_PROXY": "*"}
    program = [sys.executable, str(CLIENTS.parent / "nightly" / "report.py"), str(questions)]
    for _ in range(2):
        run = subprocess.run(
            program, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert run.returncode == 0, run
    written = questions.with_suffix(".md").read_text()
    assert written.index("The first.") < written.index("The second.")
    assert "2 of 2 asked: 10 credits, $" in written
    assert (len(script.requests()), script.left) == (2, 0)
