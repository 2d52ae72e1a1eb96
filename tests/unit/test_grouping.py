"""The suite's distribution over workers (tests/grouping.py), checked by a run with two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.grouping import APART, TOGETHER, group_of
from tests.long_forms import IN_CI

ROOT = Path(__file__).parents[2]
WRITES_ITS_WORKER = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range({tests}))
def test_it(number):
    with (pathlib.Path(os.environ["RAN"]) / os.environ["PYTEST_XDIST_WORKER"]).open("a") as ran:
        print("{path}", file=ran)
"""
FILES = {
    "tests/e2e/test_events.py": 20,
    "tests/e2e/test_memory.py": 20,
    "tests/e2e/test_faults.py": 1,
    "tests/e2e/page/test_page.py": 10,
    "tests/plugins/one/test_page.py": 10,
    "tests/plugins/one/test_stack.py": 10,
    "tests/infra/test_templates.py": 10,
    "tests/infra/test_layers.py": 10,
    "tests/unit/test_text.py": 60,
    "tests/unit/tools/graph/test_bolt.py": 10,
}


def _ran(folder: Path, *plugin: str) -> dict[str, list[str]]:
    """The files of the tests that each worker ran, in order."""
    for path, tests in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(WRITES_ITS_WORKER.format(tests=tests, path=path))
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "ran").mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", *plugin]
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    environment = {**os.environ, **plugins, "PYTHONPATH": str(ROOT), "RAN": str(folder / "ran")}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    run = subprocess.run(
        [*command, "--import-mode", "importlib", "tests"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return {file.name: file.read_text().split() for file in (folder / "ran").iterdir()}


def test_a_groups_tests_all_run_on_one_worker_and_groups_run_before_the_rest(tmp_path: Path) -> None:
    ran = _ran(tmp_path, "-p", "tests.grouping")
    assert sum(map(len, ran.values())) == sum(FILES.values())
    workers = defaultdict(set)
    for worker, paths in ran.items():
        for path in paths:
            workers[group_of(path)].add(worker)
    assert workers.pop("tests/unit/test_text.py"), "the rest ran"
    assert {group: len(files) for group, files in workers.items()} == {
        "stack": 1,
        "page": 1,
        "synthesis": 1,
        "test_faults": 1,
        "tests/unit/tools/graph/test_bolt.py": 1,
    }
    for paths in ran.values():
        in_a_group = [path != "tests/unit/test_text.py" for path in paths]
        assert in_a_group == sorted(in_a_group, reverse=True), paths


def test_a_test_without_a_group_is_a_group_of_its_own() -> None:
    assert group_of("tests/unit/test_text.py::test_a[x@y]") == "tests/unit/test_text.py::test_a[x@y]"


def test_every_listed_file_exists() -> None:
    """A renamed file would share a worker with the big stack, start a server for each worker, or be a newcomer's."""
    assert {path.stem for path in (ROOT / "tests" / "e2e").glob("test_*.py")} >= APART
    assert all((ROOT / path).is_file() for path in TOGETHER | IN_CI)
