"""The state folder of a stack that was killed: what is left of it may still be ending when the next one starts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dualtrack_stack.local.stack import _Paths

if TYPE_CHECKING:
    from pathlib import Path


def test_what_vanishes_meanwhile_does_not_hinder_the_next_start(tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    folders = [scratch / f"function-{number}" for number in range(3_000)]
    for folder in folders:
        folder.mkdir()
    began = threading.Event()

    def end() -> None:
        began.set()
        for folder in reversed(folders):
            if folder.exists():
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    return

    ending = threading.Thread(target=end)
    ending.start()
    began.wait()
    _Paths(tmp_path).prepare(reset=False)
    ending.join()
    assert list(scratch.iterdir()) == []
