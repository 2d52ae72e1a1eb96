"""What stands on both sides of a comparison, of `+` and of arithmetic, as the embedded engine has to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token, Tree

from dualtrack.tools.graph.calls import Typed, as_text
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.kinds import (
    FLOAT,
    INTEGER,
    NUMBER,
    TEXT,
    TRUTH,
    UNKNOWN,
    Kind,
    common,
    list_of,
    one_kind,
    require_alike,
)
from dualtrack.tools.graph.trees import Part, call, case, is_null, joined, made, operand, whole, word

if TYPE_CHECKING:
    from collections.abc import Sequence


def compared(parts: list[Typed], operators: list[str]) -> Typed:
    """``a < b < c`` is ``a < b AND b < c``."""
    rows = []
    for left, right, operator in zip(parts, parts[1:], operators, strict=False):
        require_alike(left[1], right[1])
        rows.append(made(operand(left[0]), operator, operand(right[0])))
    return joined(rows, "AND"), TRUTH


def computed(parts: list[Typed], operators: list[str]) -> Typed:
    """Operators of one level, from left to right; ``+`` also joins texts and lists."""
    row, between, kind, join = [parts[0]], list[str](), parts[0][1], _numbers
    for operator, right in zip(operators, parts[1:], strict=True):
        if operator == "+" and "list" in (kind.name, right[1].name):
            row, between, join = [_lists(join(row, between, kind), right)], [], _numbers
            kind = row[0][1]
            continue
        if operator == "+" and TEXT in (kind, right[1]):
            fitting, result = _texts, TEXT
        elif operator == "+" and kind == right[1] == UNKNOWN:  # texts, perhaps
            fitting, result = _added, UNKNOWN
        else:
            fitting, result = _numbers, _number_of(kind, right[1], operator)
        if join is not fitting:
            row, between, join = [join(row, between, kind)], [], fitting
        row.append(right)
        between.append(operator)
        kind = result
    return join(row, between, kind)


def _numbers(row: Sequence[Typed], between: Sequence[str], kind: Kind) -> Typed:
    if len(row) == 1:
        return row[0][0], kind
    parts: list[Part | str] = [operand(row[0][0])]
    for operator, (tree, _) in zip(between, row[1:], strict=True):
        parts += [operator, operand(tree)]
    return made(*parts), kind


def _texts(row: Sequence[Typed], _: Sequence[str], kind: Kind) -> Typed:
    """Texts joined; the engine takes a null for an empty one."""
    together = joined([as_text(*part) for part in row], "+")
    missing = [is_null(tree) for tree, _ in row if not is_given(tree)]
    return (case(joined(missing, "OR"), word("NULL"), otherwise=together) if missing else together), kind


def _added(row: Sequence[Typed], _: Sequence[str], kind: Kind) -> Typed:
    missing = joined([is_null(tree) for tree, _ in row], "OR")
    return case(missing, word("NULL"), otherwise=joined([tree for tree, _ in row], "+")), kind


def _number_of(left: Kind, right: Kind, operator: str) -> Kind:
    if operator == "^":
        return FLOAT
    both = {left.name, right.name}
    if both == {"integer"}:
        return INTEGER
    if "float" in both and both <= {"integer", "float", "number"}:
        return FLOAT
    if left.is_number or right.is_number or operator != "+":
        return NUMBER
    return UNKNOWN


def _lists(left: Typed, right: Typed) -> Typed:
    if UNKNOWN in (left[1], right[1]):
        raise QueryFailed(
            "what + adds to a list is not known here: write list_concat(a, b) or list_append(a, x)."
        )
    if left[1].name == right[1].name:
        one_kind([left[1].element, right[1].element], "a list has elements")
        kind = list_of(common([left[1].element, right[1].element]), nulls=left[1].nulls or right[1].nulls)
        return call("list_concat", left[0], right[0]), kind
    if left[1].name == "list":
        one_kind([left[1].element, right[1]], "a list has elements")
        return call("list_append", left[0], right[0]), left[1]
    one_kind([right[1].element, left[1]], "a list has elements")
    return call("list_concat", whole("[", left[0], "]"), right[0]), right[1]


def is_given(tree: Tree[Token]) -> bool:
    """Whether it is a literal, which is not null."""
    if (
        tree.data == "made" and len(tree.children) == 2 and isinstance(tree.children[1], Tree)
    ):  # a negative one
        tree = tree.children[1]
    return tree.data == "literal" and getattr(tree.children[0], "type", "") != "NULL"
