"""Layers of a laptop's functions are unpacked once."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.unpacked import LayersOnce

if TYPE_CHECKING:
    from pathlib import Path


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def process_of(folder: Path, text: str) -> Path:
    """What a function's process has of its layer, as the emulator unpacks it."""
    own = folder / "layer_0"
    own.mkdir(parents=True)
    with LayersOnce(zipped(folder / "layer_0.zip", {"python/a.py": text, "../../out.py": "no"})) as layer:
        assert layer.namelist() == []
        layer.extractall(own)
    return own


def test_processes_share_a_layer_until_it_changes(tmp_path: Path) -> None:
    first, second = (process_of(tmp_path / name, "A = 1") for name in ("one", "two"))
    assert (first / "python" / "a.py").read_text() == "A = 1"
    assert first.resolve() == second.resolve()
    changed = process_of(tmp_path / "three", "A = 2")
    assert (changed / "python" / "a.py").read_text() == "A = 2"
    assert (first / "python" / "a.py").read_text() == "A = 1", "its processes still run"
    assert {path.parent.name for path in tmp_path.rglob("out.py")} == {
        path.name for path in tmp_path.glob("layer-*")
    }


def test_a_layer_that_no_process_has_is_removed_with_the_next_one(tmp_path: Path) -> None:
    first = process_of(tmp_path / "one", "A = 1")
    unused = first.resolve()
    first.unlink()
    process_of(tmp_path / "two", "A = 2")
    assert not unused.exists()


def test_a_functions_own_code_is_unpacked_for_each_process(tmp_path: Path) -> None:
    with LayersOnce(zipped(tmp_path / "code.zip", {"handler.py": "x"})) as code:
        assert code.namelist() == ["handler.py"]
        code.extractall(tmp_path / "code")
    assert not (tmp_path / "code").is_symlink()
    assert (tmp_path / "code" / "handler.py").read_text() == "x"


@pytest.mark.parametrize("name", ["layer_0.zip", "code.zip"])
def test_what_is_no_zip_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("no zip")
    with pytest.raises(zipfile.BadZipFile):
        LayersOnce(tmp_path / name)
