"""Lazy imports for packages whose ``__init__`` only re-exports names of their submodules.

``import anthropic`` alone runs 2,900 modules, including clients of other clouds and administration of
organisations; a call to the Messages API needs a third of them. This module does what the SDK could do with the
``__getattr__`` of PEP 562: ``anthropic.Anthropic`` imports ``anthropic._client`` and what that needs.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import threading
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def on_demand(*packages: str) -> Iterator[None]:
    """Packages of these full names, imported inside the block, do not run their ``__init__``.

    A name that the ``__init__`` re-exports (``from .part import Name``) is imported from its submodule on first
    use; a submodule is imported; any other name runs the ``__init__`` after all, so that no name is missing.
    Until then the other effects of the ``__init__`` are missing: anthropic's sets up logging for ANTHROPIC_LOG
    and shortens class names in tracebacks.
    """
    finder = _Finder(frozenset(packages))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds the named packages on the path, but with our loader; ignores all others."""

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._packages:
            return None
        spec = PathFinder.find_spec(name, path, target)
        # without source the re-exported names are unknown: import the package as usual
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Leaves the module empty, and reads from its source which submodule each name comes from."""

    def exec_module(self, module: ModuleType) -> None:
        self._lock = threading.RLock()
        self._has_run = False
        module.__class__ = _Package

    @cached_property
    def parts(self) -> dict[str, tuple[str, str]]:
        """For each name, its submodule (``.part``) and the name there."""
        body = ast.parse(self.get_data(self.path)).body
        gathered = [node for node in body if isinstance(node, ast.ImportFrom) and node.level == 1]
        return {
            alias.asname or alias.name: (f".{node.module}", alias.name)
            for node in gathered
            for alias in node.names
            if node.module and alias.name != "*"
        }

    def run(self, module: ModuleType) -> None:
        """Run the package's ``__init__``, once."""
        with self._lock:
            if not self._has_run:
                self._has_run = True
                super().exec_module(module)


class _Package(ModuleType):
    """A package whose ``__init__`` has not run."""

    def __getattr__(self, name: str) -> Any:
        """Called only for names that are not loaded yet, or do not exist."""
        loader: _Loader = self.__dict__["__loader__"]
        if name in loader.parts:
            part, called = loader.parts[name]
            value = getattr(import_module(part, self.__name__), called)
            setattr(self, name, value)
            return value
        if find_spec(f"{self.__name__}.{name}"):
            return import_module(f".{name}", self.__name__)
        loader.run(self)
        return super().__getattribute__(name)
