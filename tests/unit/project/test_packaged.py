"""The library with a project's file beside its own tools: offered, listed, priced, named by profiles."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.assets import zip_library
from dualtrack_stack.project.model import Project, packaged
from dualtrack_stack.roots import OURS

if TYPE_CHECKING:
    from pathlib import Path

BOOK = {
    "module": "tools.rooms",
    "name": "book_room",
    "description": "Books a room.",
    "input_schema": {"type": "object", "properties": {}},
    "kind": "own",
    "price_class": "booking",
    "effect": "changes",
    "repeatable": False,
}
LIST = """
import json, sys
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
from dualtrack.api.tool_list import tools_json
from dualtrack.credits.plans import price_chat
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack.tools.registry import MODULES
agents = all_profiles()
listed = tools_json([replace(agents["assistant"], tools=("book_room", "retrieve_full_context"))], Catalogue(), "")
print(json.dumps({
    "prices": {tool["name"]: tool["price"] for tool in listed["tools"]},
    "module": MODULES["book_room"],
    "chat": price_chat(["booking", "other"]),
    "agents": list(agents),
    "loaded": [name for name in sys.modules if name.startswith("tools")],
}))
"""


def run(code: str, folder: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(folder / "python")],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = tmp_path / "desk.json"
    assistant = json.loads((OURS / "layers/core/python/dualtrack/profiles/assistant.json").read_text())
    path.write_text(json.dumps(assistant | {"name": "desk", "tools": ["book_room"]}))
    return Project(tmp_path, specs=(BOOK,), prices={"booking": 7, "other": 99}, profiles=(path,))


def test_a_projects_tools_are_offered_listed_and_priced(project: Project, tmp_path: Path) -> None:
    shutil.unpack_archive(_zipped(project, tmp_path), tmp_path / "layer")
    found = run(LIST, tmp_path / "layer")
    assert found["prices"] == {"book_room": 7, "retrieve_full_context": 2}
    assert found["module"] == "tools.rooms"
    assert found["chat"] == 5 + 7 + 2, "a class of ours keeps its price"
    assert "desk" in found["agents"]
    assert found["loaded"] == []


def _zipped(project: Project, folder: Path) -> Path:
    path = folder / "core.zip"
    path.write_bytes(zip_library(packaged(project)))
    return path


def test_a_project_with_nothing_changes_nothing_of_the_library(tmp_path: Path) -> None:
    assert packaged(Project(tmp_path)) == {}


def test_a_call_of_a_class_that_is_withdrawn_costs_what_other_calls_do() -> None:
    from dualtrack.credits.plans import price_calls

    assert price_calls(["booking", "other"]) == (2, 2)
