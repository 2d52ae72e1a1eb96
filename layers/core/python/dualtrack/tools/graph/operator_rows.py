"""An expression as a row of operators and operands, and what such a row is by its form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.trees import subtrees

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS: Final[Sequence[frozenset[str]]] = (
    frozenset({"OR"}),
    frozenset({"XOR"}),
    frozenset({"AND"}),
    frozenset({"NOT"}),
    frozenset({"=", "<>", "<", "<=", ">", ">="}),
    frozenset({"IN", "CONTAINS", "STARTS WITH", "ENDS WITH", "=~", "IS NULL", "IS NOT NULL"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
    frozenset({"^"}),
)
"""openCypher 9's precedence, the loosest first; unary signs bind closest."""

NOT, COMPARISON, PREDICATE = 3, 4, 5
"""Places in `LEVELS`."""

Item = str | Tree[Token]
"""An operator, or an operand: a ``term`` without its operators."""


def items_of(tree: Tree[Token]) -> list[Item]:
    """An expression's operators and operands in a row."""
    items: list[Item] = []
    for part in subtrees(tree):
        if part.data == "operator":
            items.append(" ".join(str(token).upper() for token in part.children))
            continue
        items += [str(token).upper() for token in part.children if isinstance(token, Token)]
        kept: list[Tree[Token]] = []
        tests: list[str] = []
        for inner in subtrees(part):
            if (
                inner.data == "suffix"
                and isinstance(inner.children[0], Token)
                and inner.children[0].type == "IS"
            ):
                tests.append("IS NOT NULL" if len(inner.children) == 3 else "IS NULL")
            elif tests:
                raise QueryFailed("syntax error: put brackets around … IS NULL.")
            else:
                kept.append(inner)
        items += [Tree("term", list(kept)), *tests]
    return items


def is_binary(items: list[Item], index: int, operators: frozenset[str]) -> bool:
    """Whether one of these operators, not a sign: it stands behind an operand."""
    if not isinstance(items[index], str) or items[index] not in operators or index == 0:
        return False
    before = items[index - 1]
    return not isinstance(before, str) or before.startswith("IS ")


def list_literal(items: list[Item]) -> list[Tree[Token]] | None:
    """The elements, if an operand is a list that is written out."""
    if len(items) != 1 or isinstance(items[0], str) or len(items[0].children) != 1:
        return None
    primary = items[0].children[0]
    inner = primary.children[0] if isinstance(primary, Tree) else None
    return subtrees(inner) if isinstance(inner, Tree) and inner.data == "list" else None


def membership(tree: Tree[Token]) -> tuple[str, list[Item]] | None:
    """The variable and the list, if it is ``name IN list``."""
    items = items_of(tree)
    if len(items) < 3 or items[1] != "IN" or isinstance(items[0], str) or len(items[0].children) != 1:
        return None
    primary = items[0].children[0]
    first = primary.children[0] if isinstance(primary, Tree) else None
    return (str(first.children[0]), items[2:]) if isinstance(first, Tree) and first.data == "name" else None
