"""Patterns of a MATCH or a subquery: within one, openCypher matches each relationship at most once.

The engine does not. A path of variable length gets the engine's word TRAIL; two relationships that may be the same get
a condition: that their ids differ or, with variable lengths, that the whole path is a trail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from dualtrack.tools.graph import trees
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.kinds import NODE, PATH, RELATIONSHIP, TRAIL, UNKNOWN, require_alike
from dualtrack.tools.graph.trees import Part, call, made, subtrees, word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.tools.graph.kinds import Kind

MAX_RELATIONSHIPS: Final = 30
"""Maximum relationships of a MATCH: each is compared with each."""


@dataclass(frozen=True, slots=True)
class _Relationship:
    pattern: int
    name: str
    types: frozenset[str]
    long: bool

    def may_be(self, other: _Relationship) -> bool:
        return not self.types or not other.types or bool(self.types & other.types)


@dataclass(slots=True)
class Patterns:
    """Rewritten patterns: ``parts`` with commas, the ``conditions`` that they need, and their variables' kinds."""

    fresh: Callable[[], str]
    expression: Callable[[Tree[Token]], tuple[Tree[Token], Kind]]
    properties: Mapping[str, Kind]
    parts: list[Part] = field(default_factory=list)
    conditions: list[Tree[Token]] = field(default_factory=list)
    variables: dict[str, Kind] = field(default_factory=dict)
    _found: list[_Relationship] = field(default_factory=list)

    def read(self, patterns: Sequence[Tree[Token]]) -> Patterns:
        named: list[str] = []
        relationships = sum(len(list(pattern.find_data("relationship"))) for pattern in patterns)
        if relationships > MAX_RELATIONSHIPS:
            raise QueryFailed(f"a MATCH has at most {MAX_RELATIONSHIPS} relationships.")
        for at, pattern in enumerate(patterns):
            path = next(part for part in pattern.children if isinstance(part, Tree) and part.data == "path")
            elements: list[Part] = [
                self._element(at, element, needed=relationships > 1) for element in subtrees(path)
            ]
            given = _name_of(pattern)
            if given:
                self.variables[given] = PATH
            named.append(given)
            self.parts += [*([word(",")] if at else []), Tree("path", elements)]
        self._unique(named)
        for at, given in enumerate(named):
            if given:
                self.parts[2 * at] = made(trees.name(given), "=", self.parts[2 * at])
        return self

    def _element(self, pattern: int, tree: Tree[Token], *, needed: bool) -> Tree[Token]:
        """A node or a relationship; where it may be compared with another, one without a name gets one."""
        parts: list[Part] = [self._part(part) for part in tree.children]
        given = _name_of(tree)
        if tree.data == "node":
            if given:
                self.variables[given] = NODE
            return Tree("node", parts)
        hops = next(iter(tree.find_data("hops")), None)
        types = next(iter(tree.find_data("types")), None)
        if given:
            self.variables[given] = RELATIONSHIP if hops is None else TRAIL
        elif needed and hops is None:
            given = self.fresh()
            parts = _with_name(parts, given)
        known = (
            frozenset(str(one.children[0]).casefold() for one in subtrees(types))
            if types
            else frozenset[str]()
        )
        self._found.append(_Relationship(pattern, given, known, hops is not None))
        return Tree("relationship", parts)

    def _part(self, part: Part) -> Part:
        if not isinstance(part, Tree):
            return part
        if part.data == "hops":
            return _trail(part)
        return self._map(part) if part.data == "map" else part

    def _map(self, tree: Tree[Token]) -> Tree[Token]:
        """The properties that a node or a relationship must have."""
        parts: list[Part] = []
        key = ""
        for part in tree.children:
            if not isinstance(part, Tree) or part.data == "name":
                key = str(part.children[0]) if isinstance(part, Tree) else key
                parts.append(part)
                continue
            value, kind = self.expression(part)
            require_alike(self.properties.get(key, UNKNOWN), kind)
            parts.append(value)
        return Tree("map", parts)

    def _unique(self, named: list[str]) -> None:
        trails: set[int] = set()
        for one, other in combinations(self._found, 2):
            if not one.may_be(other):
                continue
            if not one.long and not other.long:
                if one.name == other.name:
                    continue  # the engine's own error
                ids = [call("id", trees.name(relationship.name)) for relationship in (one, other)]
                self.conditions.append(made(ids[0], "<>", ids[1]))
            elif one.pattern == other.pattern:
                trails.add(one.pattern)
            else:
                raise QueryFailed(
                    "a relationship of variable length beside another pattern that may have the same relationship: "
                    "write both as one path, or in two MATCH clauses if it may occur in both."
                )
        for pattern in sorted(trails):
            named[pattern] = named[pattern] or self.fresh()
            self.conditions.append(call("is_trail", trees.name(named[pattern])))


def _name_of(tree: Tree[Token]) -> str:
    """The variable that it is given; empty for none."""
    return next((str(part.children[0]) for part in subtrees(tree) if part.data == "name"), "")


def _with_name(parts: list[Part], given: str) -> list[Part]:
    at = next((at for at, part in enumerate(parts, 1) if part == "["), 0)
    if at:
        return [*parts[:at], trees.name(given), *parts[at:]]
    at = 2 if parts[0] == "<" else 1
    return [*parts[:at], word("["), trees.name(given), word("]"), *parts[at:]]


def _trail(hops: Tree[Token]) -> Tree[Token]:
    """A shortest path has no relationship twice."""
    if any(isinstance(part, Token) and part.type == "SHORTEST" for part in hops.children):
        return hops
    return Tree("hops", [hops.children[0], word("TRAIL"), *hops.children[1:]])
