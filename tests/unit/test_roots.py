"""Which folder is the project: that of the nearest dualtrack.toml, else the checkout."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack import roots
from dualtrack_stack.cli.target import default_state_dir
from dualtrack_stack.roots import LIBRARY, OURS, PACKAGE, PROJECT_FILE, build_folder, project_root

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / PROJECT_FILE).touch()
    (tmp_path / "tools" / "json").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("below", [".", "tools", "tools/json"])
def test_a_project_is_found_from_any_folder_in_it(
    project: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / below)
    assert project_root() == project
    assert default_state_dir() == project / ".dualtrack"
    assert build_folder() == project / ".build"


def test_the_nearest_project_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "tools" / PROJECT_FILE).touch()
    monkeypatch.chdir(project / "tools" / "json")
    assert project_root() == project / "tools"


def test_a_folder_of_that_name_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / PROJECT_FILE).mkdir()
    monkeypatch.chdir(tmp_path)
    assert project_root() == ROOT


def test_the_checkout_is_a_project_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "docs")
    assert project_root() == ROOT == OURS
    monkeypatch.chdir(tmp_path)
    assert project_root() == ROOT
    assert PACKAGE == ROOT / "infra" / "dualtrack_stack"
    assert LIBRARY == ROOT / "layers" / "core" / "python" / "dualtrack"


def test_without_a_checkout_the_current_folder_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "_IN_CHECKOUT", False)
    monkeypatch.chdir(tmp_path)
    assert project_root() == tmp_path


def test_our_processes_find_no_module_of_the_project(project: Path) -> None:
    (project / "json.py").write_text("raise SystemExit('the project was imported')\n")
    command = roots.own_python("json.tool", "--help")
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
