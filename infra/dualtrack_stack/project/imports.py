"""Whether the function of a project's tools has everything that they import.

Locally a tool can import every package of the project's environment, those of its group `dev` too; on AWS those of its
layer alone. The sources are read, and nothing is imported.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Final

from dualtrack_stack.project.function import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SDK: Final = frozenset({"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"})
"""Top-level modules of the AWS SDK that the Python runtime includes (AWS Lambda Developer Guide, "Building Lambda
functions with Python", section "Runtime-included SDK versions"; what it needs is in the SDK's own metadata).
The runtime interface client and what that needs are there too, but are nothing that a function may count on.
"""


REMOVED: Final = frozenset(
    {
        # Python 3.12, "What's New", section "Removed"
        "asynchat", "asyncore", "distutils", "imp", "smtpd",
        # Python 3.13: PEP 594, and 2to3
        "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
        "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
    }
)  # fmt: skip
"""Standard library modules of 3.11 that the functions' 3.13 no longer has."""

STANDARD: Final = frozenset(sys.stdlib_module_names) - REMOVED


def missing_imports(root: Path, packages: Path) -> list[str]:
    """A line for each import of a module that neither the folder of packages nor Lambda has.

    Imports for type checkers, and those in a ``try`` that expects them to fail, may miss.
    """
    there = {path.name.partition(".")[0] for path in packages.iterdir()}
    there |= {*STANDARD, *SDK, "dualtrack", TOOLS}
    return [
        f"{path.relative_to(root)}:{line}: {module} is not in what the function has, Python 3.13, the project's"
        f" dependencies and {TOOLS}/: run uv add with the name of its package"
        for path in sorted((root / TOOLS).rglob("*.py"))
        if path.is_file()
        for line, module in imported(ast.parse(path.read_bytes()))
        if module not in there
    ]


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and top-level module of each absolute import that must succeed."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name.partition(".")[0]) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.module and not child.level:
                yield child.lineno, child.module.partition(".")[0]
        else:
            yield from _within(child)


def _within(node: ast.AST) -> Iterator[tuple[int, str]]:
    skipped = node.body if isinstance(node, ast.If | ast.Try) and _may_miss(node) else []
    rest = [child for child in ast.iter_child_nodes(node) if child not in skipped]
    statements = [child for child in rest if isinstance(child, ast.stmt)]
    yield from imported(ast.Module(statements, []))
    for child in rest:
        if not isinstance(child, ast.stmt):
            yield from imported(child)


def _may_miss(node: ast.If | ast.Try) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    caught = {ast.unparse(handler.type) if handler.type else "Exception" for handler in node.handlers}
    return any(
        name in text for text in caught for name in ("ImportError", "ModuleNotFoundError", "Exception")
    )
