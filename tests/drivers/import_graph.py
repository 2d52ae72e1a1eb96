"""What the sources import, lazy imports included: which modules a function may load, and whether there are circles.

An import counts anywhere: at the top, in a function, in a method; so does a literal name in a call of `import_module`,
`__import__` or `on_demand`. ``if TYPE_CHECKING`` blocks count only where it says so. What a call of `parts` or `values`
finds (`dualtrack.plugin`), and every provider's module where any may be imported (`dualtrack.models.provider`), count
where it matters what a function may load.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, get_args

from dualtrack.models.provider import PROVIDERS
from dualtrack.plugin import Part, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_IMPORTING_CALLS = frozenset({"import_module", "__import__", "on_demand"})
_FINDING_CALLS = frozenset({"parts", "values"})
_PROVIDERS = "dualtrack.models.providers."


@dataclass(frozen=True, slots=True)
class Import:
    """A module that a source names. ``name``: what is imported from it, possibly a module; otherwise empty."""

    module: str
    name: str
    source: Path
    line: int

    def __str__(self) -> str:
        return f"{self.module} ({self.source.parent.name}/{self.source.name}:{self.line})"


def outside_imports(entry: Path, roots: Sequence[Path]) -> set[Import]:
    """Imports of modules outside the roots, in any source reachable from the entry."""
    outside: set[Import] = set()
    seen: set[Path] = set()
    waiting = [entry]
    while waiting:
        source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        for imported in (*imports_of(source, _package(source, roots)), *_found_by(source)):
            inside = list(_sources(imported, roots))
            waiting += inside
            if not inside:
                outside.add(imported)
    return outside


def circle_in(roots: Mapping[Path, Sequence[Path]]) -> list[Path]:
    """A circle of imports among the sources, imports of types included; its first source comes last again. Empty if
    there is none. ``roots``: the folders with the packages, and the sources of each."""
    graph = {
        source: {
            path
            for imported in imports_of(source, _package(source, [root]), with_types=True)
            if (path := _source(imported, roots)) and path != source
        }
        for root, sources in roots.items()
        for source in sources
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[Path] = error.args[1]
        return circle
    return []


def imports_of(source: Path, package: str = "", *, with_types: bool = False) -> tuple[Import, ...]:
    """The imports of a source; ``package`` is the base of its relative ones. ``with_types``: also those that only a
    type checker reads."""
    return _imports_in(source.read_text(encoding="utf-8"), source, package, with_types)


@cache
def _imports_in(text: str, source: Path, package: str, with_types: bool) -> tuple[Import, ...]:
    tree = ast.parse(text)
    nodes = ast.walk(tree) if with_types else _executed(tree)
    return tuple(
        Import(module, name, source, node.lineno)  # type: ignore[attr-defined]
        for node in nodes
        for module, name in _named(node, package)
    )


def _found_by(source: Path) -> Iterator[Import]:
    """The modules of plug-ins and of providers that a source asks for."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            first, last = node.values[0], node.values[-1]
            if (
                isinstance(first, ast.Constant)
                and isinstance(last, ast.Constant)
                and first.value == _PROVIDERS
            ):
                yield from (
                    Import(f"{_PROVIDERS}{name}{last.value}", "", source, node.lineno) for name in PROVIDERS
                )
        if isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in _FINDING_CALLS:
            part = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if part in get_args(Part):
                yield from (Import(module.__name__, "", source, node.lineno) for module in parts(part))  # type: ignore[arg-type]


def is_there(imported: Import, folders: Sequence[Path]) -> bool:
    """Whether one of the folders has the module, each part of its name inside the one before."""
    return any(_find(imported.module, folder) for folder in folders)


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node except those that only a type checker reads."""
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
    root = max((root for root in roots if source.is_relative_to(root)), key=lambda root: len(root.parts))
    return ".".join(source.parent.relative_to(root).parts)


def _sources(imported: Import, roots: Sequence[Path]) -> Iterator[Path]:
    """The files that an import executes: each parent package, the module, and the name if it is a module."""
    parts = imported.module.split(".")
    names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    for root in roots:
        paths = [_find(name, root) for name in names]
        if all(paths):
            yield from (
                path
                for path in (*paths, _find(f"{imported.module}.{imported.name}", root))
                if path and path.is_file()
            )


def _source(imported: Import, roots: Iterable[Path]) -> Path | None:
    """The source that an import names, without the packages around it."""
    names = (f"{imported.module}.{imported.name}", imported.module)
    found = (_find(name, root) for name in names for root in roots)
    return next((path for path in found if path and path.is_file()), None)


@cache
def _find(module: str, folder: Path) -> Path | None:
    """The file of a module in a folder, or its directory if it is a namespace package."""
    path = folder.joinpath(*module.split("."))
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    compiled = path.parent.glob(f"{path.name}.*.so") if path.parent.is_dir() else ()
    file = next((candidate for candidate in (*candidates, *compiled) if candidate.is_file()), None)
    return file or (path if path.is_dir() else None)
