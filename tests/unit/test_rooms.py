"""The library's layers: imports run downwards only, so that a lower layer can be read without the upper ones."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from dualtrack.models.provider import PROVIDERS
from dualtrack.plugin import names
from dualtrack_stack.roots import function_folders

from tests.drivers.import_graph import circle_in, imports_of

ROOT: Final = Path(__file__).parents[2]
LIBRARY: Final = ROOT / "layers" / "core" / "python" / "dualtrack"
TESTS: Final = ROOT / "tests"

ROOMS: Final = (
    "",  # plain values at the top level
    "runtime",
    "models",
    "knowledge",
    "memory",
    "credits",
    "storage",
    "streaming",
    "tools",
    "corpora",
    "chat",
    "api",
    "plugins",
)
"""From the bottom up. A room knows itself and those before it."""


def _room(dotted: str) -> str:
    """The layer of a module: ``dualtrack.chat.run_turn`` → ``chat``; a top-level module → nothing."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and (LIBRARY / parts[1] / "__init__.py").is_file() else ""


def _upward(path: Path, module: str) -> list[str]:
    """Imports of a higher layer, at any depth, also for type checking."""
    height = ROOMS.index(_room(module))
    imported = {
        f"{found.module}.{found.name}" if found.module == "dualtrack" else found.module
        for found in imports_of(path, with_types=True)
        if found.module.split(".")[0] == "dualtrack"
    }
    return [f"{module} imports {name}" for name in sorted(imported) if ROOMS.index(_room(name)) > height]


def test_imports_run_downwards() -> None:
    wrong: list[str] = []
    for path in sorted(LIBRARY.rglob("*.py")):
        relative = path.relative_to(LIBRARY).with_suffix("")
        wrong += _upward(path, ".".join(("dualtrack", *relative.parts)))
    assert wrong == []


@pytest.mark.parametrize("plugin", names())
def test_a_plug_in_knows_the_core_and_itself(plugin: str) -> None:
    """And nobody else knows a plug-in, not even for type checking: `dualtrack.plugin` finds them, and
    `tests.drivers.plugin_parts` what is of them in the tests."""
    own = (LIBRARY / "plugins" / plugin, TESTS / "plugins" / plugin)
    outside = [
        path
        for root in (LIBRARY, ROOT / "infra", ROOT / "functions", TESTS, ROOT / "bench")
        for path in sorted(root.rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in own)
    ]
    assert [f"{path} imports {name}" for path in outside for name in _imported_of(plugin, path)] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_of_the_model_is_known_to_itself_alone(provider: str) -> None:
    """Not even to other providers: `dualtrack.models.provider` finds them."""
    package = f"dualtrack.models.providers.{provider}."
    found = [
        f"{path} imports {imported.module}"
        for root in (LIBRARY, ROOT / "infra", ROOT / "functions")
        for path in sorted(root.rglob("*.py"))
        if not path.is_relative_to(LIBRARY / "models" / "providers" / provider)
        for imported in imports_of(path, with_types=True)
        if f"{imported.module}.{imported.name}.".startswith(package)
    ]
    assert found == []


def _imported_of(plugin: str, path: Path) -> list[str]:
    """The modules of a plug-in and of its tests that a source imports."""
    named = [f"{found.module}.{found.name}" for found in imports_of(path, with_types=True)]
    folders = (f"dualtrack.plugins.{plugin}.", f"tests.plugins.{plugin}.")
    return [name for name in named if f"{name}.".startswith(folders)]


def test_an_import_of_a_plug_in_is_reported(tmp_path: Path) -> None:
    """Of a module of it, or of the whole, also under TYPE_CHECKING."""
    source = tmp_path / "run_turn.py"
    source.write_text(
        "if TYPE_CHECKING:\n    from dualtrack.plugins import some\nimport dualtrack.plugins.some.store\n"
        "from dualtrack.plugins.some_other import store\nfrom tests.plugins.some.crowd import crowd\n"
    )
    assert len(_imported_of("some", source)) == 3


def test_no_modules_import_each_other() -> None:
    """Nor for type checking: to understand a module, those that it imports are enough."""
    functions = list(function_folders().values())
    packages = {LIBRARY.parent: LIBRARY, ROOT / "infra": ROOT / "infra"}
    packages |= {folder: folder for folder in functions if not folder.is_relative_to(LIBRARY)}
    assert circle_in({root: sorted(folder.rglob("*.py")) for root, folder in packages.items()}) == []


def test_a_circle_is_reported(tmp_path: Path) -> None:
    """Also one of which a part is lazy and a part for type checking."""
    sources = {
        "a.py": "from pack import b",
        "b.py": "def f():\n    import pack.c",
        "c.py": "if TYPE_CHECKING:\n    from pack.a import x",
        "d.py": "import pack.a",
    }
    (tmp_path / "pack").mkdir()
    for name, source in sources.items():
        (tmp_path / "pack" / name).write_text(source)
    files = sorted(tmp_path.rglob("*.py"))
    assert {path.name for path in circle_in({tmp_path: files})} == {"a.py", "b.py", "c.py"}
    files[2].write_text("")
    assert circle_in({tmp_path: files}) == []


def test_every_room_is_in_the_order() -> None:
    rooms = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert rooms == set(ROOMS) - {""}


def test_an_upward_import_is_reported(tmp_path: Path) -> None:
    """In both forms, and also under TYPE_CHECKING."""
    source = tmp_path / "chats.py"
    source.write_text(
        "if TYPE_CHECKING:\n    from dualtrack.api.models import ChatBody\nfrom dualtrack import chat\n"
    )
    assert _upward(source, "dualtrack.storage.chats") == [
        "dualtrack.storage.chats imports dualtrack.api.models",
        "dualtrack.storage.chats imports dualtrack.chat",
    ]
