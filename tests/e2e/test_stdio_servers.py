"""MCP servers by command on the local stack: found by its agents, called by its functions, ended with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from dualtrack_stack.local.stack import LocalStack

from tests.clients.script import Script
from tests.clients.stack_client import Person, Root
from tests.drivers.documents import ROOT
from tests.servers.provider import model_settings, serve_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = f"""
[mcp.sums]
command = ["{sys.executable}", "servers/stdio_mcp.py"]
env = {{ MODE = "plain" }}
secrets = ["A_TOKEN"]
tools = ["add", "surroundings"]

[mcp.many]
command = ["{sys.executable}", "servers/stdio_mcp.py", "has many tools"]

[mcp.gone]
command = ["no-such-program"]
"""
PROFILE = {
    "name": "desk",
    "description": "Adds.",
    "system": ["You add."],
    "tools": [],
    "mcp": ["sums", "many", "gone", "elsewhere?"],
    "max_turns": 5,
    "max_tokens": 2_000,
    "result_limit": 20_000,
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Root, Script, list[str]]]:
    """A stack of a project with two servers by command, of which one does not begin."""
    for name, text in {"dualtrack.toml": FILE, "profiles/desk.json": json.dumps(PROFILE)}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "servers").mkdir()
    shutil.copy(ROOT / "tests" / "servers" / "stdio_mcp.py", tmp_path / "servers")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    with serve_model() as model:
        environment = {**model_settings(model), "A_TOKEN": "sk_1", "ANOTHER_KEY": "sk_2"}
        with LocalStack(tmp_path / ".dualtrack", environment=environment, report=said.append) as stack:
            yield Root(stack, tmp_path / ".dualtrack"), Script(model, "stdio"), said


def test_an_agent_calls_a_server_that_its_project_starts(told: tuple[Root, Script, list[str]]) -> None:
    root, script, said = told
    ann = Person(root.stack.url, root.stack.token("ann"))
    script.asks(("sums_add", {"numbers": [19, 23]}), ("sums_surroundings", {}))
    script.says("It is 42.")
    body = {"message": script.question(), "profile": "desk"}
    chat = ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])
    assert [(call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [
        ("sums_add", False),
        ("sums_surroundings", False),
    ]
    assert ann.record(chat["conversation_id"], "q1-t1")["result"] == "42"
    around = json.loads(ann.record(chat["conversation_id"], "q1-t2")["result"])
    ann.close()
    assert around["token"] == "sk_1"
    assert set(around["names"]) <= {"A_TOKEN", "MODE", "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "SSL_CERT_FILE"}  # fmt: skip
    assert any("gone: there is no program no-such-program on this machine" in line for line in said)
    (server,) = json.loads(_environment(root, "McpFunction")["MCP_SERVERS"])[:1]
    assert httpx.post(server["url"], json={"id": 1, "method": "tools/list"}).status_code == 403
    root.stack.stop()
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    assert str(around["pid"]) not in listed.stdout.split()


def test_of_three_hundred_tools_the_model_finds_the_one_it_needs(
    told: tuple[Root, Script, list[str]],
) -> None:
    root, script, _ = told
    ann = Person(root.stack.url, root.stack.token("ann"))
    script.asks(("find_tools", {"query": "archive thing17"}))
    script.asks(
        ("use_tool", {"tool": "many_add", "input": {"numbers": [1, 2]}}), ("use_tool", {"tool": "many_x"})
    )
    script.says("It is archived.")
    body = {"message": script.question(), "profile": "desk"}
    chat = ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])
    assert [(call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [
        ("find_tools", False),
        ("many_add", False),
        ("many_x", True),
    ]
    found = ann.record(chat["conversation_id"], "q1-t1")["result"]
    assert "\n\nmany_archive_thing17: Can archive a thing17." in found
    assert ann.record(chat["conversation_id"], "q1-t2")["result"] == "3"
    assert chat["credits_used"] == 5 + 2, "a search is free, a call has its own price"
    ann.close()
    first, second, _ = script.requests()
    names = [tool["name"] for tool in first["tools"]]
    assert names == ["find_tools", "use_tool", "sums_add", "sums_surroundings"]
    assert len(json.dumps(first["tools"])) < 5_000
    assert second["tools"] == first["tools"]


def _environment(root: Root, function: str) -> dict[str, str]:
    configured = root.client("lambda").get_function_configuration(FunctionName=root.stack.outputs[function])
    return configured["Environment"]["Variables"]
