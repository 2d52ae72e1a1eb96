"""What a stack was started with. A command uses a stack that runs only if it would start the same one: of this version
of dualtrack, for this project, with these settings.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from dualtrack_stack.roots import LIBRARY, OURS, PACKAGE, project_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_INSTALLED: Final = Path(click.__file__).parents[1]
"""Where the packages are, also behind an environment that uv lays over it for one command (``uv run --with``)."""
PROGRAM: Final = "dualtrack"
PROJECT: Final = "project"
_WORDS: Final = {PROGRAM: "another version of dualtrack", PROJECT: "another project"}


def started_with(variables: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Hashes, by what they are of: the program, the project, and each of these variables that is set."""
    given = {name: environ[name] for name in sorted(set(variables)) if environ.get(name)}
    whole = {PROGRAM: "\n".join(_program()), PROJECT: str(project_root()), **given}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in whole.items()}


def differences(
    theirs: Mapping[str, str], variables: Iterable[str], environ: Mapping[str, str], *, unset: bool = True
) -> list[str]:
    """In words, what a stack that was started with ``theirs`` has otherwise than one that would be started now;
    without ``unset``, only what is set now."""
    ours = started_with(variables, environ)
    names = [name for name in {**ours, **(theirs if unset else {})} if ours.get(name) != theirs.get(name)]
    return [_WORDS.get(name, f"another {name}") for name in names]


def _program() -> Iterator[str]:
    """Our files but the commands themselves, by their stat alone (a few milliseconds), and what is installed beside
    them. Bytecode is written while a stack runs, and does not count."""
    yield sys.version
    yield os.environ.get("PYTHONPATH", "")
    yield from sorted(path.name for path in _INSTALLED.glob("*.dist-info"))
    for root in (PACKAGE, LIBRARY, OURS / "functions"):
        for folder, folders, names in os.walk(root):
            here = Path(folder)
            folders[:] = sorted({*folders} - {"__pycache__"} - ({"cli"} if here == PACKAGE else set()))
            for path in (here / name for name in sorted(names)):
                stat = path.stat()
                yield f"{path} {stat.st_mtime_ns} {stat.st_size}"
