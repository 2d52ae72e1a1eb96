"""The emulated account on disk is whole at any moment: cut off anywhere, it is as it was before, or as it is after."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local import account_state
from dualtrack_stack.local.account_state import NotSaved, take_up, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class PowerFailed(BaseException):
    """The machine has no power."""


def put(path: Path, text: str) -> None:
    """As the emulator writes: another file, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "new").write_text(text)
    (path.parent / "new").rename(path)


def works(root: Path, text: str) -> None:
    """A run stores an object at once, and the rest at its end."""
    put(root / "objects" / "bucket" / "key", text)
    put(root / "aws" / "lambda-blobs" / text, text)
    put(root / "aws" / "key.pem", "the first run's")


def ends(root: Path, text: str, broken: str = "") -> None:
    folders: list[Path] = []

    def save_all(services: Mapping[str, Callable[[], object]]) -> None:
        for name, get_state in services.items():
            state = get_state()
            if state is not None and name != broken:
                put(folders[-1] / f"{name}.json", f"{state}")

    services: dict[str, Callable[[], object]] = {
        "dynamodb": lambda: text,
        "sqs": lambda: text,
        "sns": lambda: None,
        "athena": lambda: text,
    }
    whole(save_all, folders.append, root)(services)


def now(root: Path) -> set[str]:
    """What the next run finds; one text, unless states are mixed."""
    paths = [root / "aws" / "dynamodb.json", root / "aws" / "sqs.json", root / "objects" / "bucket" / "key"]
    return {path.read_text() if path.exists() else "" for path in paths}


def test_a_run_finds_what_the_last_one_has_saved(tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        assert take_up(tmp_path) == ""
        works(tmp_path, text)
        ends(tmp_path, text)
        assert now(tmp_path) == {text}
        assert (tmp_path / "aws" / "lambda-blobs" / text).read_text() == text
        assert (tmp_path / "aws" / "key.pem").exists()
    assert not (tmp_path / "aws" / "athena.json").exists()


def test_a_folder_of_an_earlier_release_is_taken_up(tmp_path: Path) -> None:
    works(tmp_path, "earlier")
    put(tmp_path / "aws" / "dynamodb.json", "earlier")
    put(tmp_path / "aws" / "sqs.json", "earlier")
    assert (take_up(tmp_path), now(tmp_path)) == ("", {"earlier"})


def test_a_run_that_was_cut_off_leaves_the_state_before_it_and_the_next_says_so(tmp_path: Path) -> None:
    take_up(tmp_path)
    works(tmp_path, "one")
    ends(tmp_path, "one")
    take_up(tmp_path)
    works(tmp_path, "two")
    (tmp_path / "objects" / "bucket" / "new").write_text("two")
    told = take_up(tmp_path)
    assert "was cut off" in told
    assert now(tmp_path) == {"one"}
    assert not (tmp_path / "objects" / "bucket" / "new").exists()
    works(tmp_path, "three")
    assert (tmp_path / "saved" / "objects" / "bucket" / "key").read_text() == "one"


def test_the_first_run_that_was_cut_off_leaves_nothing(tmp_path: Path) -> None:
    take_up(tmp_path)
    works(tmp_path, "one")
    assert "is empty" in take_up(tmp_path)
    assert now(tmp_path) == {""}


def test_what_one_service_cannot_write_leaves_all_as_it_was(tmp_path: Path) -> None:
    take_up(tmp_path)
    works(tmp_path, "one")
    ends(tmp_path, "one")
    take_up(tmp_path)
    works(tmp_path, "two")
    with pytest.raises(NotSaved, match="sqs"):
        ends(tmp_path, "two", broken="sqs")
    assert "was cut off" in take_up(tmp_path)
    assert now(tmp_path) == {"one"}


CHANGES = ("link", "rename", "mkdir", "unlink", "rmdir")


def test_cut_off_at_any_change_of_the_disk_it_is_the_one_or_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the next start is cut off while it takes up what there is."""
    seen = set()
    for moment in itertools.count():
        root = tmp_path / str(moment)
        root.mkdir()
        take_up(root)
        works(root, "one")
        ends(root, "one")
        take_up(root)
        works(root, "two")
        is_over = cut_off(monkeypatch, moment, lambda root=root: ends(root, "two"))
        cut_off(monkeypatch, moment % 7, lambda root=root: take_up(root))
        take_up(root)
        state = now(root)
        assert state in ({"one"}, {"two"}), moment
        seen |= state
        if is_over:
            break
    assert seen == {"one", "two"}


def cut_off(monkeypatch: pytest.MonkeyPatch, moment: int, do: Callable[[], object]) -> bool:
    """Whether it came to its end before the power failed, at the so manieth change of the disk."""
    left = itertools.count(moment, -1)
    with monkeypatch.context() as patched:
        for name in CHANGES:
            true = getattr(os, name)

            def change(*arguments: object, true: Callable[..., object] = true, **more: object) -> object:
                if next(left) <= 0:
                    raise PowerFailed
                return true(*arguments, **more)

            patched.setattr(os, name, change)
        with contextlib.suppress(PowerFailed):
            do()
            return True
    return False


def test_the_names_of_the_parts_are_the_emulators() -> None:
    from ministack import app

    assert set(app._state_map) >= account_state.STORED
