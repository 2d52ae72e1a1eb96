"""What the tests of plug-ins add to the shared drivers: modules of their folders, found by their names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.plugin import names

if TYPE_CHECKING:
    from types import ModuleType

TESTS: Final = Path(__file__).parents[1] / "plugins"


def parts(name: str) -> tuple[ModuleType, ...]:
    """``tests.plugins.PLUGIN.NAME`` of each plug-in that has one."""
    return tuple(
        import_module(f"tests.plugins.{plugin}.{name}")
        for plugin in names()
        if (TESTS / plugin / f"{name}.py").is_file()
    )
