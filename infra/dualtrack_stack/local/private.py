"""Files that only their owner may read: the local stack stores keys, tokens, conversations."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_private(folder: Path) -> None:
    """Create the folder if it is missing, and let only its owner reach it and its contents."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # deleted in the meantime
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~0o077)


def write_private(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that a reader never sees a partial one."""
    beside = path.with_name(f"{path.name}.new")
    beside.touch(mode=0o600)
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
