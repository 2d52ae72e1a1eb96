"""The tables of MCP servers: what a stage has of them, what the local stack starts, and what is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.project.file import parse_file
from dualtrack_stack.project.read import read_project
from dualtrack_stack.settings import BadSettings, configured

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
[settings]
MCP_SERVERS = [{ name = "docs", url = "https://docs.example/mcp" }]

[mcp.wiki]
url = "https://wiki.example/mcp"
read_only = true

[mcp.time]
command = ["uvx", "mcp-server-time"]

[mcp.files]
command = ["npx", "-y", "@scope/files@1.2.3"]
tool_prefix = "fs"

[stage.prod.mcp.time]
url = "https://time.example/mcp"
"""


def test_a_stage_has_its_servers_by_address_and_the_laptop_those_by_command() -> None:
    file = parse_file(FILE)
    named = {}
    for stage, written in file.stages.items():
        servers = json.loads(configured(file, stage, {}).checked().mcp_servers)
        named[stage] = ([one["name"] for one in servers], [one.name for one in written.stdio])
    assert named == {
        "local": (["docs", "wiki"], ["time", "files"]),
        "staging": (["docs", "wiki"], ["time", "files"]),
        "prod": (["docs", "wiki", "time"], ["files"]),
    }
    assert file.stages["local"].sources["MCP_SERVERS"] == "dualtrack.toml:3"
    assert file.servers == {"wiki", "time", "files"}


def test_one_that_is_not_pinned_is_named() -> None:
    time, files = parse_file(FILE).stages["local"].stdio
    assert "newest: write the one that you have tried (mcp-server-time==1.2.3)" in time.note()
    assert files.note() == ""


@pytest.mark.parametrize(
    "command", ['["python", "server.py"]', '["uvx", "./own"]', '["uvx", "--from", "git+https://x", "own"]']
)
def test_what_is_not_fetched_by_its_name_needs_no_version(command: str) -> None:
    (own,) = parse_file(f"[mcp.own]\ncommand = {command}\n").stages["local"].stdio
    assert own.note() == ""


def test_prefixes_are_told_apart_over_both_kinds() -> None:
    file = parse_file('[mcp.git]\nurl = "https://x.example"\n[mcp.git-hub]\ncommand = ["x"]\n')
    with pytest.raises(BadSettings, match="overlap"):
        configured(file, "local", {})


@pytest.mark.parametrize("name", ["time", "wiki", "nowhere?", "*"])
def test_a_profile_names_what_some_stage_has_or_what_may_be_missing(name: str, tmp_path: Path) -> None:
    profile = {"name": "desk", "description": "d", "system": ["Be brief."], "tools": [], "mcp": [name]}
    limits = {"max_turns": 3, "max_tokens": 500, "result_limit": 1_000}
    (tmp_path / "dualtrack.toml").write_text(FILE)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "desk.json").write_text(json.dumps(profile | limits))
    project = read_project(tmp_path, "staging", {})
    assert any("on AWS put them behind HTTP" in note for note in project.notes)
