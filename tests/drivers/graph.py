"""Graphs for tests, written out or read from the sample's CSV, in an engine within this process."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ladybug
from dualtrack.frozen import freeze
from dualtrack.models.turn import ToolCall
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.graph.engine import QueryFailed, Rows
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.schema import NodeLabel, Property, RelationshipType, StoredSchema
from dualtrack.tools.registry import IN_HOUSE, in_house_tools
from dualtrack.tools.running import Running
from dualtrack_stack.local import sample_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.graph.engine import GraphValue
    from dualtrack.tools.graph.schema import PropertyType

TOOLS = tuple(name for name, spec in IN_HOUSE.items() if spec.kind == "graph")
TYPES: dict[str, tuple[PropertyType, type]] = {
    "floor": ("INT64", int),
    "installed": ("INT64", int),
    "power_kw": ("DOUBLE", float),
    "in_service": ("BOOL", "true".__eq__),  # type: ignore[dict-item]
    "since": ("INT64", int),
}
"""Types of the properties that are not text."""


@dataclass(frozen=True)
class Node:
    """A node with its properties as in a file."""

    node_id: str
    label: str
    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """A relationship."""

    start: str
    type: str
    end: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Graph:
    """The nodes and edges to load."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def schema(self) -> StoredSchema:
        """The schema as the loader would write it."""
        label_of = {node.node_id: node.label for node in self.nodes}
        counts = Counter(node.label for node in self.nodes)
        kinds = Counter(edge.type for edge in self.edges)
        return StoredSchema(
            tuple(
                NodeLabel(
                    label, _columns(node.properties for node in self.nodes if node.label == label), count
                )
                for label, count in sorted(counts.items())
            ),
            tuple(
                RelationshipType(
                    kind,
                    tuple(
                        sorted(
                            {
                                (label_of[edge.start], label_of[edge.end])
                                for edge in self.edges
                                if edge.type == kind
                            }
                        )
                    ),
                    _columns(edge.properties for edge in self.edges if edge.type == kind),
                    count,
                )
                for kind, count in sorted(kinds.items())
            ),
        )


def _columns(rows: Iterable[Mapping[str, Any]]) -> tuple[Property, ...]:
    names = dict.fromkeys(name for row in rows for name in row)
    return tuple(Property(name, TYPES.get(name, ("STRING", str))[0]) for name in names)


@cache
def sample() -> Graph:
    """The local stack's sample graph."""
    nodes = [_row(row) for row in _read(sample_graph.NODES)]
    edges = [_row(row) for row in _read(sample_graph.EDGES)]
    return Graph(
        tuple(Node(node.pop("node_id"), node.pop("label"), node.pop("name"), node) for node in nodes),
        tuple(Edge(edge.pop("from"), edge.pop("type"), edge.pop("to"), edge) for edge in edges),
    )


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _row(row: dict[str, str]) -> dict[str, Any]:
    return {name: TYPES.get(name, ("STRING", str))[1](value) for name, value in row.items() if value}


@dataclass
class MemoryEngine:
    """The engine in this process, with an empty database of the graph's tables. ``queries``: all that it ran."""

    graph: Graph
    queries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = ladybug.Database(":memory:", buffer_pool_size=1 << 28, max_db_size=1 << 30)
        self.connection = ladybug.Connection(self.database, num_threads=1)
        _create(self.connection, self.graph.schema)
        _fill(self.connection, self.graph)

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """As `tools.graph.engine.Engine.read`."""
        self.queries.append(query)
        try:
            result: Any = self.connection.execute(query, dict(parameters))
        except RuntimeError as error:
            raise QueryFailed(str(error)) from error
        rows: list[tuple[Any, ...]] = []
        while result.has_next() and len(rows) < min(limit, 200):
            rows.append(tuple(_plain(value) for value in result.get_next()))
        read = Rows(tuple(result.get_column_names()), tuple(rows), result.has_next())
        result.close()
        return read

    read_foreign = read

    def close(self) -> None:
        """Free its memory."""
        self.connection.close()
        self.database.close()


def _create(connection: ladybug.Connection, schema: StoredSchema) -> None:
    for label in schema.labels:
        columns = "".join(f", `{column.name}` {column.type}" for column in label.properties)
        connection.execute(
            f"CREATE NODE TABLE `{label.name}`(node_id STRING PRIMARY KEY, name STRING{columns})"
        )
    for kind in schema.types:
        ends = ", ".join(f"FROM `{start}` TO `{end}`" for start, end in kind.ends)
        columns = "".join(f", `{column.name}` {column.type}" for column in kind.properties)
        connection.execute(f"CREATE REL TABLE `{kind.name}`({ends}{columns})")


def _fill(connection: ladybug.Connection, graph: Graph) -> None:
    """Fill the tables by the engine's bulk load."""
    schema = graph.schema
    label_of = {node.node_id: node.label for node in graph.nodes}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        for label in schema.labels:
            names = [column.name for column in label.properties]
            rows = [
                [node.node_id, node.name, *(node.properties.get(name) for name in names)]
                for node in graph.nodes
                if node.label == label.name
            ]
            _write(file, rows)
            connection.execute(f"COPY `{label.name}` FROM '{file}' (header=false)")
        for kind in schema.types:
            names = [column.name for column in kind.properties]
            for start, end in kind.ends:
                rows = [
                    [edge.start, edge.end, *(edge.properties.get(name) for name in names)]
                    for edge in graph.edges
                    if (edge.type, label_of[edge.start], label_of[edge.end]) == (kind.name, start, end)
                ]
                _write(file, rows)
                pair = f", from='{start}', to='{end}'" if len(kind.ends) > 1 else ""
                connection.execute(f"COPY `{kind.name}` FROM '{file}' (header=false{pair})")


def _write(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(
            file, quoting=csv.QUOTE_NOTNULL if hasattr(csv, "QUOTE_NOTNULL") else csv.QUOTE_MINIMAL
        ).writerows(rows)


def _plain(value: Any) -> Any:
    """Values as the engine's child process writes them."""
    if isinstance(value, dict):
        label = {"_type" if "_SRC" in value else "_label": value["_LABEL"]} if "_LABEL" in value else {}
        own = {
            key: _plain(entry) for key, entry in value.items() if key not in ("_ID", "_LABEL", "_SRC", "_DST")
        }
        return {**label, **{key: entry for key, entry in own.items() if entry is not None}}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


def needs_of(graph: Graph) -> GraphNeeds:
    """The tools' dependencies."""
    return GraphNeeds(MemoryEngine(graph), graph.schema)


def graph_tools(needs: GraphNeeds) -> dict[str, Callable[[Any], ToolResult]]:
    """All tools, as `World.tools` takes them."""
    return dict.fromkeys(TOOLS, in_house_tools("graph", lambda: needs))


def told(needs: GraphNeeds, tool: str, **arguments: Any) -> Any:
    """A call's result, parsed; the arguments are checked against the schema first, as in a chat."""
    result = run(needs, tool, **arguments)
    assert not result.is_error, result.content
    return json.loads(result.content)


def run(needs: GraphNeeds, tool: str, **values: Any) -> ToolResult:
    """A call's result. ``from_`` stands for ``from``."""
    arguments = {name.rstrip("_"): value for name, value in values.items()}
    assert invalid_arguments(IN_HOUSE[tool], arguments) == ""
    call = ToolCall("q1-t1", "toolu_1", tool, freeze(arguments), "graph")
    chat: Any = SimpleNamespace(chat_id="ch_1")  # these tools do not use it
    return in_house_tools("graph", lambda: needs)(Running("ann", "c1", chat, call))
