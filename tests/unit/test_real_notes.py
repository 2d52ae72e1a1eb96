"""The bench of a real model's notes runs; its figures need that model (bench/real_notes.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.offline_model.server import serve_offline_model

from bench.real_notes import main

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).parents[2]


def test_notes_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["real_notes", "--offline", "--queries", "12"])
    assert main() == 0
    told = capsys.readouterr().out
    (asked,) = re.findall(r"notes asked for +│ +(\d+)", told)
    (tokens,) = re.findall(r"tokens of a note, mean +│ +(\d+)", told)
    assert int(asked) > 0
    assert "100%" in told, "the built-in model writes them all"
    assert int(tokens) > 0


def test_with_a_key_the_model_is_asked() -> None:
    """By the command: what the tests import takes keys out of the environment."""
    with serve_offline_model() as model:
        own = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": model.url}
        command = [sys.executable, "-m", "bench.real_notes", "--queries", "1"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **own}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "notes asked for" in done.stdout
        assert len(model.requests) == 1


def test_without_a_key_it_asks_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["real_notes"])
    assert main() == 2
    assert "needs a real model: set ANTHROPIC_API_KEY" in " ".join(capsys.readouterr().out.split())
