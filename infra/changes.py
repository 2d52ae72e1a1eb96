"""What an update of a deployed release does to its resources: ``python -m infra.changes OLD NEW``.

``OLD`` and ``NEW`` are folders of templates; the table goes to docs/aws-changes.md. It shows what CloudFormation does:
a different logical id or type is a new resource, and so is a different value of a create-only property (CloudFormation
User Guide, "Update behaviors of stack resources").
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED_BY_CONTENT: Final = {"AWS::Lambda::Version", "AWS::ApiGateway::Deployment"}
"""Changed content makes a new resource; these are reported as a whole."""

_BEHAVIOUR: Final = ("DeletionPolicy", "UpdateReplacePolicy")


@dataclass(frozen=True, slots=True)
class Change:
    """``what``: new, gone, or the names of the properties that differ."""

    stack: str
    kind: str
    logical_id: str
    what: str


def changes(stack: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    """Sorted by type and logical id. The template of a stack that does not exist is empty."""
    before, after = old.get("Resources", {}), new.get("Resources", {})
    different = []
    for key in {*before, *after}:
        kind = (after.get(key) or before[key])["Type"]
        what = _what(before.get(key), after.get(key))
        if what and kind not in _NAMED_BY_CONTENT:
            different.append(Change(stack, kind, key, what))
    yield from sorted(different, key=lambda change: (change.kind, change.logical_id))


def _what(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    if old is None or new is None:
        return "new" if old is None else "gone"
    if old["Type"] != new["Type"]:
        return f"gone; new as {new['Type']}"
    before, after = old.get("Properties", {}), new.get("Properties", {})
    names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    names += [name for name in _BEHAVIOUR if old.get(name) != new.get(name)]
    return ", ".join(names)


def table(folders: tuple[Path, Path]) -> str:
    """Markdown: one line for all resources of a type with the same change."""
    lines = ["| stack | type | resources | change |", "|---|---|---|---|"]
    names = sorted({path.name for folder in folders for path in folder.glob("*.template.json")})
    for name in names:
        old, new = (_template(folder / name) for folder in folders)
        alike: dict[tuple[str, str], list[str]] = defaultdict(list)
        for change in changes(name.split(".")[0], old, new):
            alike[change.kind, change.what].append(change.logical_id)
        stack = name.split(".")[0]
        lines += [f"| {stack} | {kind} | {_told(ids)} | {what} |" for (kind, what), ids in alike.items()]
    return "\n".join(lines)


def _template(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return loaded


def _told(ids: list[str]) -> str:
    return (
        ", ".join(f"`{logical_id}`" for logical_id in ids)
        if len(ids) <= 4
        else f"{len(ids)}: `{ids[0]}` … `{ids[-1]}`"
    )


if __name__ == "__main__":
    print(table((Path(sys.argv[1]), Path(sys.argv[2]))))
