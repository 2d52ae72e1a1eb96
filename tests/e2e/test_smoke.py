"""``dualtrack aws smoke`` against the local stack."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.clients.stack_client import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.stack_client import Root


def test_smoke_passes_on_the_local_stack_and_leaves_nothing(root: Root, tmp_path: Path) -> None:
    """Every check of the contract passes; a report is written; the user is erased."""
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "dualtrack_stack.cli.main",
            "aws",
            "smoke",
            "--url",
            root.stack.url,
            "--report",
            str(tmp_path),
            "--json",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    summary = json.loads(run.stdout)
    assert summary["passed"] == summary["of"] == 16
    assert set(summary["measured"]) >= {"second chat, one tool", "cost of the second chat"}
    report = (tmp_path / "report.md").read_text()
    assert "16 of 16 checks passed" in report
    assert "![Seconds of each check](seconds.svg)" in report
    assert (tmp_path / "seconds.svg").read_text().count("<rect") == 17
