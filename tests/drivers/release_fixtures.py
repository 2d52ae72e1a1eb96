"""Accounts of a release in the middle of chats: fixtures that later releases must be able to finish.

``uv run --group test python -m tests.drivers.release_fixtures`` writes those of the version that is being made, into
``tests/fixtures/VERSION``; a version's folder is never written again once it has its tag (docs/faults.md).
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

from dualtrack import __version__
from dualtrack_stack.cli.new_command import project_files

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.documents import ROOT
from tests.drivers.memory_aws import MemoryAws
from tests.drivers.release_moments import Moment, moments

if TYPE_CHECKING:
    from pathlib import Path

FIXTURES: Final = ROOT / "tests" / "fixtures"
PROJECT: Final = "project"
FOLDER: Final = FIXTURES / __version__
"""Of the version that is being made."""


def dump(moment: Moment) -> str:
    """A moment as JSON: items in DynamoDB's own form, binaries in base64."""
    tables = {
        name: [_plain(item) for item in table.values()] for name, table in sorted(moment.aws.tables.items())
    }
    objects = {key: base64.b64encode(data).decode() for key, data in sorted(moment.aws.objects.items())}
    about = {"name": moment.name, "now": moment.now, "state": moment.state, "turn": moment.turn}
    body = {
        **about,
        "calls": moment.calls,
        "executions": moment.aws.executions,
        "objects": objects,
        "tables": tables,
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def load(path: Path) -> Moment:
    """A moment from its file."""
    body = json.loads(path.read_text(encoding="utf-8"))
    aws = MemoryAws(executions=body["executions"])
    aws.objects = {key: base64.b64decode(data) for key, data in body["objects"].items()}
    for name, items in body["tables"].items():
        for item in map(_wire, items):
            aws.table(name)[item["pk"]["S"], item["sk"]["S"]] = item
    return Moment(body["name"], aws, body["now"], body["state"], body["turn"], tuple(body["calls"]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _wire(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: base64.b64decode(part) if key == "B" else _wire(part) for key, part in value.items()}
    return [_wire(part) for part in value] if isinstance(value, list) else value


def changed_since_its_tag(folder: Path) -> list[str]:
    """The files of a release's fixtures that differ from those at its tag, by name; none without the tag."""
    tag = _tag(folder)
    if not tag:
        return []
    changed = _git(folder, "diff", "--relative", "--name-only", tag, "--", ".")
    return sorted(changed + _git(folder, "ls-files", "--others", "--", "."))


def _tag(folder: Path) -> str:
    return next(iter(_git(folder, "tag", "--list", folder.name, f"v{folder.name}")), "")


def _git(folder: Path, *arguments: str) -> list[str]:
    """What git says, line by line; nothing outside of a repository."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def write(folder: Path) -> None:
    """Write the fixtures of a release in place of those that are there. Raises SystemExit once it has its tag."""
    if _tag(folder):
        raise SystemExit(f"{folder.name} is out: its fixtures stay.")
    for old in folder.glob("*.json"):
        old.unlink()
    for moment in moments():
        path = folder / f"{moment.name.replace(',', '').replace(' ', '-')}.json"
        path.write_text(dump(moment), encoding="utf-8")
        print(path.name)


def write_project(folder: Path) -> None:
    """What ``dualtrack new`` of this release writes."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in project_files("my-agents", source="").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write those of the version that is being made."""
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER)
    write_project(FOLDER / PROJECT)


if __name__ == "__main__":
    main()
