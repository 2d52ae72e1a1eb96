"""One version: the library's. Whoever reports a fault says the same number, wherever it was read."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

from click.testing import CliRunner
from dualtrack import __version__
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack_stack.cli.main import main

from tests.drivers.documents import ROOT


def test_the_package_has_it_from_the_library() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    assert [package.get("version") for package in locked if package["name"] == "dualtrack"] == [None]
    assert importlib.metadata.version("dualtrack") == __version__


def test_the_command_and_the_api_say_it() -> None:
    assert CliRunner().invoke(main, ["--version"], prog_name="dualtrack").output == (
        f"dualtrack, version {__version__}\n"
    )
    assert openapi_document(ROUTES)["info"]["version"] == __version__


def test_the_changes_begin_with_it() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__
