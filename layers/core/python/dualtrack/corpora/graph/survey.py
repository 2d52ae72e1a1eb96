"""Checks all files of a graph together: collects the schema, and finds rows that contradict each other.

Nodes are read before relationships, so that missing ends are found. Only a node's id and label are kept in memory:
1,000,000 nodes take about 150 MB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from dualtrack.corpora.graph.rows import LIST, MAX_PROPERTIES, EdgeRow, Node, Problem, position_of
from dualtrack.tools.graph.schema import NodeLabel, Property, RelationshipType, StoredSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.corpora.graph.rows import Row, Scalar, Value
    from dualtrack.tools.graph.schema import PropertyType

MAX_SHOWN: Final = 20
"""Maximum bad rows of a file that are listed; the others are only counted."""

MAX_LABELS: Final = 50
MAX_TYPES: Final = 100
MAX_ENDS: Final = 300
"""Maximum pairs of labels connected by relationships of any type: each pair is loaded from its own file."""

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,30}(?:[eE][+-]?[0-9]{1,2})?")
_NUMBER_CHARACTERS: Final = 60
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z?)?")
"""A day, or a moment in UTC: one with another offset stays text, since the engine keeps none."""
_INT64: Final = range(-(2**63), 2**63)


@dataclass(slots=True)
class Problems:
    """The bad rows of a file: the first `MAX_SHOWN`, and their number."""

    count: int = 0
    shown: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        """Add a bad row."""
        self.count += 1
        if len(self.shown) < MAX_SHOWN:
            self.shown.append(problem)

    @property
    def lines(self) -> tuple[str, ...]:
        """The problems as text; the last line says how many are not shown."""
        more = self.count - len(self.shown)
        return (*map(str, self.shown), *((f"and {more:,} more",) if more else ()))


@dataclass(slots=True)
class _Table:
    columns: dict[str, PropertyType] = field(default_factory=dict)
    count: int = 0
    ends: dict[tuple[str, str], None] = field(default_factory=dict)

    def take(self, properties: Mapping[str, Value], *, is_text: bool) -> str:
        """Count a row; returns what is wrong with its properties, or an empty string."""
        columns = self.columns
        for name, value in properties.items():
            known = columns.get(name)
            if known is None:
                wrong = self._wrong_column(name)
                if wrong:
                    return wrong
                columns[name] = kind_of(value, is_text=is_text)
            elif isinstance(value, tuple) != known.endswith(LIST):
                return f"has {'a list' if isinstance(value, tuple) else 'no list'} as {name}, unlike rows before it"
            elif known not in ("STRING", "STRING[]"):
                columns[name] = _common(known, kind_of(value, is_text=is_text))
        self.count += 1
        return ""

    def _wrong_column(self, name: str) -> str:
        if len(self.columns) >= MAX_PROPERTIES:
            return f"has more than {MAX_PROPERTIES} properties, including those of the rows before it"
        folded = name.casefold()
        other = next((column for column in self.columns if column.casefold() == folded), "")
        return (
            f"has the property '{name}', and rows before have '{other}': case does not count" if other else ""
        )


def kind_of(value: Value, *, is_text: bool) -> PropertyType:
    """The column type for a value. Text counts as a number only if the conversion loses nothing: ``007`` and ``1e5``
    stay text. Dates and moments are text in JSON too, as ISO 8601 writes them; a list's items have one type."""
    if isinstance(value, tuple):
        kinds = {_kind_of_item(item, is_text=is_text) for item in value}
        return f"{kinds.pop() if len(kinds) == 1 else reduce(_common, kinds)}[]"  # type: ignore[return-value]
    if isinstance(value, str) and _MOMENT.fullmatch(value) and _is_moment(value):
        return "TIMESTAMP" if "T" in value else "DATE"
    return _kind_of_item(value, is_text=is_text)


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _kind_of_item(value: Scalar, *, is_text: bool) -> PropertyType:
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


def _common(known: PropertyType, other: PropertyType) -> PropertyType:
    if known == other:
        return known
    if {known, other} == {"INT64[]", "DOUBLE[]"}:
        return "DOUBLE[]"
    if {known, other} == {"INT64", "DOUBLE"}:
        return "DOUBLE"
    return "STRING[]" if known.endswith(LIST) else "STRING"


class Survey:
    """Reads files one after another: first the nodes of all files, then the relationships."""

    def __init__(self) -> None:
        self._labels: dict[str, _Table] = {}
        self._types: dict[str, _Table] = {}
        self._label_of: dict[str, str] = {}
        self._folded: dict[str, tuple[str, str]] = {}
        self._ends = 0

    def nodes(self, name: str, rows: Iterable[Row]) -> Problems:
        """Read the nodes of a file; returns their problems."""
        problems = Problems()
        for row in rows:
            if isinstance(row, Node) and (wrong := self._node(row, is_text=_is_text(name))):
                problems.add(Problem(position_of(name, row.number, "node"), wrong))
        return problems

    def edges(self, name: str, rows: Iterable[Row]) -> Problems:
        """Read the relationships of a file, after the nodes of all files; returns their problems."""
        problems = Problems()
        for row in rows:
            if isinstance(row, EdgeRow) and (wrong := self._edge(row, is_text=_is_text(name))):
                problems.add(Problem(position_of(name, row.number, "edge"), wrong))
        return problems

    def label_of(self, node_id: str) -> str:
        """The label of a node."""
        return self._label_of[node_id]

    def schema(self) -> StoredSchema:
        """The schema of all files read."""
        labels = (
            NodeLabel(name, _properties(table), table.count) for name, table in sorted(self._labels.items())
        )
        types = (
            RelationshipType(name, tuple(sorted(table.ends)), _properties(table), table.count)
            for name, table in sorted(self._types.items())
        )
        return StoredSchema(tuple(labels), tuple(types))

    def _node(self, node: Node, *, is_text: bool) -> str:
        if node.node_id in self._label_of:
            return f"node_id '{node.node_id}' occurs twice"
        table = self._labels.get(node.label)
        if table is None:
            wrong = self._new(node.label, "label", self._labels, MAX_LABELS)
            if wrong:
                return wrong
            table = self._labels[node.label] = _Table()
        wrong = table.take(node.properties, is_text=is_text)
        if not wrong:
            self._label_of[node.node_id] = node.label
        return wrong

    def _edge(self, edge: EdgeRow, *, is_text: bool) -> str:
        start, end = self._label_of.get(edge.start), self._label_of.get(edge.end)
        if start is None or end is None:
            return f"there is no node '{edge.start if start is None else edge.end}'"
        table = self._types.get(edge.type)
        if table is None:
            wrong = self._new(edge.type, "type", self._types, MAX_TYPES)
            if wrong:
                return wrong
            table = self._types[edge.type] = _Table()
        ends = (start, end)
        if ends not in table.ends:
            if self._ends >= MAX_ENDS:
                return f"relationships go between more than {MAX_ENDS} pairs of labels"
            self._ends += 1
            table.ends[ends] = None
        return table.take(edge.properties, is_text=is_text)

    def _new(self, name: str, what: str, known: Mapping[str, _Table], most: int) -> str:
        """What is wrong with a new name: all tables of the engine share a namespace."""
        if len(known) >= most:
            return f"{what} '{name}' is one too many; at most {most} are taken"
        other = self._folded.setdefault(name.casefold(), (what, name))
        if other == (what, name):
            return ""
        return f"{what} '{name}': there is the {other[0]} '{other[1]}', and the names must differ (case does not count)"


def _is_text(name: str) -> bool:
    return not name.lower().endswith(".json")


def _properties(table: _Table) -> tuple[Property, ...]:
    return tuple(Property(name, kind) for name, kind in sorted(table.columns.items()))
