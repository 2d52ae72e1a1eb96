"""`dualtrack new`: the files of a project, and what it refuses."""

from __future__ import annotations

import json
import tomllib
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from dualtrack import __version__
from dualtrack_stack.cli import new_command
from dualtrack_stack.cli.main import main
from dualtrack_stack.cli.new_command import project_files

if TYPE_CHECKING:
    from pathlib import Path

FILES_LIMIT = 10
"""DOORS 4."""


def made(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, ["new", name])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_project_has_few_files_and_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = made("cold-days", tmp_path, monkeypatch)
    assert "cd cold-days\n" in said
    written = {
        path.relative_to(tmp_path / "cold-days").as_posix(): path.read_text()
        for path in (tmp_path / "cold-days").rglob("*")
        if path.is_file()
    }
    assert written == project_files("cold-days", new_command._source())
    assert len(written) <= FILES_LIMIT
    assert {".gitignore", ".github/workflows/deploy.yml", "dualtrack.toml"} <= set(written)
    assert tomllib.loads(written["pyproject.toml"])["project"]["name"] == "cold-days"
    assert "my-agents" not in "".join(written.values())
    assert ".env" in written[".gitignore"].splitlines()


def test_it_can_be_made_here_and_not_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    assert "cd " not in made(".", here, monkeypatch)
    again = CliRunner().invoke(main, ["new", "."])
    assert again.exit_code == 2
    assert again.output == "Error: . is not empty: choose another name, or empty it first.\n"


@pytest.mark.parametrize(
    "name",
    ["Upper", "two words", "under_score", "-x", "x-", "x--y", "9lives", "ü", "x" * 61, "a/b.c", "dualtrack"],
)
def test_a_bad_name_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["new", "--", name])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith("Error: ")
    assert line.endswith(("such as my-agents.", "choose another name."))
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_its_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("mine")
    result = CliRunner().invoke(main, ["new", "notes"])
    assert result.exit_code == 2
    assert result.output == "Error: notes is a file: choose another name.\n"
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("told", "source"),
    [
        (None, None),
        ({"url": "file:///of%20mine/dualtrack-1.0.0-py3-none-any.whl", "archive_info": {}}, {"path": "/of mine/dualtrack-1.0.0-py3-none-any.whl"}),
        ({"url": "https://files.example/dualtrack.whl", "archive_info": {}}, {"url": "https://files.example/dualtrack.whl"}),
        ({"url": "file:///checkout", "dir_info": {"editable": True}}, {"path": "/checkout", "editable": True}),
        ({"url": "https://git.example/d", "vcs_info": {"vcs": "git", "commit_id": "1" * 40}}, {"git": "https://git.example/d", "rev": "1" * 40}),
    ],
    ids=["an index", "a wheel", "an address", "a checkout", "a repository"],
)  # fmt: skip
def test_it_depends_on_what_made_it(told: object, source: object, monkeypatch: pytest.MonkeyPatch) -> None:
    text = None if told is None else json.dumps(told)
    monkeypatch.setattr(
        new_command, "distribution", lambda _name: SimpleNamespace(read_text=lambda _file: text)
    )
    project = tomllib.loads(project_files("cold-days", new_command._source())["pyproject.toml"])
    assert project["dependency-groups"]["dev"][0] == f"dualtrack[local,deploy]>={__version__},<2"
    assert project["tool"]["uv"].get("sources", {}).get("dualtrack") == source
