"""The library's rooms: imports run downwards only, so that what lies below can be read without what lies above."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

LIBRARY: Final = Path(__file__).parents[2] / "layers" / "core" / "python" / "dualtrack"

ROOMS: Final = (
    "",  # plain values on the landing
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
    """The room of a module: ``dualtrack.chat.run_turn`` → ``chat``; a value on the landing → nothing."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and (LIBRARY / parts[1] / "__init__.py").is_file() else ""


def _imports(source: str) -> set[str]:
    """The library's modules that a source imports, at any depth, for type checking too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dualtrack":
            module = str(node.module)
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "dualtrack" else {module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "dualtrack"}
    return found


def _upward(module: str, source: str) -> list[str]:
    height = ROOMS.index(_room(module))
    return [f"{module} imports {one}" for one in sorted(_imports(source)) if ROOMS.index(_room(one)) > height]


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


def test_an_import_upwards_is_seen() -> None:
    """In both forms, and where only the type checker reads it."""
    source = "if TYPE_CHECKING:\n    from dualtrack.api.models import ChatBody\nfrom dualtrack import chat\n"
    assert _upward("dualtrack.storage.chats", source) == [
        "dualtrack.storage.chats imports dualtrack.api.models",
        "dualtrack.storage.chats imports dualtrack.chat",
    ]
