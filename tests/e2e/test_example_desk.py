"""The support desk of examples/, by its README: its tests, a chat on a local stack with its table, its templates."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

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
        if name not in hidden and not name.startswith(("PYTEST", "DUALTRACK"))
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


def test_its_templates_have_its_permissions_alone(desk: Path) -> None:
    run(desk, "uv run --no-sync dualtrack aws synth --stage staging -o templates")
    template = json.loads((desk / "templates" / "Chat.template.json").read_text())
    assert statements(template, "support-desk-staging") == {
        ("OwnRole", ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"))
    }


def statements(template: dict[str, Any], resource: str) -> set[tuple[str, tuple[str, ...]]]:
    """The roles that may do something with a resource, and what."""
    found = set()
    for policy in template["Resources"].values():
        if policy["Type"] == "AWS::IAM::Policy":
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if resource in json.dumps(statement["Resource"]):
                    role = policy["Properties"]["Roles"][0]["Ref"]
                    found.add((re.sub(r"[0-9A-F]{8}$", "", role), tuple(statement["Action"])))
    return found
