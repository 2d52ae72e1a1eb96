"""Functions of openCypher that the embedded engine lacks, or computes otherwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from lark import Token, Tree

from dualtrack.tools.graph import trees
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.kinds import (
    DATE,
    FLOAT,
    INTEGER,
    NODE,
    NUMBER,
    RELATIONSHIP,
    TEXT,
    TRAIL,
    TRUTH,
    UNKNOWN,
    Kind,
    list_of,
)
from dualtrack.tools.graph.trees import call, case, cast, is_null, joined, made, operand, whole, word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Typed = tuple[Tree[Token], Kind]
"""A tree with the same meaning for the engine, and what is known of its kind."""

_LONGEST: Final = 1_000_000
"""More characters than a text has."""

_INTEGER: Final = "[-+]?[0-9]+"
_NUMBER: Final = "[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?"


class Reader(Protocol):
    def fresh(self) -> str: ...


def as_text(tree: Tree[Token], kind: Kind) -> Tree[Token]:
    """``toString``: the engine writes six decimals and True."""
    if kind == TEXT:
        return tree
    written = cast(tree, "STRING")
    if kind in (INTEGER, DATE):
        return written
    of = call("typeof", tree)
    short = call("regexp_replace", written, trees.text(r"(\\.[0-9]+?)0+$"), trees.text(r"\\1"))
    return case(
        made(of, "=", trees.text("DOUBLE")), short, made(of, "=", trees.text("BOOL")), call("lower", written),
        otherwise=written,
    )  # fmt: skip


def _literal(tree: Tree[Token] | None) -> int | None:
    """The value of an integer that is written out."""
    if tree is None:
        return None
    sign = 1
    if tree.data == "made" and len(tree.children) == 2 and tree.children[0] == "-":
        sign, tree = -1, tree.children[1]  # type: ignore[assignment]
    if (
        isinstance(tree, Tree)
        and tree.data == "literal"
        and getattr(tree.children[0], "type", "") == "INTEGER"
    ):
        return sign * int(str(tree.children[0]))
    return None


def _from_one(index: Tree[Token]) -> Tree[Token]:
    """An index from 0 as the engine's, from 1; from the end both count from -1."""
    known = _literal(index)
    if known is not None:
        return trees.number(known if known < 0 else known + 1)
    zero, one = trees.number(0), trees.number(1)
    return case(made(operand(index), "<", zero), index, otherwise=made(operand(index), "+", one))


def element_at(values: Tree[Token], index: Tree[Token]) -> Tree[Token]:
    """``list[index]``: null, not an error, where there is none."""
    at = _from_one(index)
    there = made(call("size", call("array_slice", values, at, at)), "=", trees.number(1))
    return made(values, Tree("suffix", [word("["), case(there, at), word("]")]))


def slice_of(values: Tree[Token], start: Tree[Token] | None, end: Tree[Token] | None) -> Tree[Token]:
    """``list[start..end]``, without the end, which the engine takes in."""
    first = trees.number(1) if start is None else _from_one(start)
    if end is None:
        return call("array_slice", values, first, trees.number(_LONGEST))
    size, zero, known = call("size", values), trees.number(0), _literal(end)
    if known is None:
        from_end = made(size, "+", operand(end))
        last = case(
            made(operand(end), ">=", zero), end, made(from_end, "<", zero), zero, otherwise=from_end
        )  # fmt: skip
    elif known < 0:  # the engine takes a negative one for counted from the end, with itself
        from_end = made(size, "-", trees.number(-known))
        last = case(made(from_end, "<", zero), zero, otherwise=from_end)
    else:
        last = end
    return call("array_slice", values, first, last)


def _sum(_: Reader, arguments: Sequence[Typed], distinct: bool) -> Typed:
    ((value, kind),) = arguments
    return call(
        "coalesce", call("sum", value, distinct=distinct), trees.number(0)
    ), kind if kind.is_number else NUMBER


def _percentile(which: str) -> Callable[[Reader, Sequence[Typed], bool], Typed]:
    def rule(_: Reader, arguments: Sequence[Typed], distinct: bool) -> Typed:
        value, part = (tree for tree, _ in arguments)
        return call(which, value, Tree("written", [part]), distinct=distinct), NUMBER

    return rule


def _head(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    return element_at(operand(value), trees.number(0)), kind.element


def _last(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    return element_at(operand(value), trees.number(-1)), kind.element


def _tail(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    return slice_of(value, trees.number(1), None), kind


def _is_empty(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, _kind),) = arguments
    return made(call("size", value), "=", trees.number(0)), TRUTH


def _size(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    return call("length" if kind == TRAIL else "size", value), INTEGER


def _to_string(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    return as_text(*arguments[0]), TEXT


def _parsed(value: Tree[Token], pattern: str, type_: str) -> Tree[Token]:
    """The engine computes every branch of a CASE: what cannot be converted is replaced."""
    written = cast(value, "STRING")
    fits = call("regexp_full_match", written, trees.text(pattern))
    return case(fits, cast(case(fits, written, otherwise=trees.text("0")), type_))


def _to_float(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    if kind.is_number:
        return cast(value, "DOUBLE"), FLOAT
    return _parsed(value, _NUMBER, "DOUBLE"), FLOAT


def _to_integer(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    """Towards zero, where the engine rounds."""
    ((value, kind),) = arguments
    if kind == INTEGER:
        return value, INTEGER
    if kind != TEXT and not kind.is_number:
        raise QueryFailed("toInteger() takes a number or a text here: is it either? CAST(x AS INT64) rounds.")
    exact = cast(value, "DOUBLE") if kind.is_number else _parsed(value, _NUMBER, "DOUBLE")
    whole_ = case(made(exact, "<", trees.number(0)), call("ceil", exact), otherwise=call("floor", exact))
    if kind.is_number:
        return cast(whole_, "INT64"), INTEGER
    written = cast(value, "STRING")
    fits = call("regexp_full_match", written, trees.text(_INTEGER))
    return case(fits, _parsed(value, _INTEGER, "INT64"), otherwise=cast(whole_, "INT64")), INTEGER


def _to_boolean(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    written = call("lower", cast(arguments[0][0], "STRING"))
    yes, no = (made(written, "=", trees.text(one)) for one in ("true", "false"))
    return case(yes, word("TRUE"), no, word("FALSE")), TRUTH


def _substring(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    value, start, *length = (tree for tree, _ in arguments)
    return call("substring", value, _from_one(start), *(length or [trees.number(_LONGEST)])), TEXT


def _split(reader: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    """The engine leaves out empty parts: each part gets a character in front, which is taken off again."""
    value, by = (tree for tree, _ in arguments)
    mark, variable = trees.text("\\u0001"), reader.fresh()
    marked = call("concat", mark, call("replace", value, by, call("concat", by, mark)))
    cut = trees.lambda_(
        variable, call("substring", trees.name(variable), trees.number(2), trees.number(_LONGEST))
    )
    parts = call("list_transform", call("string_split", marked, by), cut)
    return case(joined([is_null(value), is_null(by)], "OR"), word("NULL"), otherwise=parts), list_of(
        TEXT, nulls=False
    )


def _reverse(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, kind),) = arguments
    if kind.name == "list":
        return call("list_reverse", value), kind
    if kind != TEXT:
        raise QueryFailed(
            "reverse() of what is not known here: write list_reverse(x) for a list, reverse(toString(x)) for a text."
        )
    return call("reverse", value), TEXT


def _labels(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, _kind),) = arguments
    return case(is_null(value), word("NULL"), otherwise=whole("[", call("label", value), "]")), list_of(
        TEXT, nulls=False
    )


def _label(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    ((value, _kind),) = arguments
    return case(is_null(value), word("NULL"), otherwise=call("label", value)), TEXT


def _round(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    """A half upwards, where the engine goes away from zero."""
    value, *digits = (tree for tree, _ in arguments)
    if digits:
        return call("round", value, *digits), FLOAT
    return call("floor", made(cast(value, "DOUBLE"), "+", trees.number(0.5))), FLOAT


def _of_float(function: str) -> Callable[[Reader, Sequence[Typed], bool], Typed]:
    def rule(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
        return call(function, cast(arguments[0][0], "DOUBLE")), FLOAT

    return rule


def _exp(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
    return call("pow", trees.number(math.e), arguments[0][0]), FLOAT


def _end(function: str) -> Callable[[Reader, Sequence[Typed], bool], Typed]:
    def rule(_: Reader, arguments: Sequence[Typed], __: bool) -> Typed:
        return call(function, arguments[0][0]), NODE

    return rule


CALLS: Final[Mapping[str, Callable[[Reader, Sequence[Typed], bool], Typed]]] = {
    "sum": _sum,
    "percentilecont": _percentile("percentilecont"),
    "percentiledisc": _percentile("percentiledisc"),
    "head": _head,
    "last": _last,
    "tail": _tail,
    "isempty": _is_empty,
    "size": _size,
    "tostring": _to_string,
    "tofloat": _to_float,
    "tointeger": _to_integer,
    "toboolean": _to_boolean,
    "substring": _substring,
    "split": _split,
    "reverse": _reverse,
    "labels": _labels,
    "label": _label,
    "type": _label,
    "round": _round,
    "exp": _exp,
    "floor": _of_float("floor"),
    "ceil": _of_float("ceil"),
    "ceiling": _of_float("ceil"),
    "startnode": _end("start_node"),
    "endnode": _end("end_node"),
}
"""By the function's name in lower case."""

_TEXTS: Final = "concat initcap lcase left lower lpad ltrim replace right rpad rtrim string tolower toupper trim ucase upper to_string"
_INTEGERS: Final = "count length date_part datepart levenshtein octet_length"
_FLOATS: Final = "acos asin atan atan2 avg cbrt cos cot degrees ln log log10 log2 pi pow radians sin sqrt tan"
_TRUTHS: Final = (
    "contains ends_with list_contains prefix regexp_full_match starts_with suffix is_trail is_acyclic"
)
_DATES: Final = "current_date date last_day make_date to_date"

KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(_TEXTS.split(), TEXT),
    **dict.fromkeys(_INTEGERS.split(), INTEGER),
    **dict.fromkeys(_FLOATS.split(), FLOAT),
    **dict.fromkeys(_TRUTHS.split(), TRUTH),
    **dict.fromkeys(_DATES.split(), DATE),
    "range": list_of(INTEGER, nulls=False),
    "nodes": list_of(NODE, nulls=False),
    "rels": list_of(RELATIONSHIP, nulls=False),
    "relationships": list_of(RELATIONSHIP, nulls=False),
    "keys": list_of(TEXT, nulls=False),
    "sign": INTEGER,
    "id": UNKNOWN,
}
"""What other functions return."""
