"""The layer of a project's tools: the project's dependencies by its own lock, beside what the library needs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack import layers
from dualtrack_stack.project import packaging
from dualtrack_stack.project.model import BadProject, Project

from tests.drivers.synthesised import built_layers

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = (
    '[project]\nname = "my-agents"\nversion = "0.1.0"\nrequires-python = ">=3.11"\ndependencies = [{}]\n'
)


def project(folder: Path, *dependencies: str, lock: bool = True, more: str = "") -> Project:
    """A project with a tool and a data file."""
    built_layers()  # skips without a package index
    written = ", ".join(f'"{name}"' for name in dependencies)
    (folder / "pyproject.toml").write_text(PROJECT.format(written) + more)
    tools = folder / "tools"
    (tools / "__pycache__").mkdir(parents=True, exist_ok=True)
    (tools / "weather.py").write_text("import json\n")
    (tools / "cities.csv").write_text("Ottawa\n")
    (tools / "__pycache__" / "weather.pyc").write_text("")
    if lock:
        subprocess.run(["uv", "lock", "--quiet"], cwd=folder, check=True, timeout=120)
    return Project(folder)


def names(layer: Path) -> set[str]:
    return {path.name.split("-")[0] for path in (layer / "python").glob("*.dist-info")}


def test_it_has_the_dependencies_and_what_the_library_needs_each_once(tmp_path: Path) -> None:
    layer = packaging.build_layer(project(tmp_path, "six"))
    base = names(layers.build(layers.ROLES["base"]))
    assert names(layer) == {*base, "six"}
    assert len([*(layer / "python").glob("*.dist-info")]) == len(base) + 1
    assert list((layer / "python").glob("__pycache__/six*.pyc"))
    assert packaging.build_layer(project(tmp_path, "six")) == layer


def test_the_projects_versions_win_over_ours(tmp_path: Path) -> None:
    """Those of its group for development too: with them the tools were tested."""
    more = '[dependency-groups]\ndev = ["aws-lambda-powertools==3.36.0"]\n'
    layer = packaging.build_layer(project(tmp_path, "jmespath==1.0.1", more=more))
    there = {path.name for path in (layer / "python").glob("*.dist-info")}
    assert {name for name in there if name.startswith(("jmespath", "aws_lambda"))} == {
        "jmespath-1.0.1.dist-info",
        "aws_lambda_powertools-3.36.0.dist-info",
    }


def test_without_dependencies_it_is_the_layer_of_every_function(tmp_path: Path) -> None:
    bare = project(tmp_path)
    base = layers.build(layers.ROLES["base"])
    assert packaging.build_layer(bare) == base
    assert not packaging.has_packages(Project(tmp_path))
    (tmp_path / "pyproject.toml").unlink()
    assert packaging.build_layer(Project(tmp_path)) == base


def test_a_group_for_development_and_dualtrack_are_left_out(tmp_path: Path) -> None:
    ours = tmp_path / "dualtrack"
    ours.mkdir()
    (ours / "pyproject.toml").write_text(
        '[project]\nname = "dualtrack"\nversion = "1"\ndependencies = ["iniconfig"]\n'
    )
    more = '[dependency-groups]\ndev = ["dualtrack", "six"]\n[tool.uv.sources]\ndualtrack = {path = "dualtrack"}\n'
    assert not packaging.has_packages(project(tmp_path, more=more))
    assert not packaging.has_packages(project(tmp_path, "dualtrack", more=more))


@pytest.mark.parametrize(
    ("dependency", "complaint"),
    [
        ("docopt==0.6.2", r"^pyproject.toml: docopt 0\.6\.2 has no wheel for Lambda \(Python 3\.13, Linux on arm64\)"),
        ("pywin32==312", r"^pyproject.toml: pywin32 312 has no wheel for Lambda"),
    ],
)  # fmt: skip
def test_a_package_without_a_wheel_is_refused_by_its_name(
    tmp_path: Path, dependency: str, complaint: str
) -> None:
    with pytest.raises(BadProject, match=complaint) as refused:
        packaging.build_layer(project(tmp_path, "six", dependency))
    assert "\n" not in str(refused.value)


def test_a_lock_that_is_missing_or_of_another_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadProject, match=r"^uv\.lock: there is none: run uv lock, and commit it$"):
        packaging.build_layer(project(tmp_path, "six", lock=False))
    project(tmp_path)
    with pytest.raises(BadProject, match=r"^uv\.lock: it is not that of pyproject\.toml: run uv lock"):
        packaging.build_layer(project(tmp_path, "six", lock=False))


def test_a_dependency_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    (library / "pyproject.toml").write_text('[project]\nname = "helpers"\nversion = "1"\n')
    source = '[tool.uv.sources]\nhelpers = {path = "lib"}\n'
    with pytest.raises(BadProject, match=r"^pyproject\.toml: \./lib is a folder, .* uv build --wheel \./lib"):
        packaging.build_layer(project(tmp_path, "helpers", more=source))


def test_a_tool_that_imports_what_only_this_machine_has_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path, "six")
    (tmp_path / "tools" / "weather.py").write_text("import six\n\nimport pytest\n")
    with pytest.raises(BadProject, match=r"^tools/weather\.py:3: pytest is not in what the function has"):
        packaging.build_layer(made)


def test_its_code_is_the_handler_and_the_tools_with_their_data(tmp_path: Path) -> None:
    made = project(tmp_path)
    code = packaging.build_function(made)
    inside = {path.relative_to(code).as_posix() for path in code.rglob("*") if path.is_file()}
    assert inside == {"handler.py", "tools/weather.py", "tools/cities.csv"}
    (tmp_path / "tools" / "cities.csv").write_text("Rome\n")
    assert packaging.build_function(made) != code


def test_what_is_too_large_is_refused_with_what_weighs_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "UNZIPPED_LIMIT", 1_000_000)
    with pytest.raises(
        BadProject, match=r"Lambda takes 1 MB: .*; aws_lambda_powertools is the largest with \d+ MB$"
    ):
        packaging.build_function(project(tmp_path))
