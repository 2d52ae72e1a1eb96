"""``dualtrack prices``: the list, a model, and one that the list does not have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner
from dualtrack.models.prices import price_list
from dualtrack_stack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["prices", *arguments])
    return result.exit_code, result.output


def test_the_list_has_every_model_with_its_day_and_source() -> None:
    code, out = run()
    assert code == 0
    assert all(listed.id in out for listed in price_list().models)
    row = next(line for line in out.splitlines() if line.startswith("claude-haiku-5-5 "))
    assert row.split()[1:6] == ["0.1", "0.5", "0.01", "0.125", "0.2"]
    assert row.endswith("dearer above 100,000 tokens")
    assert f"List prices of {price_list().taken_on}, from genai-prices " in out


def test_a_model_is_shown_whole_by_any_of_its_names() -> None:
    code, out = run("claude-4.6-opus-20260101")
    assert code == 0
    assert out.startswith("claude-opus-4-6  made by anthropic, at anthropic")
    rows = {line[:34].strip(): line[34:].split() for line in out.splitlines()}
    assert rows["any call"] == ["5", "25", "0.5", "6.25", "10"]
    assert rows["above 200,000 tokens of prompt"] == ["10", "37.5", "1", "12.5", "20"]
    assert rows["since 2026-03-13"] == ["5", "25", "0.5", "6.25", "10"]
    assert rows["in a batch, since 2026-10-14"] == ["2.5", "12.5", "0.25", "3.125", "5"]
    assert "1,000 web searches: $10" in out


def test_a_model_without_a_known_price_is_said_to_be_a_guess() -> None:
    code, out = run("claude-opus-4-80")
    assert code == 1
    assert "claude-opus-4-80 has no known price" in out
    assert ["a", "guess", "15", "75", "1.5", "18.75", "30"] in [line.split() for line in out.splitlines()]


def test_prices_by_contract_stand_first_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a stage over those of every stage; a wrong one is told with its file and line."""
    file = tmp_path / "dualtrack.toml"
    file.write_text(
        "[models.claude-opus-5-5]\ninput = 3.6\noutput = 18\ncache_read = 0.18\ncache_write = 4.5\n"
        "[stage.prod.models.claude-opus-5-5]\n"
        'input = 3\noutput = 15\ncache_read = 0.15\ncache_write = 3.75\nsince = "2099-01-01"\n'
    )
    monkeypatch.chdir(tmp_path)
    _, out = run()
    assert out.splitlines()[1].split()[:3] == ["claude-opus-5-5", "3.6", "18"]
    _, out = run("claude-opus-5-5-20261101", "--stage", "prod")
    rows = {line[:34].strip(): line[34:].split() for line in out.splitlines()}
    assert rows["any call"][0] == "4"
    assert rows["since 2099-01-01"][0] == "3"
    file.write_text('\n[models."claude-opus-5-5"]\ninput = 3.6\n')
    code, out = run()
    assert code == 2
    assert "dualtrack.toml:2: models.claude-opus-5-5: output is missing, in dollars" in out
    assert run("--stage", "moon")[0] == 2


def test_json_has_the_same() -> None:
    code, out = run("claude-opus-5-5", "--json")
    (model,) = json.loads(out)["models"]
    assert (code, model["id"]) == (0, "claude-opus-5-5")
    assert [*model["prices"][0]["rates"].values()] == [4, 20, 0.2, 5, 8, True]
    assert run("claude-nobody-9", "--json")[0] == 1
