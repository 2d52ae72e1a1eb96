"""Packages that only gather names from their parts: a part is imported when its name is asked for.

``import anthropic`` alone runs 2,900 modules, clients of other clouds and administration of organisations
among them; a call to the Messages API needs a third. Here is what the SDK would do itself with the
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
    """Those of the packages (full names) that are imported inside do not run their ``__init__``.

    A name that it takes from a part (``from .part import Name``) is taken from there when it is first
    asked for; a submodule is imported; any other name runs the ``__init__`` after all, so that there is
    nothing which the package has not got. What the ``__init__`` does beside gathering is not done before
    that: anthropic's sets up logging for ANTHROPIC_LOG and shortens the names of classes in tracebacks.
    """
    finder = _Finder(frozenset(packages))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds the named packages as the path does, with another loader; leaves all else to the path."""

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._packages:
            return None
        spec = PathFinder.find_spec(name, path, target)
        # without its source nothing is known of the names: the package is then imported as ever
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Leaves the module empty; knows where its names come from."""

    def exec_module(self, module: ModuleType) -> None:
        self._lock = threading.RLock()
        self._has_run = False
        module.__class__ = _Package

    @cached_property
    def parts(self) -> dict[str, tuple[str, str]]:
        """Where a name comes from: the part, as in ``.part``, and what it is called there."""
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
        """Only for what is not there yet, or not at all."""
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
