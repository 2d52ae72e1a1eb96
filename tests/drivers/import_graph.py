"""Every module that a function can come to import, read from the sources: lazy imports too, types not.

An import counts wherever it stands, at the top, in a function, in a method, and so does a literal name in a call of
`import_module`, `__import__` or `on_demand`. What stands under ``if TYPE_CHECKING`` is never executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_IMPORTING_CALLS = frozenset({"import_module", "__import__", "on_demand"})


@dataclass(frozen=True, slots=True)
class Import:
    """A module that a source names. ``name``: what is taken from it, itself perhaps a module; else empty."""

    module: str
    name: str
    source: Path
    line: int

    def __str__(self) -> str:
        return f"{self.module} ({self.source.parent.name}/{self.source.name}:{self.line})"


def outside_imports(entry: Path, roots: Sequence[Path]) -> set[Import]:
    """The imports of modules that are in none of the roots, by any source that is reached from the entry."""
    found: set[Import] = set()
    seen: set[Path] = set()
    left = [entry]
    while left:
        source = left.pop()
        if source in seen:
            continue
        seen.add(source)
        for one in imports_of(source, _package(source, roots)):
            inside = list(_sources(one, roots))
            left += inside
            if not inside:
                found.add(one)
    return found


def imports_of(source: Path, package: str = "") -> tuple[Import, ...]:
    """The imports that stand in a source; ``package`` is what its relative ones begin from."""
    nodes = _executed(ast.parse(source.read_text(encoding="utf-8")))
    return tuple(
        Import(module, name, source, node.lineno)  # type: ignore[attr-defined]
        for node in nodes
        for module, name in _named(node, package)
    )


def is_there(one: Import, folders: Sequence[Path]) -> bool:
    """Whether a module is in one of the folders, each part of its name in the one before."""
    return any(_find(one.module, folder) for folder in folders)


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker reads."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and _is_for_types(child.test):
            for other in child.orelse:
                yield from _executed(other)
        else:
            yield from _executed(child)


def _is_for_types(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _named(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = _absolute("." * node.level + (node.module or ""), package)
        yield from ((module, alias.name) for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in _IMPORTING_CALLS:
        literal = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        names = (value for value in literal if isinstance(value, str))
        yield from ((_absolute(name, package), "") for name in names)


def _absolute(name: str, package: str) -> str:
    """``.part`` in the package; a name without a dot before it is absolute."""
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    parts = package.split(".")
    base = parts[: len(parts) - level + 1]
    return ".".join((*base, name[level:])) if name[level:] else ".".join(base)


def _package(source: Path, roots: Sequence[Path]) -> str:
    (root,) = [root for root in roots if source.is_relative_to(root)]
    return ".".join(source.parent.relative_to(root).parts)


def _sources(one: Import, roots: Sequence[Path]) -> Iterator[Path]:
    """The files that an import executes: of each package on the way, of the module, of the name if it is one."""
    parts = one.module.split(".")
    names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    for root in roots:
        found = [_find(name, root) for name in names]
        if all(found):
            yield from (
                path for path in (*found, _find(f"{one.module}.{one.name}", root)) if path and path.is_file()
            )


@cache
def _find(module: str, folder: Path) -> Path | None:
    """The file of a module in a folder, or its directory if it is a namespace package."""
    path = folder.joinpath(*module.split("."))
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    compiled = path.parent.glob(f"{path.name}.*.so") if path.parent.is_dir() else ()
    found = next((one for one in (*candidates, *compiled) if one.is_file()), None)
    return found or (path if path.is_dir() else None)
