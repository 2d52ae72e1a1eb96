"""Which stack that runs a command may use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.started_with import differences, started_with

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ANTHROPIC_API_KEY"
VARIABLES = (KEY, "MCP_SERVERS")
NONE: dict[str, str] = {}


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (NONE, NONE, []),
        (NONE, {"PATH": "/bin"}, []),
        ({KEY: ""}, NONE, []),
        ({KEY: "sk-ant-1"}, {KEY: "sk-ant-1"}, []),
        ({KEY: "sk-ant-1"}, {KEY: "sk-ant-2"}, [f"another {KEY}"]),
        (NONE, {KEY: "sk-ant-1"}, [f"another {KEY}"]),
        ({KEY: "sk-ant-1"}, {"MCP_SERVERS": "[]"}, ["another MCP_SERVERS", f"another {KEY}"]),
    ],
)
def test_settings_are_compared(then: dict[str, str], now: dict[str, str], told: list[str]) -> None:
    theirs = started_with(VARIABLES, then)
    assert differences(theirs, VARIABLES, now) == told
    assert "sk-ant-1" not in str(theirs)


def test_of_a_stack_that_stays_only_what_is_set_counts() -> None:
    """What `dualtrack dev` has beyond this shell's settings is no surprise."""
    theirs = started_with(VARIABLES, {KEY: "sk-ant-1"})
    assert differences(theirs, VARIABLES, NONE, unset=False) == []
    assert differences(theirs, VARIABLES, {KEY: "sk-ant-2"}, unset=False) == [f"another {KEY}"]


def test_a_stack_that_says_nothing_is_of_another_version() -> None:
    assert "another version of dualtrack" in differences({}, (), {})


def test_another_project_has_another_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = started_with(VARIABLES, NONE)
    (tmp_path / "dualtrack.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert differences(theirs, VARIABLES, NONE) == ["another project"]


def test_changed_code_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what Python compiles, and not the commands themselves."""
    monkeypatch.setattr("dualtrack_stack.local.started_with.PACKAGE", tmp_path)
    for name in ("__pycache__", "cli", "local"):
        (tmp_path / name).mkdir()
    theirs = started_with((), NONE)
    (tmp_path / "__pycache__" / "roots.pyc").touch()
    (tmp_path / "cli" / "main.py").touch()
    assert differences(theirs, (), NONE) == []
    (tmp_path / "local" / "stack.py").touch()
    changed = started_with((), NONE)
    assert differences(theirs, (), NONE) == ["another version of dualtrack"]
    os.utime(tmp_path / "local" / "stack.py", ns=(1, 1))
    assert differences(changed, (), NONE) == ["another version of dualtrack"]
