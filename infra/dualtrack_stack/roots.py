"""Where files are: what comes with the package, which is only read, and the project, in which everything is written.

A project is a folder with a ``dualtrack.toml``. Its ``profiles/``, ``tools/``, ``.build`` and ``.dualtrack`` lie beside
that file. The checkout of dualtrack is a project like any other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import dualtrack

PACKAGE: Final = Path(__file__).resolve().parent
LIBRARY: Final = Path(dualtrack.__file__).resolve().parent
"""The package `dualtrack`, which is the library of the functions."""

_CHECKOUT: Final = PACKAGE.parents[1]
_IN_CHECKOUT: Final = (_CHECKOUT / "layers" / "core").is_dir()

OURS: Final = _CHECKOUT if _IN_CHECKOUT else PACKAGE / "files"
"""A folder with our ``functions/``, ``layers/`` and ``cdk.json``: the checkout, or what the wheel has of it."""

PLUGINS: Final = LIBRARY / "plugins"


def function_folders() -> dict[str, Path]:
    """The code of every function, by its name: the core's in ``functions/``, a plug-in's in its own folder."""
    folders = (path.parent for root in (OURS, *PLUGINS.iterdir()) for path in root.glob("functions/*/*.py"))
    return {folder.name: folder for folder in sorted(folders)}


PROJECT_FILE: Final = "dualtrack.toml"


def project_root() -> Path:
    """The folder of the nearest `PROJECT_FILE`, from the current folder upwards; without one the checkout that this
    package is in, else the current folder."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    return _CHECKOUT if _IN_CHECKOUT else here


def own_python(module: str, *arguments: str) -> list[str]:
    """The command of a module of ours in a process of its own. It runs in the project's folder, whose own modules, a
    ``json.py`` for instance, are not found in place of Python's."""
    return [sys.executable, "-P", "-m", module, *arguments]


def build_folder() -> Path:
    """Built layers and synthesised templates of the project: all of it can be deleted."""
    return project_root() / ".build"
