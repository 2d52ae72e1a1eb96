"""``python -m dualtrack_stack.tool_specs``: what the model sees of the in-house tools, computed from their functions.

A tool runs in the Lambda function that has what it needs (`Provided.kind`); one that needs nothing runs in ``tool``.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, get_args

from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack.frozen import thaw
from dualtrack.plugin import FOLDER as PLUGINS
from dualtrack.plugin import names
from dualtrack.tool_check import broken_rule
from dualtrack.tool_declaration import declared
from dualtrack.tool_signature import ToolDeclarationError
from dualtrack.tool_values import Switch
from dualtrack.tools.registry import SPECS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dualtrack.tool_declaration import Declaration

LIBRARY: Final = SPECS_FILE.parents[1]
_MARK: Final = re.compile(r"^@tool\b", re.MULTILINE)


def files() -> dict[Path, list[dict[str, Any]]]:
    """The tools of the library and of each plug-in that has some, by their file, in the order of their modules. Raises
    `ToolDeclarationError`."""
    folders = (SPECS_FILE.parent, *(PLUGINS / name for name in names()))
    found = {folder / SPECS_FILE.name: specs(folder) for folder in folders}
    return {file: tools for file, tools in found.items() if tools}


def specs(folder: Path) -> list[dict[str, Any]]:
    """The tools of a folder of the library."""
    return [spec_of(module, declaration) for module in _modules(folder) for declaration in _declared(module)]


def _modules(folder: Path) -> list[str]:
    """The modules in which functions are marked as tools."""
    marked = (path for path in sorted(folder.rglob("*.py")) if _MARK.search(path.read_text(encoding="utf-8")))
    return [".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts) for path in marked]


def _declared(module: str) -> Iterator[Declaration]:
    for value in vars(import_module(module)).values():
        declaration = declared(value)
        if declaration and declaration.function.__module__ == module:
            yield declaration


def spec_of(
    module: str, tool: Declaration, kind: str = "tool", prices: Iterable[str] = PRICE_CLASSES
) -> dict[str, Any]:
    """``{"module", "name", "description", "input_schema", "kind", "price_class", "effect", "repeatable",
    "approval"}``, and ``"switches"`` if it has any.

    ``kind``: of a tool that needs nothing which one function alone has; ``prices``: the price classes that there are.
    Raises `ToolDeclarationError`.
    """
    kinds: set[str] = {kind.kind for kind in tool.signature.provided.values() if kind.kind} or {kind}
    schema = thaw(tool.signature.input_schema)
    if len(kinds) > 1:
        raise ToolDeclarationError(
            tool.function, f"no function has what it needs: {', '.join(sorted(kinds))}"
        )
    if tool.price not in prices:
        raise ToolDeclarationError(
            tool.function, f"price is {tool.price!r}: write one of {', '.join(prices)}"
        )
    if wrong := {*tool.switches}.difference(get_args(Switch)):
        raise ToolDeclarationError(tool.function, f"no profile switches {', '.join(sorted(wrong))}")
    if problem := broken_rule(tool.name, schema):
        raise ToolDeclarationError(tool.function, f"the model's service would refuse it: {problem}")
    return {
        "module": module,
        "name": tool.name,
        "description": tool.signature.description,
        "input_schema": schema,
        "kind": kinds.pop(),
        "price_class": tool.price,
        "effect": tool.does,
        "repeatable": tool.is_repeatable,
        "approval": tool.approval or "",
        **({"switches": list(tool.switches)} if tool.switches else {}),
    }


def main() -> None:
    """Write the files."""
    for file, found in files().items():
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{file.relative_to(LIBRARY)}: {len(found)} tools")


if __name__ == "__main__":
    main()
