"""The table of what an update of release 1 changes, and the document that contains it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from infra.changes import changes, table
from infra.layers import ROOT
from tests.drivers.templates import WITH_MCP
from tests.infra.test_since_release_1 import HOLDING, RELEASE_1

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DOCUMENT = ROOT / "docs" / "aws-changes.md"


def test_the_document_has_the_table_of_today(assembly: Callable[..., Path]) -> None:
    today = table((RELEASE_1 / "prod", assembly("prod", WITH_MCP)))
    shown = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert shown == today.splitlines(), f"put this into {DOCUMENT.name}:\n{today}"


def test_no_resource_that_holds_something_is_gone(assembly: Callable[..., Path]) -> None:
    folder = assembly("prod", WITH_MCP)
    for path in sorted((RELEASE_1 / "prod").glob("*.template.json")):
        old, new = json.loads(path.read_text()), json.loads((folder / path.name).read_text())
        gone = [change for change in changes(path.name, old, new) if "gone" in change.what]
        assert not [change for change in gone if change.kind in HOLDING]


def test_what_changes_is_told_by_its_properties() -> None:
    old = {
        "Resources": {
            "Kept": {"Type": "A", "Properties": {"Name": 1}},
            "Changed": {"Type": "A", "Properties": {"Name": 1, "Size": 1}},
            "Gone": {"Type": "B"},
            "Other": {"Type": "B"},
        }
    }
    new = {
        "Resources": {
            "Kept": {"Type": "A", "Properties": {"Name": 1}},
            "Changed": {"Type": "A", "Properties": {"Size": 2}, "DeletionPolicy": "Retain"},
            "New": {"Type": "C"},
            "Other": {"Type": "D"},
        }
    }
    changed = {change.logical_id: change.what for change in changes("Data", old, new)}
    assert changed == {
        "Changed": "Name, Size, DeletionPolicy",
        "Gone": "gone",
        "New": "new",
        "Other": "gone; new as D",
    }
