"""The linter, the formatter and the strict type checker are part of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("pyrefly", "check"),
    ],
    ids=["lint", "format", "types"],
)
def test_code_is_clean(command: tuple[str, ...]) -> None:
    """With the rules of pyproject.toml."""
    pytest.importorskip(command[0], reason=f"{command[0]} is not installed: uv sync --group lint")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
