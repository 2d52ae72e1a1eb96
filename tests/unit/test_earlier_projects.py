"""A project that an earlier release made runs on this one, as it is.

The fixtures are what `dualtrack new` of each release wrote. A test that fails here says that an upgrade of the package
would break projects: what was removed needs a reader, or an error that names its replacement.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.project.read import read_project

from tests.drivers.release_fixtures import FIXTURES, FOLDER, PROJECT

if TYPE_CHECKING:
    from pathlib import Path

PROJECTS = sorted(FIXTURES.glob(f"*/{PROJECT}"))


@pytest.fixture(params=PROJECTS, ids=lambda path: path.parent.name)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(request.param, tmp_path / "my-agents")


def test_there_is_one_of_this_release() -> None:
    assert FOLDER / PROJECT in PROJECTS


@pytest.mark.parametrize("stage", ["local", "staging", "prod"])
def test_it_is_read(project: Path, stage: str) -> None:
    read = read_project(project, stage, {})
    assert [spec["name"] for spec in read.specs] == ["weather"]
    assert [path.name for path in read.profiles] == ["assistant.json"]


def test_its_tests_pass(project: Path) -> None:
    """Whole chats with this release's steps, after the one word that this release asks for: its tool says that it only
    reads. Without the word `check` and the test say what to write."""
    tool = project / "tools" / "weather.py"
    if (old := tool.read_text()) != (new := old.replace("repeatable=True", "effect='reads'")):
        done = outcome_of_tests(project)
        assert done.returncode != 0
        assert "waits for approval of weather" in done.stdout
        assert "write effect='reads' in @tool" in done.stdout
        (note,) = read_project(project, "local", {}).notes
        assert "write effect='reads'" in note
        tool.write_text(new)
    done = outcome_of_tests(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def outcome_of_tests(project: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)


def test_a_field_that_nobody_knows_is_refused(project: Path) -> None:
    """So what a release removes is never silently without effect."""
    profile = project / "profiles" / "assistant.json"
    profile.write_text(json.dumps(json.loads(profile.read_text()) | {"tempo": 1}))
    with pytest.raises(ValueError, match=r"assistant\.json:\d+: tempo"):
        read_project(project, "local", {})
