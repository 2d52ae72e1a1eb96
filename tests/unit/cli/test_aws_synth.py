"""`dualtrack aws synth`: where it writes, and what it never writes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner
from dualtrack_stack.cli.aws import synth as command
from dualtrack_stack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def write_template(folder: Path, stage: str) -> None:
    """In place of the CDK's app."""
    folder.mkdir()
    (folder / command.MANIFEST).touch()
    (folder / f"{stage}.template.json").touch()


def invoke(output: Path, stage: str = "staging") -> tuple[int, str]:
    result = CliRunner().invoke(main, ["aws", "synth", "--stage", stage, "-o", str(output)])
    return result.exit_code, result.output


def test_its_own_folder_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "synthesise_into", write_template)
    output = tmp_path / "out" / "templates"
    assert invoke(output)[0] == 0
    code, said = invoke(output, "prod")
    assert code == 0
    assert said.splitlines()[-1] == str(output / "prod.template.json")
    assert {path.name for path in output.iterdir()} == {command.MANIFEST, "prod.template.json"}
    assert list(output.parent.iterdir()) == [output]


def test_another_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "synthesise_into", write_template)
    (tmp_path / "notes").write_text("mine")
    for output in (tmp_path, tmp_path / "notes"):
        code, said = invoke(output)
        assert code == 2
        assert said == f"Error: --output: {output} is not empty, and nothing that this command wrote.\n"
    assert (tmp_path / "notes").read_text() == "mine"


def test_what_failed_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "synthesise_into", write_template)
    output = tmp_path / "templates"
    assert invoke(output)[0] == 0

    def fail(folder: Path, stage: str) -> None:
        write_template(folder, stage)
        raise RuntimeError("Synthesis failed:\nAwsSolutions-IAM5")

    monkeypatch.setattr(command, "synthesise_into", fail)
    code, said = invoke(output)
    assert code == 4
    assert "AwsSolutions-IAM5" in said
    assert (output / "staging.template.json").is_file()
    assert list(tmp_path.iterdir()) == [output]
