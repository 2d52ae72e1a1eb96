"""Every class of the library whose values are stored."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from dualtrack.codec import stored_classes

from tests.drivers.documents import ROOT

LIBRARY: Final = ROOT / "layers" / "core" / "python"
ITSELF: Final = "dualtrack.codec"


def library_classes() -> tuple[type, ...]:
    """All that are marked with `stored`; a mark is made as its module is imported."""
    for path in sorted((LIBRARY / "dualtrack").rglob("*.py")):
        module = ".".join(path.relative_to(LIBRARY).with_suffix("").parts)
        if module != ITSELF and "\n@stored" in path.read_text(encoding="utf-8"):
            import_module(module)
    return tuple(kind for kind in stored_classes() if kind.__module__.startswith("dualtrack."))
