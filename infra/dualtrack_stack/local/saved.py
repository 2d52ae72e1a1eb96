"""What a project's folder has been seen to hold, by the files' stat alone, and when a change of it is taken up.

Looking four times a second at the few files of a project costs next to nothing, needs no package, and works where
notices of the file system do not: in containers, on network drives.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_FILES: Final = 2_000
"""Further files of a project are not watched."""
SETTLE_SECONDS: Final = 0.2
"""A change is taken up once nothing has changed for so long: a checkout of fifty files is one change."""
MOST_SECONDS: Final = 1.0
"""A folder in which something changes all the time is taken up after so long."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class WatchedFolders:
    """The folder of a project, and that of its profiles, which a setting may put elsewhere."""

    root: Path
    profiles: Path


@dataclass(frozen=True, slots=True)
class FileStates:
    """``files``: modification time in ns, size and inode of each file, by its path as messages name it. An editor that
    writes another file and renames it keeps the name and changes the inode."""

    files: Mapping[str, tuple[int, int, int]]

    def digest(self) -> str:
        """The same for two processes that have seen the same."""
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()[:16]


def look(watched: WatchedFolders) -> FileStates:
    """The files that count now: ``dualtrack.toml``, the profiles, everything below ``tools/`` but caches and hidden
    files."""
    files: dict[str, tuple[int, int, int]] = {}
    for path in _paths(watched):
        try:
            stat = path.stat()
        except OSError:  # deleted since it was listed
            continue
        name = path.relative_to(watched.root) if path.is_relative_to(watched.root) else path
        files[name.as_posix()] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if len(files) == MOST_FILES:
            break
    return FileStates(MappingProxyType(files))


def _paths(watched: WatchedFolders) -> Iterator[Path]:
    yield watched.root / "dualtrack.toml"
    yield from sorted(watched.profiles.glob("*.json"))
    for folder, folders, names in os.walk(watched.root / "tools"):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        yield from (
            Path(folder, name) for name in sorted(names) if not name.startswith(".") and name[-1] != "~"
        )


def is_due(taken: FileStates, now: FileStates, since_first: float, since_last: float) -> bool:
    """Whether to take up what is saved now, so many seconds after the first and the last change since ``taken``."""
    return now != taken and (since_last >= SETTLE_SECONDS or since_first >= MOST_SECONDS)


def changes(before: FileStates, after: FileStates) -> str:
    """``tools/weather.py changed``, ``profiles/a.json added, tools/b.py deleted``, and of many files the first ones."""
    verbs = {}
    for name in sorted(before.files.keys() | after.files.keys()):
        if name not in before.files:
            verbs[name] = "added"
        elif name not in after.files:
            verbs[name] = "deleted"
        elif before.files[name] != after.files[name]:
            verbs[name] = "changed"
    named = [f"{name} {verb}" for name, verb in [*verbs.items()][:_MOST_NAMED]]
    more = len(verbs) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
