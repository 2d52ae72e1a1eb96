"""A plug-in is its folder: without it, and without its tests, everything else stands.

In a copy of the repository: every handler is imported, the document of the API and the help are written, and every
night both kinds of stages are synthesised and the tests of the core pass.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final, get_args

import pytest
from dualtrack.plugin import FOLDER, names
from dualtrack.vocabulary import Scope
from dualtrack_stack.layers import layers_folder

from tests.drivers.documents import ROOT
from tests.drivers.synthesised import built_layers
from tests.long_forms import LONG

if TYPE_CHECKING:
    from pathlib import Path

PLUGINS: Final = FOLDER.relative_to(ROOT)

LOOK: Final = """
import json
from click.testing import CliRunner
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack_stack.cli.main import main
from dualtrack_stack.doors import DOORS
document = openapi_document(ROUTES)
assert len(document["paths"]) > 20
assert len(DOORS) > len(ROUTES)
assert CliRunner().invoke(main, ["--help"]).exit_code == 0
print(json.dumps(document))
"""

QUICK: Final = ("tests/unit/runtime/test_imports.py", "tests/unit/test_rooms.py", "tests/unit/test_tour.py")
CORE: Final = ("tests/unit", "tests/property", "tests/infra")
LEFT_OUT: Final = tuple(
    f"--ignore=tests/{name}.py"
    for name in ("infra/test_without_plugins", "unit/test_docs_commands", "unit/test_docs_links")
)
"""Ourselves, and what compares the documents: these tell of every capability."""


def copy_without(plugin: str, folder: Path) -> Path:
    """The repository without a plug-in, with the layers that are built already."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    gone = (f"{PLUGINS.as_posix()}/{plugin}/", f"tests/plugins/{plugin}/")
    for name in files:
        if name and not name.startswith(gone) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    (folder / ".build").mkdir()
    (folder / ".build" / "layers").symlink_to(layers_folder())
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    return folder


def run(folder: Path, *arguments: str) -> str:
    """A program of this Python in the copy, which comes before what is installed."""
    places = (folder, folder / "infra", folder / "layers" / "core" / "python")
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_plug_ins() -> None:
    assert {"openai", "schedules", "webhooks"} <= {*names()}


@pytest.mark.parametrize("plugin", names())
def test_without_its_folder_everything_else_is_there(plugin: str, tmp_path: Path) -> None:
    copy = copy_without(plugin, tmp_path)
    document = run(copy, "-c", LOOK)
    for scope in get_args(Scope):  # the core's vocabulary of keys
        document = document.replace(f'"{scope}"', "")
    assert plugin not in document
    run(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *QUICK)


@pytest.mark.skipif(not LONG, reason="synthesises, and runs the tests of the core: DUALTRACK_LONG=1")
@pytest.mark.parametrize("plugin", names())
@pytest.mark.timeout(3600)
def test_without_its_folder_the_core_s_tests_pass(plugin: str, tmp_path: Path) -> None:
    built_layers()
    copy = copy_without(plugin, tmp_path)
    run(copy, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *LEFT_OUT, *CORE)
