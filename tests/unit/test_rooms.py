"""The library's layers: imports run downwards only, so that a lower layer can be read without the upper ones."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

LIBRARY: Final = Path(__file__).parents[2] / "layers" / "core" / "python" / "dualtrack"

ROOMS: Final = (
    "",  # plain values at the top level
    "runtime",
    "models",
    "memory",
    "credits",
    "storage",
    "streaming",
    "tools",
    "corpora",
    "chat",
    "api",
)
"""From the bottom up. A room knows itself and those before it."""


def _room(dotted: str) -> str:
    """The layer of a module: ``dualtrack.chat.run_turn`` → ``chat``; a top-level module → nothing."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and (LIBRARY / parts[1] / "__init__.py").is_file() else ""


def _imports(source: str) -> set[str]:
    """The library's modules that a source imports, at any depth, also for type checking."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dualtrack":
            module = str(node.module)
            modules |= (
                {f"{module}.{alias.name}" for alias in node.names} if module == "dualtrack" else {module}
            )
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name.split(".")[0] == "dualtrack"}
    return modules


def _upward(module: str, source: str) -> list[str]:
    height = ROOMS.index(_room(module))
    return [
        f"{module} imports {imported}"
        for imported in sorted(_imports(source))
        if ROOMS.index(_room(imported)) > height
    ]


def test_imports_run_downwards() -> None:
    wrong: list[str] = []
    for path in sorted(LIBRARY.rglob("*.py")):
        relative = path.relative_to(LIBRARY).with_suffix("")
        module = ".".join(("dualtrack", *(part for part in relative.parts if part != "__init__")))
        wrong += _upward(module, path.read_text(encoding="utf-8"))
    assert wrong == []


def test_every_room_is_in_the_order() -> None:
    rooms = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert rooms == set(ROOMS) - {""}


def test_an_upward_import_is_reported() -> None:
    """In both forms, and also under TYPE_CHECKING."""
    source = "if TYPE_CHECKING:\n    from dualtrack.api.models import ChatBody\nfrom dualtrack import chat\n"
    assert _upward("dualtrack.storage.chats", source) == [
        "dualtrack.storage.chats imports dualtrack.api.models",
        "dualtrack.storage.chats imports dualtrack.chat",
    ]
