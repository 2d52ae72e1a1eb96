"""The error trees drawn in `dualtrack.errors` agree with the classes."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY: Final = Path(__file__).parents[2] / "layers" / "core" / "python" / "dualtrack"
BUILT_IN: Final = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
)
HERE: Final = "errors.py"

_LINE: Final = re.compile(r"^(?P<indent>[│├└─ ]*)(?P<name>\w+)(?: {2,}(?:(?P<module>[\w/]+\.py): )?\S.*)?$")


def drawn() -> Iterator[tuple[str, str, str]]:
    """Module, name and base of each error; the base is empty for the root of a tree. A line without a module has that
    of its root."""
    path: list[tuple[str, str]] = []
    for line in (errors.__doc__ or "").splitlines()[2:]:
        if not line:
            continue
        match = _LINE.match(line)
        assert match, line
        depth = len(match["indent"]) // 4
        module = match["module"] or (path[0][0] if depth else HERE)
        yield module, match["name"], path[depth - 1][1] if depth else ""
        path[depth:] = [(module, match["name"])]


def defined() -> Iterator[tuple[str, str, str]]:
    """The same, from the source of the core: a plug-in draws its own, if it has many."""
    classes = [
        (str(path.relative_to(LIBRARY)), node.name, [ast.unparse(base) for base in node.bases])
        for path in sorted(LIBRARY.rglob("*.py"))
        if LIBRARY / "plugins" not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    known = set(BUILT_IN)
    while derived := {name for _, name, bases in classes if known & set(bases)} - known:
        known |= derived
    for module, name, bases in classes:
        for base in known & set(bases):
            yield module, name, "" if base in BUILT_IN else base


def test_the_drawing_shows_every_error_in_its_place() -> None:
    assert sorted(drawn()) == sorted(defined())
