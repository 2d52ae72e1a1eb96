"""The page as one folder, as it is deployed: the files of `web.files` at the paths at which they are served."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from dualtrack_stack.layers import publish
from dualtrack_stack.page import web
from dualtrack_stack.roots import build_folder

if TYPE_CHECKING:
    from pathlib import Path


def whole_page() -> Path:
    """The folder, which is named by its content."""
    files = sorted(web.files().items())
    digest = hashlib.sha256()
    for path, file in files:
        digest.update(f"{path} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    folder = build_folder() / "page" / digest.hexdigest()[:16]
    return folder if folder.is_dir() else publish(folder, lambda new: _copy(files, new))


def _copy(files: list[tuple[str, Path]], folder: Path) -> None:
    for path, file in files:
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
