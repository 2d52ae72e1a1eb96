"""The support desk of examples/, by its README: its tests, a chat on a local stack with its table, its rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.project.function import StagePlace, own_statements
from dualtrack_stack.project.read import read_project

from tests.drivers.documents import ROOT
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from pathlib import Path

DESK = ROOT / "examples" / "support-desk"
PORT = "8000"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with an environment of its own."""
    folder = tmp_path_factory.mktemp("desk") / "support-desk"
    shutil.copytree(
        DESK, folder, ignore=shutil.ignore_patterns(".venv", ".dualtrack", ".build", "__pycache__")
    )
    declared = folder / "pyproject.toml"
    declared.write_text(declared.read_text().replace('"../.."', f'"{ROOT}"'))
    run(folder, "uv lock --quiet && uv sync --quiet --locked")
    return folder


def run(folder: Path, script: str) -> str:
    """What a script prints; it must succeed."""
    hidden = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "UV_NO_SYNC", "PYTHONPATH")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden
        and (name == "DUALTRACK_IDLE_SECONDS" or not name.startswith(("PYTEST", "DUALTRACK")))
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def blocks() -> list[str]:
    """The README's commands: its tests, those of the local stack, those of an account."""
    return re.findall(r"^```sh\n(.*?)^```$", (DESK / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_its_lock_is_that_of_its_declaration() -> None:
    run(DESK, "uv lock --check --quiet")


def test_its_tests_pass(desk: Path) -> None:
    assert " passed" in run(desk, blocks()[0])


def test_a_customers_tickets_on_the_local_stack(desk: Path) -> None:
    port = str(free_port())
    script = blocks()[1].replace("dualtrack dev", f"dualtrack dev --port {port}").replace(PORT, port)
    printed = run(desk, f"trap 'kill %1; wait' EXIT\n{script}")
    assert "The replacement has not arrived" in printed
    assert "The note is with ticket 1004." in printed
    assert "week,closed,open" in printed
    assert "is ordered for ticket" not in printed  # before somebody has approved it


def test_its_function_may_use_its_table_and_its_secret_alone() -> None:
    own = read_project(DESK, "staging", {}).own("staging")
    allowed = own_statements(own, StagePlace("staging", "eu-west-1", "111122223333"))
    assert [(statement["Action"], statement["Resource"]) for statement in allowed] == [
        (
            ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
            ["arn:aws:dynamodb:eu-west-1:111122223333:table/support-desk-staging"],
        ),
        (
            ["ssm:GetParameter"],
            ["arn:aws:ssm:eu-west-1:111122223333:parameter/dualtrack-staging/tools/CARRIER_KEY"],
        ),
    ]
