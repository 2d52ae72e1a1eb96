"""What a project's folder holds, and when a change of it is taken up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local import saved
from dualtrack_stack.local.saved import FileStates, WatchedFolders, changes, is_due, look

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def watched(tmp_path: Path) -> WatchedFolders:
    for folder in ("profiles", "tools/billing", "tools/__pycache__", "tools/.git"):
        (tmp_path / folder).mkdir(parents=True)
    names = (
        *("dualtrack.toml", "README.md", "profiles/helper.json", "profiles/notes.txt"),
        *("tools/weather.py", "tools/billing/refunds.py", "tools/billing/rates.csv"),
        *("tools/__pycache__/weather.pyc", "tools/.weather.py.swp", "tools/.git/HEAD", "tools/weather.py~"),
    )
    for name in names:
        (tmp_path / name).write_text("{}")
    return WatchedFolders(tmp_path, tmp_path / "profiles")


def test_what_counts_is_seen_and_nothing_else(watched: WatchedFolders) -> None:
    """No caches, and nothing that an editor lays down beside a file."""
    assert sorted(look(watched).files) == [
        "dualtrack.toml",
        "profiles/helper.json",
        "tools/billing/rates.csv",
        "tools/billing/refunds.py",
        "tools/weather.py",
    ]


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert look(WatchedFolders(tmp_path, tmp_path / "profiles")).files == {}


def test_profiles_elsewhere_are_named_in_full(watched: WatchedFolders, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    elsewhere.mkdir()
    (elsewhere / "a.json").write_text("{}")
    assert (elsewhere / "a.json").as_posix() in look(WatchedFolders(watched.root, elsewhere)).files


def test_a_file_that_is_replaced_by_another_of_its_size_and_time_is_a_change(watched: WatchedFolders) -> None:
    """As an editor saves: another file, renamed."""
    before, file = look(watched), watched.root / "tools" / "weather.py"
    stat = file.stat()
    other = file.with_name("other")
    other.write_text("[]")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(file)
    after = look(watched)
    assert changes(before, after) == "tools/weather.py changed"
    assert before.digest() != after.digest()
    assert after.digest() == look(watched).digest()


def test_a_huge_folder_is_not_read_to_its_end(
    watched: WatchedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_FILES", 3)
    assert len(look(watched).files) == 3


def of(**files: int) -> FileStates:
    return FileStates({name: (time, 0, 0) for name, time in files.items()})


def test_each_file_is_named_with_what_became_of_it() -> None:
    assert changes(of(a=1, b=1, c=1), of(a=1, b=2, d=1)) == "b changed, c deleted, d added"


def test_of_many_files_the_first_are_named() -> None:
    after = of(**{f"f{number}": 1 for number in range(50)})
    assert changes(of(), after) == "f0 added, f1 added, f10 added and 47 more"


@pytest.mark.parametrize(
    ("first", "last", "due"),
    [(0.0, 0.0, False), (0.15, 0.15, False), (0.25, 0.25, True), (0.9, 0.1, False), (1.1, 0.0, True)],
    ids=["just now", "hardly settled", "settled", "still changing", "changing all the time"],
)
def test_a_change_is_taken_up_once_it_has_settled(first: float, last: float, due: bool) -> None:
    assert is_due(of(a=1), of(a=2), first, last) is due


def test_what_is_as_it_was_is_not_taken_up() -> None:
    """A file that was changed and changed back within a moment."""
    assert not is_due(of(a=1), of(a=1), 5.0, 5.0)
