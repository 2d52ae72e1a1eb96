"""The bench of a real model's notes runs; its figures need that model (bench/real_notes.py)."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from bench.real_notes import main

if TYPE_CHECKING:
    import pytest


def test_notes_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["real_notes", "--offline", "--queries", "12"])
    assert main() == 0
    told = capsys.readouterr().out
    (asked,) = re.findall(r"notes asked for +│ +(\d+)", told)
    (tokens,) = re.findall(r"tokens of a note, mean +│ +(\d+)", told)
    assert int(asked) > 0
    assert "100%" in told, "the built-in model writes them all"
    assert int(tokens) > 0


def test_without_a_key_it_asks_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["real_notes"])
    assert main() == 2
    assert "needs a real model: set ANTHROPIC_API_KEY" in " ".join(capsys.readouterr().out.split())
