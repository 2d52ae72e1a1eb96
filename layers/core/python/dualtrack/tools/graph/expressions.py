"""What an expression is to the embedded engine: openCypher's precedence in brackets, its three-valued logic.

Each part becomes a tree with the same meaning for the engine, and what is known of its kind (`kinds`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from dualtrack.tools.graph import trees
from dualtrack.tools.graph.calls import CALLS, KINDS, Typed, element_at, slice_of
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.kinds import (
    DATE,
    FLOAT,
    INTEGER,
    MAP,
    NULL,
    TEXT,
    TRAIL,
    TRUTH,
    UNKNOWN,
    Kind,
    list_of,
    of_value,
    one_kind,
    require_alike,
)
from dualtrack.tools.graph.operator_rows import (
    COMPARISON,
    LEVELS,
    NOT,
    PREDICATE,
    Item,
    is_binary,
    items_of,
    list_literal,
    membership,
)
from dualtrack.tools.graph.operators import compared, computed, is_given
from dualtrack.tools.graph.patterns import Patterns
from dualtrack.tools.graph.trees import (
    Part,
    call,
    case,
    is_null,
    joined,
    made,
    operand,
    subtrees,
    whole,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.tools.graph.engine import GraphValue

_DATE_PARTS: Final = frozenset({"year", "month", "day", "quarter"})


class Expressions:
    """``kinds``: the variables in scope. ``fresh``: a name that the query does not use."""

    def __init__(
        self, parameters: Mapping[str, GraphValue], properties: Mapping[str, Kind], fresh: Callable[[], str]
    ) -> None:
        self._parameters = parameters
        self.properties = properties
        self.fresh = fresh
        self.kinds: dict[str, Kind] = {}

    def read(self, tree: Tree[Token]) -> Typed:
        """An ``expression``."""
        return self._level(items_of(tree), 0)

    # ── operators ─────────────────────────────────────────────────────────────────────────────────

    def _level(self, items: list[Item], level: int) -> Typed:
        for tried in range(level, len(LEVELS)):
            if tried == NOT and items and items[0] == "NOT":
                return self._not(items)
            at = [index for index, item in enumerate(items) if is_binary(items, index, LEVELS[tried])]
            if at:
                return self._operated(items, at, tried)
        return self._signed(items)

    def _operated(self, items: list[Item], at: list[int], level: int) -> Typed:
        if level == PREDICATE:
            return self._predicates(items, at)
        edges = [-1, *at, len(items)]
        parts = [self._level(items[a + 1 : b], level + 1) for a, b in pairwise(edges)]
        operators = [str(items[index]) for index in at]
        if level == COMPARISON:
            return compared(parts, operators)
        if level < NOT:
            return joined([tree for tree, _ in parts], operators[0]), TRUTH
        return computed(parts, operators)

    def _not(self, items: list[Item]) -> Typed:
        times = next((at for at, item in enumerate(items) if item != "NOT"), len(items))
        tree, _ = self._level(items[times:], NOT + 1)
        return made("NOT", operand(tree)) if times % 2 else tree, TRUTH

    def _predicates(self, items: list[Item], at: list[int]) -> Typed:
        tree, kind = self._level(items[: at[0]], PREDICATE + 1)
        for start, end in zip(at, [*at[1:], len(items)], strict=True):
            operator = str(items[start])
            if operator.startswith("IS"):
                tree, kind = made(operand(tree), *operator.split()), TRUTH
                continue
            right = self._level(items[start + 1 : end], PREDICATE + 1)
            if operator == "IN":
                tree = self._within((tree, kind), right, items[start + 1 : end])
            else:
                tree = made(operand(tree), *operator.split(), operand(right[0]))
            kind = TRUTH
        return tree, kind

    def _within(self, left: Typed, right: Typed, items: list[Item]) -> Tree[Token]:
        """``x IN list``: null, not false, if x is not found and the list has a null."""
        require_alike(left[1], right[1].element)
        found = made(operand(left[0]), "IN", operand(right[0]))
        literal = list_literal(items)
        if literal is not None:
            if not literal:
                return whole(word("FALSE"))
            elements = [self.read(element) for element in literal]
            if not all(is_given(tree) for tree, _ in elements):
                rows = [
                    whole(word("NULL")) if kind == NULL else made(operand(left[0]), "=", operand(tree))
                    for tree, kind in elements
                ]
                return joined(rows, "OR")
            return found
        if right[1].name == "list" and not right[1].nulls:
            return found
        variable = self.fresh()
        missing = trees.lambda_(variable, is_null(trees.name(variable)))
        nulls = call("size", call("list_filter", right[0], missing))
        return made(operand(found), "OR", operand(_null_if(made(nulls, ">", trees.number(0)))))

    def _signed(self, items: list[Item]) -> Typed:
        signs = items[:-1]
        if not items or isinstance(items[-1], str) or any(sign not in ("+", "-") for sign in signs):
            raise QueryFailed(f"syntax error: operators that do not fit: {' '.join(map(str, signs))[:60]}.")
        tree, kind = self._term(items[-1])
        return (made("-", operand(tree)) if signs.count("-") % 2 else tree), kind

    # ── operands ──────────────────────────────────────────────────────────────────────────────────

    def _term(self, term: Tree[Token]) -> Typed:
        first, *suffixes = (part for part in term.children if isinstance(part, Tree))
        tree, kind = self._primary(first)
        for suffix in suffixes:
            tree, kind = self._suffixed(tree, kind, suffix)
        return tree, kind

    def _primary(self, primary: Tree[Token]) -> Typed:
        parts = primary.children
        first = parts[0]
        if isinstance(first, Token):
            if (
                first == "("
                and len(parts) == 3
                and isinstance(parts[1], Tree)
                and parts[1].data == "expression"
            ):
                tree, kind = self.read(parts[1])
                return whole("(", tree, ")"), kind
            return self._path_exists(parts), TRUTH
        reader = getattr(self, f"_{first.data}")
        return reader(first)

    def _literal(self, tree: Tree[Token]) -> Typed:
        kinds = {"INTEGER": INTEGER, "FLOAT": FLOAT, "STRING": TEXT, "NULL": NULL}
        return tree, kinds.get(getattr(tree.children[0], "type", ""), TRUTH)

    def _parameter(self, tree: Tree[Token]) -> Typed:
        return tree, of_value(self._parameters.get(str(tree.children[0])[1:]))

    def _name(self, tree: Tree[Token]) -> Typed:
        return tree, self.kinds.get(str(tree.children[0]), UNKNOWN)

    def _suffixed(self, tree: Tree[Token], kind: Kind, suffix: Tree[Token]) -> Typed:
        inner = [part for part in suffix.children if isinstance(part, Tree)]
        if suffix.children[0] == ".":
            if not inner:
                return whole(tree, ".", "*"), UNKNOWN
            return self._property(tree, kind, str(inner[0].children[0]))
        if any(part == ":" for part in suffix.children):  # the engine's own slice
            inside = [self.read(part)[0] if isinstance(part, Tree) else part for part in suffix.children]
            return whole(operand(tree), Tree("suffix", inside)), kind
        if any(part == ".." for part in suffix.children):
            at = next(index for index, part in enumerate(suffix.children) if part == "..")
            start, end = (
                next((self.read(part)[0] for part in side if isinstance(part, Tree)), None)
                for side in (suffix.children[:at], suffix.children[at:])
            )
            return slice_of(tree, start, end), kind
        index, index_kind = self.read(inner[0])
        if index_kind == TEXT:
            literal = next(
                iter(inner[0].scan_values(lambda part: isinstance(part, Token) and part.type == "STRING")),
                None,
            )
            if literal is None or not str(literal)[1:-1].isidentifier():
                raise QueryFailed(
                    "a property is named in the query here: write n.name, not n['name'] or n[x]."
                )
            return self._property(tree, kind, str(literal)[1:-1])
        return element_at(operand(tree), index), kind.element

    def _property(self, tree: Tree[Token], kind: Kind, key: str) -> Typed:
        if kind == DATE:
            if key not in _DATE_PARTS:
                raise QueryFailed(
                    f"a date has {', '.join(sorted(_DATE_PARTS))} here; else use date_part('{key[:20]}', …)."
                )
            return call("date_part", trees.text(key), tree), INTEGER
        inner = tree if tree.data in ("name", "property") else whole("(", tree, ")")
        found = UNKNOWN if kind in (MAP, UNKNOWN) else self.properties.get(key, UNKNOWN)
        return Tree("property", [inner, word("."), trees.name(key)]), found

    def _list(self, tree: Tree[Token]) -> Typed:
        inside = subtrees(tree)
        within = membership(inside[0]) if len(inside) == 1 else None
        if within is not None:  # [x IN list] is the list
            return self._source(within[1])
        elements = [self.read(part) for part in inside]
        kind = one_kind((kind for _, kind in elements), "a list has elements")
        parts: list[Part | str] = []
        for element, _ in elements:
            parts += [",", element] if parts else [element]
        return whole("[", *parts, "]"), list_of(kind, nulls=not all(is_given(tree) for tree, _ in elements))

    def _comprehension(self, tree: Tree[Token]) -> Typed:
        first, *rest = subtrees(tree)
        within = membership(first)
        if within is None:
            raise QueryFailed("a list comprehension is [x IN list WHERE condition | value].")
        variable, source = within
        where = next((part for part in rest if part.data == "where"), None)
        body = next((part for part in rest if part.data == "expression"), None)
        values, kind = self._source(source)
        with_kind = self._inside(variable, kind.element)
        if where is not None:
            condition, _ = with_kind(subtrees(where)[0])
            values = call("list_filter", values, trees.lambda_(variable, condition))
        if body is None:
            return values, kind
        result, result_kind = with_kind(body)
        return call("list_transform", values, trees.lambda_(variable, result)), list_of(result_kind)

    def unwound(self, tree: Tree[Token]) -> Typed:
        """The list of an UNWIND."""
        return self._source(tree)

    def _source(self, tree: Tree[Token] | list[Item]) -> Typed:
        """A list whose elements are read."""
        values, kind = self.read(tree) if isinstance(tree, Tree) else self._level(tree, 0)
        _require_list(kind)
        return values, kind

    def _inside(self, variable: str, kind: Kind) -> Callable[[Tree[Token]], Typed]:
        """Reads what has a variable of its own."""

        def read(tree: Tree[Token]) -> Typed:
            outside = self.kinds
            self.kinds = {**outside, variable: kind}
            try:
                return self.read(tree)
            finally:
                self.kinds = outside

        return read

    def _quantifier(self, tree: Tree[Token]) -> Typed:
        """``any(x IN list WHERE condition)``: null if it depends on an element for which the condition is null."""
        which = str(tree.children[0]).upper()
        name_, source, where = subtrees(tree)
        variable = str(name_.children[0])
        values, kind = self._source(source)
        condition, _ = self._inside(variable, kind.element)(subtrees(where)[0])

        def some(test: Tree[Token]) -> Tree[Token]:
            return call("size", call("list_filter", values, trees.lambda_(variable, test)))

        zero = trees.number(0)
        unsure = made(some(is_null(condition)), ">", zero)
        if which == "SINGLE":
            found = some(condition)
            several = case(made(found, ">", trees.number(1)), word("FALSE"))
            return case(unsure, several, otherwise=made(found, "=", trees.number(1))), TRUTH
        test = made("NOT", operand(condition)) if which == "ALL" else condition
        found = made(operand(made(some(test), ">", zero)), "OR", operand(_null_if(unsure)))
        return (found if which == "ANY" else made("NOT", operand(found))), TRUTH

    def _map(self, tree: Tree[Token]) -> Typed:
        """Its keys in order: the engine compares them by position."""
        if len(tree.children) == 2:
            raise QueryFailed("an empty map {} cannot be written here.")
        keys, values = subtrees(tree)[::2], subtrees(tree)[1::2]
        parts: list[Part | str] = []
        for key, value in sorted(zip(keys, values, strict=True), key=lambda pair: str(pair[0].children[0])):
            parts += [*([","] if parts else []), key, ":", self.read(value)[0]]
        return whole("{", *parts, "}"), MAP

    def _case(self, tree: Tree[Token]) -> Typed:
        """With a value to compare: as conditions, since null equals nothing."""
        subject: Typed | None = None
        written: list[Part | str] = []
        results: list[Kind] = []
        after = ""
        for part in tree.children:
            if isinstance(part, Token):
                after = part.type
                written.append(part)
                continue
            value, kind = self.read(part)
            if after == "CASE":
                subject = value, kind
                continue
            if after != "WHEN":
                results.append(kind)
            elif subject is not None:
                require_alike(subject[1], kind)
                value = made(operand(subject[0]), "=", operand(value))
            written.append(value)
        return whole(*written), one_kind(results, "the values of a CASE are")

    def _call(self, tree: Tree[Token]) -> Typed:
        function = str(subtrees(tree)[0].children[0]).lower()
        distinct = any(isinstance(part, Token) and part.type == "DISTINCT" for part in tree.children)
        arguments: list[Typed] = []
        for part in subtrees(tree)[1:]:
            arguments.append(self._argument(part, arguments[0][1].element if arguments else UNKNOWN))
        if function in ("list_filter", "list_transform", "list_reduce") and arguments:
            _require_list(arguments[0][1])
        rule = CALLS.get(function)
        if rule is not None:
            return rule(self, arguments, distinct)
        star = any(part == "*" for part in tree.children)
        values: list[Part | str] = [value for value, _ in arguments]
        kind = KINDS.get(function, UNKNOWN)
        if function in ("nodes", "rels", "relationships") and arguments and arguments[0][1] == TRAIL:
            kind = list_of(TRAIL)
        if function in ("min", "max", "coalesce", "nullif", "abs"):
            kind = one_kind([kind for _, kind in arguments], "the values are") if arguments else UNKNOWN
        elif function == "collect":
            kind = list_of(arguments[0][1] if arguments else UNKNOWN, nulls=False)
        return call(function, *(["*"] if star else values), distinct=distinct), kind

    def _argument(self, tree: Tree[Token], element: Kind) -> Typed:
        parts = tree.children
        if len(parts) == 1:
            return self.read(subtrees(tree)[0])
        if any(part == "->" for part in parts):  # the engine's own lambda
            variable, body = subtrees(tree)
            name = str(variable.children[0])
            return trees.lambda_(name, self._inside(name, element)(body)[0]), UNKNOWN
        value, type_ = subtrees(tree)
        return made(self.read(value)[0], "AS", type_), UNKNOWN

    # ── patterns ──────────────────────────────────────────────────────────────────────────────────

    def patterns(self, found: Sequence[Tree[Token]]) -> Patterns:
        return Patterns(self.fresh, self.read, self.properties).read(found)

    def _path_exists(self, parts: Sequence[Part]) -> Tree[Token]:
        """A pattern as a condition: as a subquery if it needs conditions."""
        size = next(at for at, part in enumerate(parts) if part == ")") + 1
        node = Tree("node", list(parts[:size]))
        rewritten = self.patterns([Tree("pattern", [Tree("path", [node, *parts[size:]])])])
        if not rewritten.conditions:
            return made(*rewritten.parts)
        return whole(
            "EXISTS", "{", "MATCH", *rewritten.parts, "WHERE", joined(rewritten.conditions, "AND"), "}"
        )

    def _subquery(self, tree: Tree[Token]) -> Typed:
        found = [part for part in subtrees(tree) if part.data == "pattern"]
        where = next((part for part in subtrees(tree) if part.data == "where"), None)
        rewritten = self.patterns(found)
        outside = self.kinds
        self.kinds = {**outside, **rewritten.variables}
        given = [self.read(subtrees(where)[0])[0]] if where is not None else []
        self.kinds = outside
        conditions = [*rewritten.conditions, *given]
        ends: list[Part | str] = ["WHERE", joined(conditions, "AND")] if conditions else []
        kind = INTEGER if str(tree.children[0]).upper() == "COUNT" else TRUTH
        return whole(tree.children[0], "{", "MATCH", *rewritten.parts, *ends, "}"), kind


def _require_list(kind: Kind) -> None:
    """Of a relationship of variable length, the engine repeats one row's elements for other rows."""
    if TRAIL in (kind, kind.element):
        raise QueryFailed(
            "the relationships of a path are read from the path: MATCH p = (a)-[:T*1..3]->(b), then relationships(p)."
        )


def _null_if(condition: Tree[Token]) -> Tree[Token]:
    return case(condition, word("NULL"), otherwise=word("FALSE"))
