"""What all files of a graph are together: its schema, and the rows that do not fit to each other.

Nodes are seen before relationships, so that an end that is not there shows. What is kept of a node is its id and its
label: 1,000,000 take some 150 MB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dualtrack.corpora.graph.rows import MAX_PROPERTIES, Edge, Node, Problem, place_of
from dualtrack.tools.graph.schema import Label, Property, RelationshipType, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dualtrack.corpora.graph.rows import Row, Scalar
    from dualtrack.tools.graph.schema import PropertyType

MAX_SHOWN: Final = 20
"""Bad rows of a file that are named; the others are counted."""

MAX_LABELS: Final = 50
MAX_TYPES: Final = 100
MAX_ENDS: Final = 300
"""Pairs of labels that relationships go between, of all types together: each is loaded as a file of its own."""

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,30}(?:[eE][+-]?[0-9]{1,2})?")
_NUMBER_CHARACTERS: Final = 60
_INT64: Final = range(-(2**63), 2**63)


@dataclass(slots=True)
class Problems:
    """The bad rows of one file: the first `MAX_SHOWN`, and how many there are."""

    count: int = 0
    shown: list[Problem] = field(default_factory=list)

    def add(self, one: Problem) -> None:
        """Take note of a row."""
        self.count += 1
        if len(self.shown) < MAX_SHOWN:
            self.shown.append(one)

    @property
    def lines(self) -> tuple[str, ...]:
        """For people; the last says how many are not shown."""
        more = self.count - len(self.shown)
        return (*map(str, self.shown), *((f"and {more:,} more",) if more else ()))


@dataclass(slots=True)
class _Table:
    columns: dict[str, PropertyType] = field(default_factory=dict)
    count: int = 0
    ends: dict[tuple[str, str], None] = field(default_factory=dict)

    def take(self, properties: Mapping[str, Scalar], *, is_text: bool) -> str:
        """Count a row; what is wrong with its properties, or nothing."""
        columns = self.columns
        for name, value in properties.items():
            known = columns.get(name)
            if known is None:
                wrong = self._wrong_column(name)
                if wrong:
                    return wrong
                columns[name] = kind_of(value, is_text=is_text)
            elif known != "STRING":
                columns[name] = _common(known, kind_of(value, is_text=is_text))
        self.count += 1
        return ""

    def _wrong_column(self, name: str) -> str:
        if len(self.columns) >= MAX_PROPERTIES:
            return f"has more than {MAX_PROPERTIES} properties with those of the rows before"
        folded = name.casefold()
        other = next((one for one in self.columns if one.casefold() == folded), "")
        return (
            f"has the property '{name}', and rows before have '{other}': case does not count" if other else ""
        )


def kind_of(value: Scalar, *, is_text: bool) -> PropertyType:
    """The column type that holds a value as it is. Of a text that is a number only one that nothing of is lost:
    ``007`` and ``1e5`` stay text."""
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        return "INT64" if value in _INT64 else "STRING"
    if isinstance(value, float):
        return "DOUBLE"
    return _kind_of_text(value) if is_text and len(value) <= _NUMBER_CHARACTERS else "STRING"


def _kind_of_text(value: str) -> PropertyType:
    if _WHOLE.fullmatch(value):
        return "INT64"
    if _DECIMAL.fullmatch(value):
        return "DOUBLE"
    return "BOOL" if value.casefold() in ("true", "false") else "STRING"


def _common(one: PropertyType, other: PropertyType) -> PropertyType:
    if one == other:
        return one
    return "DOUBLE" if {one, other} == {"INT64", "DOUBLE"} else "STRING"


class Survey:
    """Files taken in one after another, first all that have nodes, then all that have relationships."""

    def __init__(self) -> None:
        self._labels: dict[str, _Table] = {}
        self._types: dict[str, _Table] = {}
        self._label_of: dict[str, str] = {}
        self._folded: dict[str, tuple[str, str]] = {}
        self._ends = 0

    def nodes(self, name: str, rows: Iterable[Row]) -> Problems:
        """Take in the nodes of a file; what is wrong with them."""
        problems = Problems()
        for one in rows:
            if isinstance(one, Node) and (wrong := self._node(one, is_text=_is_text(name))):
                problems.add(Problem(place_of(name, one.place, "node"), wrong))
        return problems

    def edges(self, name: str, rows: Iterable[Row]) -> Problems:
        """Take in the relationships of a file, when the nodes of all files are known."""
        problems = Problems()
        for one in rows:
            if isinstance(one, Edge) and (wrong := self._edge(one, is_text=_is_text(name))):
                problems.add(Problem(place_of(name, one.place, "edge"), wrong))
        return problems

    def label_of(self, node_id: str) -> str:
        """The label of a node that was taken in."""
        return self._label_of[node_id]

    def schema(self) -> Schema:
        """What was taken in."""
        labels = (Label(name, _properties(one), one.count) for name, one in sorted(self._labels.items()))
        types = (
            RelationshipType(name, tuple(sorted(one.ends)), _properties(one), one.count)
            for name, one in sorted(self._types.items())
        )
        return Schema(tuple(labels), tuple(types))

    def _node(self, one: Node, *, is_text: bool) -> str:
        if one.node_id in self._label_of:
            return f"node_id '{one.node_id}' is there twice"
        table = self._labels.get(one.label)
        if table is None:
            wrong = self._new(one.label, "label", self._labels, MAX_LABELS)
            if wrong:
                return wrong
            table = self._labels[one.label] = _Table()
        wrong = table.take(one.properties, is_text=is_text)
        if not wrong:
            self._label_of[one.node_id] = one.label
        return wrong

    def _edge(self, one: Edge, *, is_text: bool) -> str:
        start, end = self._label_of.get(one.start), self._label_of.get(one.end)
        if start is None or end is None:
            return f"there is no node '{one.start if start is None else one.end}'"
        table = self._types.get(one.type)
        if table is None:
            wrong = self._new(one.type, "type", self._types, MAX_TYPES)
            if wrong:
                return wrong
            table = self._types[one.type] = _Table()
        ends = (start, end)
        if ends not in table.ends:
            if self._ends >= MAX_ENDS:
                return f"relationships go between more than {MAX_ENDS} pairs of labels"
            self._ends += 1
            table.ends[ends] = None
        return table.take(one.properties, is_text=is_text)

    def _new(self, name: str, what: str, known: Mapping[str, _Table], most: int) -> str:
        """What is wrong with a name that is seen for the first time: the engine's tables share one list of names."""
        if len(known) >= most:
            return f"{what} '{name}' is one too many; at most {most} are taken"
        other = self._folded.setdefault(name.casefold(), (what, name))
        if other == (what, name):
            return ""
        return f"{what} '{name}': there is the {other[0]} '{other[1]}', and the names have to differ (case does not count)"


def _is_text(name: str) -> bool:
    return not name.lower().endswith(".json")


def _properties(table: _Table) -> tuple[Property, ...]:
    return tuple(Property(name, kind) for name, kind in sorted(table.columns.items()))


def only_problems(rows: Iterable[Row]) -> Iterator[Problem]:
    """Those of the rows that cannot be taken."""
    return (one for one in rows if isinstance(one, Problem))
