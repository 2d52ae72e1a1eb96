"""Graphs for tests: small ones written down or read from the sample's CSV, in an engine within this process."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ladybug
from dualtrack.frozen import freeze
from dualtrack.models.turn import ToolCall
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.graph import tools
from dualtrack.tools.graph.engine import QueryFailed, Rows
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.schema import Label, Property, RelationshipType, Schema
from dualtrack.tools.registry import IN_HOUSE
from dualtrack.tools.running import Running

from infra.local import sample_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dualtrack.tool import ToolResult
    from dualtrack.tools.graph.engine import Value
    from dualtrack.tools.graph.schema import PropertyType

TYPES: dict[str, tuple[PropertyType, type]] = {
    "floor": ("INT64", int),
    "installed": ("INT64", int),
    "power_kw": ("DOUBLE", float),
    "in_service": ("BOOL", "true".__eq__),  # type: ignore[dict-item]
    "since": ("INT64", int),
}
"""Of the properties that are no text."""


@dataclass(frozen=True)
class Node:
    """A node with its properties as they are in a file."""

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
    """What is loaded."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def schema(self) -> Schema:
        """As the loader would write it."""
        label_of = {one.node_id: one.label for one in self.nodes}
        counts = Counter(one.label for one in self.nodes)
        kinds = Counter(one.type for one in self.edges)
        return Schema(
            tuple(
                Label(label, _columns(one.properties for one in self.nodes if one.label == label), count)
                for label, count in sorted(counts.items())
            ),
            tuple(
                RelationshipType(
                    kind,
                    tuple(
                        sorted(
                            {
                                (label_of[one.start], label_of[one.end])
                                for one in self.edges
                                if one.type == kind
                            }
                        )
                    ),
                    _columns(one.properties for one in self.edges if one.type == kind),
                    count,
                )
                for kind, count in sorted(kinds.items())
            ),
        )


def _columns(found: Iterable[Mapping[str, Any]]) -> tuple[Property, ...]:
    names = dict.fromkeys(name for one in found for name in one)
    return tuple(Property(name, TYPES.get(name, ("STRING", str))[0]) for name in names)


@cache
def sample() -> Graph:
    """The sample of the local stack."""
    nodes = [_row(one) for one in _read(sample_graph.NODES)]
    edges = [_row(one) for one in _read(sample_graph.EDGES)]
    return Graph(
        tuple(Node(one.pop("node_id"), one.pop("label"), one.pop("name"), one) for one in nodes),
        tuple(Edge(one.pop("from"), one.pop("type"), one.pop("to"), one) for one in edges),
    )


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _row(row: dict[str, str]) -> dict[str, Any]:
    return {name: TYPES.get(name, ("STRING", str))[1](value) for name, value in row.items() if value}


@dataclass
class MemoryEngine:
    """The engine in this process, with an empty database of the graph's tables. ``queries``: what it was asked."""

    graph: Graph
    queries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = ladybug.Database(":memory:", buffer_pool_size=1 << 28, max_db_size=1 << 30)
        self.connection = ladybug.Connection(self.database, num_threads=1)
        _create(self.connection, self.graph.schema)
        _fill(self.connection, self.graph)

    def read(self, query: str, parameters: Mapping[str, Value], limit: int) -> Rows:
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
        """Its memory."""
        self.connection.close()
        self.database.close()


def _create(connection: ladybug.Connection, schema: Schema) -> None:
    for label in schema.labels:
        columns = "".join(f", `{one.name}` {one.type}" for one in label.properties)
        connection.execute(
            f"CREATE NODE TABLE `{label.name}`(node_id STRING PRIMARY KEY, name STRING{columns})"
        )
    for kind in schema.types:
        ends = ", ".join(f"FROM `{start}` TO `{end}`" for start, end in kind.ends)
        columns = "".join(f", `{one.name}` {one.type}" for one in kind.properties)
        connection.execute(f"CREATE REL TABLE `{kind.name}`({ends}{columns})")


def _fill(connection: ladybug.Connection, graph: Graph) -> None:
    """By the engine's bulk load, table by table."""
    schema = graph.schema
    label_of = {one.node_id: one.label for one in graph.nodes}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        for label in schema.labels:
            names = [one.name for one in label.properties]
            rows = [
                [one.node_id, one.name, *(one.properties.get(name) for name in names)]
                for one in graph.nodes
                if one.label == label.name
            ]
            _write(file, rows)
            connection.execute(f"COPY `{label.name}` FROM '{file}' (header=false)")
        for kind in schema.types:
            names = [one.name for one in kind.properties]
            for start, end in kind.ends:
                rows = [
                    [one.start, one.end, *(one.properties.get(name) for name in names)]
                    for one in graph.edges
                    if (one.type, label_of[one.start], label_of[one.end]) == (kind.name, start, end)
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
    """As the engine's child writes values."""
    if isinstance(value, dict):
        label = {"_type" if "_SRC" in value else "_label": value["_LABEL"]} if "_LABEL" in value else {}
        own = {key: _plain(one) for key, one in value.items() if key not in ("_ID", "_LABEL", "_SRC", "_DST")}
        return {**label, **{key: one for key, one in own.items() if one is not None}}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def needs_of(graph: Graph) -> GraphNeeds:
    """What the tools are given."""
    return GraphNeeds(MemoryEngine(graph), graph.schema)


def graph_tools(needs: GraphNeeds) -> dict[str, Callable[[Any], ToolResult]]:
    """All tools, as `World.tools` takes them."""
    return dict.fromkeys(tools.TOOLS, partial(_run, needs))


def _run(needs: GraphNeeds, running: Any) -> ToolResult:
    return tools.run(running, needs)


def told(needs: GraphNeeds, tool: str, **given: Any) -> Any:
    """A call's result, read; the arguments are checked against the schema first, as a chat does it."""
    result = run(needs, tool, **given)
    assert not result.is_error, result.content
    return json.loads(result.content)


def run(needs: GraphNeeds, tool: str, **given: Any) -> ToolResult:
    """A call's result. ``from_`` stands for ``from``."""
    arguments = {name.rstrip("_"): value for name, value in given.items()}
    assert invalid_arguments(IN_HOUSE[tool], arguments) == ""
    call = ToolCall("q1-t1", "toolu_1", tool, freeze(arguments), "graph")
    nothing: Any = None  # these tools ask nothing of the chat
    return tools.run(Running("ann", "c1", nothing, call), needs)
