"""The last line of a run says what it has not run, and what does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.long_forms import not_run

BROWSER = "('conftest.py', 35, 'Skipped: Chromium is not installed: bash .ci/install_chromium.sh')"
CLIENT = "('clients.py', 70, 'Skipped: openai is not installed: bash .ci/install_openai_clients.sh')"
NEO4J = "('test_bolt.py', 78, 'Skipped: no Neo4j here: sh .ci/install_neo4j.sh')"
OTHER = "('test_sandbox.py', 141, 'Skipped: this platform refuses landlock: why')"
LONG = "('test_a.py', 1, 'Skipped: starts stacks of its own: DUALTRACK_LONG=1')"


def test_it_counts_by_tool_and_names_one_command() -> None:
    line = not_run([BROWSER, CLIENT, BROWSER, NEO4J, OTHER, LONG], 29)
    assert line == (
        "Not run: 5 tests that were skipped (for want of Chromium 2, openai 1, Neo4j 1), 29 files of tests that take "
        "long. This installs what is missing and runs them: bash .ci/run"
    )
    assert not_run([OTHER], 0).startswith("Not run: 1 tests that were skipped. ")
    assert not_run([LONG], 0) == not_run([], 0) == ""


SKIPS = """import pytest

def test_a():
    pytest.skip("Chromium is not installed: bash .ci/install_chromium.sh")
"""


def test_a_runs_last_line_says_so(tmp_path: Path) -> None:
    """Behind pytest's own, with workers and without."""
    (tmp_path / "test_skips.py").write_text(SKIPS)
    root = Path(__file__).parents[2]
    for workers in ("0", "1"):
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "tests.conftest", tmp_path]
        command += ["--rootdir", tmp_path, "-p", "no:cacheprovider", "-p", "no:randomly"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.rstrip().splitlines()[-1] == not_run([BROWSER], 0), done.stdout[-2_000:]
