"""Rewrites a read statement so that the embedded engine computes what openCypher defines (docs/graph.md).

    MATCH …      relationships are unique in it (`patterns`)
    WITH … ORDER BY … SKIP … LIMIT   a barrier behind it, across which the engine keeps order and number of the rows
    UNION        the same columns in all parts
    expressions  (`expressions`, `calls`)

Only the tree is rewritten; the writer's allow-list sees all that comes out.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from lark import Token, Tree

from dualtrack.tools.graph import trees
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.expressions import Expressions
from dualtrack.tools.graph.kinds import UNKNOWN
from dualtrack.tools.graph.trees import joined, made, subtrees, whole, word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.tools.graph.engine import GraphValue
    from dualtrack.tools.graph.kinds import Kind
    from dualtrack.tools.graph.trees import Part

_ALL: Final = 2**62
"""More rows than there are."""

MAX_COLUMN: Final = 60
"""Maximum characters of a column's name that is made of its expression."""

_SIGNS: Final = frozenset(" _.,:()[]{}|<>=+-*/%^$'")


def right_for_the_engine(
    tree: Tree[Token], parameters: Mapping[str, GraphValue], properties: Mapping[str, Kind]
) -> Tree[Token]:
    """The statement's tree. Raises `QueryFailed` for what cannot be said to the engine, with the way to say it."""
    used = set(trees.names_in(tree))
    fresh = (name for number in count() if (name := f"_{number}") not in used)
    parts: list[Part] = []
    columns: list[str] | None = None
    unions = {
        " ".join(
            [
                "UNION",
                *(str(token).upper() for token in tree.children[at + 1 : at + 2] if isinstance(token, Token)),
            ]
        )
        for at, part in enumerate(tree.children)
        if isinstance(part, Token) and part.type == "UNION"
    }
    if len(unions) > 1:
        raise QueryFailed("UNION and UNION ALL cannot be mixed in a query.")
    for part in tree.children:
        if not isinstance(part, Tree):
            parts.append(part)
            continue
        one = _Single(Expressions(parameters, properties, lambda: next(fresh)))
        parts.append(one.read(part))
        if columns is not None and columns != one.columns:
            raise QueryFailed(
                "all parts of a UNION need the same columns in the same order: name them with AS."
            )
        columns = one.columns
    return Tree("start", parts)


class _Single:
    """A statement without UNION."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._scope: list[str] = []
        self.columns: list[str] = []

    def read(self, tree: Tree[Token]) -> Tree[Token]:
        parts: list[Part] = []
        for clause in subtrees(tree):
            parts += getattr(self, f"_{clause.data}")(clause)
        return Tree("single", parts)

    def _match(self, tree: Tree[Token]) -> list[Part]:
        inside = subtrees(tree)
        found = [part for part in inside if part.data == "pattern"]
        rewritten = self._expressions.patterns(found)
        self._add(rewritten.variables)
        conditions = list(rewritten.conditions)
        conditions += [
            self._expressions.read(subtrees(part)[0])[0] for part in inside if part.data == "where"
        ]
        head = [
            part for part in tree.children if isinstance(part, Token) and part.type in ("OPTIONAL", "MATCH")
        ]
        return [*head, *rewritten.parts, *([word("WHERE"), joined(conditions, "AND")] if conditions else [])]

    def _unwind(self, tree: Tree[Token]) -> list[Part]:
        value, name = subtrees(tree)
        read, kind = self._expressions.unwound(value)
        self._add({str(name.children[0]): kind.element})
        return [word("UNWIND"), read, word("AS"), name]

    def _with(self, tree: Tree[Token]) -> list[Part]:
        inside = subtrees(tree)
        projection, ordered = self._projection(inside[0], last=False)
        where = inside[1] if len(inside) > 1 else None
        parts: list[Part] = [word("WITH"), projection]
        if ordered:
            one = trees.name(self._expressions.fresh())
            kept = whole(*_listed([trees.name(name) for name in self._scope]))
            parts += [word("UNWIND"), whole("[", trees.number(1), "]"), word("AS"), one, word("WITH"), kept]
        return [*parts, *([word("WHERE"), self._expressions.read(subtrees(where)[0])[0]] if where else [])]

    def _return(self, tree: Tree[Token]) -> list[Part]:
        return [word("RETURN"), self._projection(subtrees(tree)[0], last=True)[0]]

    def _projection(self, tree: Tree[Token], *, last: bool) -> tuple[Tree[Token], bool]:
        """The projection, and whether it orders or cuts the rows. The scope becomes that of its items."""
        expressions = self._expressions
        scope, kinds = dict.fromkeys(self._scope), dict(expressions.kinds)
        items: list[Tree[Token]] = []
        columns: dict[str, Kind] = {}
        if any(part == "*" for part in tree.children):
            items = [trees.name(name) for name in scope]
            columns = {name: kinds.get(name, UNKNOWN) for name in scope}
        for item in (part for part in subtrees(tree) if part.data == "item"):
            value, *alias = subtrees(item)
            read, kind = expressions.read(value)
            name = str(alias[0].children[0]) if alias else _said(value)
            is_plain = read.data in ("name", "property") and not alias
            items.append(read if is_plain else made(read, "AS", trees.name(name)))
            columns[name] = kind
        if not items:
            raise QueryFailed("there is nothing that * could stand for.")
        parts: list[Part] = [word("DISTINCT")] if any(_is(part, "DISTINCT") for part in tree.children) else []
        parts += _listed(items)
        expressions.kinds = {**kinds, **columns}  # ORDER BY may name both
        ends = {part.data: part for part in subtrees(tree) if part.data in ("order", "skip", "limit")}
        if "order" in ends:
            sorts = [self._sort(part) for part in subtrees(ends["order"])]
            parts += [word("ORDER"), word("BY"), *_listed(sorts)]
            if not last and len(ends) == 1:
                ends["limit"] = Tree("limit", [word("LIMIT"), trees.number(_ALL)])
        for end in ("skip", "limit"):
            if end in ends:
                parts.append(Tree("rows", list(ends[end].children)))
        expressions.kinds = columns
        self._scope = list(columns)
        self.columns = list(columns)
        return whole(*parts), bool(ends)

    def _sort(self, tree: Tree[Token]) -> Tree[Token]:
        value = self._expressions.read(subtrees(tree)[0])[0]
        return whole(value, *(part for part in tree.children if isinstance(part, Token)))

    def _add(self, variables: Mapping[str, Kind]) -> None:
        self._expressions.kinds = {**self._expressions.kinds, **variables}
        self._scope += [name for name in variables if name not in self._scope]


def _said(tree: Tree[Token]) -> str:
    """An expression as the name of its column."""
    said, end = "", 0
    for token in tree.scan_values(lambda _: True):
        start = token.start_pos or 0
        said += f" {token}" if end and start > end else str(token)
        end = start + len(token)
    said = "".join(sign for sign in said if sign.isalnum() or sign in _SIGNS)
    return said if len(said) <= MAX_COLUMN else f"{said[: MAX_COLUMN - 1]}…"


def _listed(items: Sequence[Part]) -> list[Part]:
    return [part for item in items for part in (word(","), item)][1:]


def _is(part: Any, type_: str) -> bool:
    return isinstance(part, Token) and part.type == type_
