"""A tool of a project on the local stack: its secret, its variable, its file, and what its role may and may not do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.roots import LIBRARY

from tests.clients.script import Script
from tests.clients.stack_client import Person, Root, wait_for
from tests.servers.provider import model_settings, serve_model

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "sk_test_0123456789"
FILE = """
[tools]
allow = [{ actions = ["dynamodb:DescribeTable"], resources = ["arn:aws:dynamodb:{region}:{account}:table/tickets-{stage}"] }]
secrets = ["STRIPE_KEY", "NOT_SET"]
environment = { TICKETS = "tickets-{stage}" }
memory = 640
"""
TOOL = """
import json
import os
import subprocess
import sys
from pathlib import Path

import boto3
from dualtrack import ToolContext, tool

CITIES = (Path(__file__).parent / "cities.txt").read_text()


def described(table: str) -> str:
    try:
        boto3.client("dynamodb").describe_table(TableName=table)
    except Exception as error:
        return error.response["Error"]["Code"]
    return "described"


@tool(effect="reads")
def look(context: ToolContext) -> str:
    "Looks around."
    found = [described(os.environ[name]) for name in ("TICKETS", "HISTORY_TABLE")]
    return json.dumps([dict(context.settings), os.environ["STRIPE_KEY"], CITIES, found])


@tool
def eat(megabytes: int) -> str:
    "Takes memory."
    return str(len(b"x" * (megabytes << 20)))


@tool
def leave() -> str:
    "Leaves a process behind, which has left its group."
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    return str(subprocess.Popen(sleep, start_new_session=True).pid)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    profile = json.loads((LIBRARY / "profiles" / "graph.json").read_text()) | {
        "name": "desk",
        "tools": ["look", "eat", "leave"],
        "approval": {"allow": ["*"]},
    }
    for name, text in {
        "dualtrack.toml": FILE,
        "tools/desk.py": TOOL,
        "tools/cities.txt": "Ottawa",
        "profiles/desk.json": json.dumps(profile),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told(project: Path) -> Iterator[tuple[Root, Script, list[str]]]:
    """A stack of the project, its model, and what it said while it started."""
    said: list[str] = []
    with serve_model() as model:
        environment = {**model_settings(model), "STRIPE_KEY": SECRET}
        with LocalStack(project / ".dualtrack", environment=environment, report=said.append) as stack:
            yield Root(stack, project / ".dualtrack"), Script(model, "own"), said


def test_a_tool_has_what_its_project_gives_it_and_no_more(told: tuple[Root, Script, list[str]]) -> None:
    root, script, said = told
    root.client("dynamodb").create_table(
        TableName="tickets-local",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    ann = Person(root.stack.url, root.stack.token("ann"))
    script.asks(("look", {}))
    script.says("I looked.")
    body = {"message": script.question(), "profile": "desk"}
    chat = ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])
    assert [(call["tool"], call["is_error"]) for call in chat["tool_calls"]] == [("look", False)]
    record = ann.record(chat["conversation_id"], "q1-t1")
    ann.close()
    settings, key, cities, found = json.loads(record["result"])
    assert settings == {"TICKETS": "tickets-local", "STRIPE_KEY": SECRET}
    assert (key, cities, found) == (SECRET, "Ottawa", ["described", "AccessDeniedException"])
    configured = root.client("lambda").get_function_configuration(
        FunctionName=root.stack.outputs["OwnFunction"]
    )
    assert configured["MemorySize"] == 640
    assert SECRET not in json.dumps(configured, default=str)
    assert "The tools' secret NOT_SET is not set: give it in the environment" in said


def test_a_tool_has_its_functions_memory_and_leaves_nothing_behind(
    project: Path, told: tuple[Root, Script, list[str]]
) -> None:
    root, script, _ = told
    ann = Person(root.stack.url, root.stack.token("ann"))
    script.asks(("eat", {"megabytes": 2_000}), ("eat", {"megabytes": 50}), ("leave", {}))
    script.says("I am full.")
    body = {"message": script.question(), "profile": "desk"}
    chat = ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])
    assert [call["is_error"] for call in chat["tool_calls"]] == [True, False, False]
    left = int(ann.record(chat["conversation_id"], "q1-t3")["result"])
    assert Path(f"/proc/{left}").exists() or sys.platform != "linux"
    (project / "tools" / "desk.py").write_text(TOOL.replace("Looks around.", "Looks about."))
    root.stack.deploy(root.stack.read())
    ann.ask("Anything else?")
    wait_for(lambda: has_ended(left))
    ann.close()


def has_ended(pid: int) -> bool:
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip()[:1] in ("", "Z")
