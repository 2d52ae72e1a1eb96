"""The same graph in plain Python: what each tool should answer, computed without a query."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.drivers.graph import Edge, Graph, Node

MAX_DEPTH = 6


def by_name(graph: Graph, name: str, label: str | None = None) -> list[str]:
    """The ids of nodes with this name, in any case."""
    return sorted(
        node.node_id
        for node in graph.nodes
        if node.name.lower() == name.lower() and label in (None, node.label)
    )


def having(graph: Graph, words: str, label: str | None = None) -> Counter[str]:
    """How many nodes of each label have the words in their name."""
    return Counter(
        node.label
        for node in graph.nodes
        if words.lower() in node.name.lower() and label in (None, node.label)
    )


def listed(graph: Graph, ids: Iterable[str]) -> list[str]:
    """Ids in the order of a tool's list: by label, name and id."""
    nodes = _nodes(graph)
    return sorted(ids, key=lambda node_id: (nodes[node_id].label, nodes[node_id].name, node_id))


def related(
    graph: Graph, start: str, target: str | None = None, types: Sequence[str] | None = None
) -> set[str]:
    """Nodes inside this one by at most six steps, and nodes of other labels that it leads to directly."""
    nodes = _nodes(graph)
    label = nodes[start].label
    edges = [edge for edge in graph.edges if types is None or edge.type in types]
    ends = {(edge.type, nodes[edge.start].label, nodes[edge.end].label) for edge in edges}
    leading = {kind for kind, _, end in ends if end == label}
    within = set[str]()
    for _ in range(MAX_DEPTH):
        within |= {start for kind, start, end in ends if kind in leading and end in (label, *within)}
    inside = _reached(edges, leading, start) if leading else set()
    outward = {edge.end for edge in edges if edge.start == start and nodes[edge.end].label not in within}
    return {node_id for node_id in (inside | outward) - {start} if target in (None, nodes[node_id].label)}


def _reached(edges: list[Edge], types: set[str], start: str) -> set[str]:
    reached, edge = set[str](), {start}
    for _ in range(MAX_DEPTH):
        edge = {other.start for other in edges if other.type in types and other.end in edge} - reached
        reached |= edge
    return reached


def connections(graph: Graph, node_id: str) -> Counter[tuple[str, str, str]]:
    """Direction, type and the other's label of each relationship."""
    nodes = _nodes(graph)
    out = [("out", edge.type, nodes[edge.end].label) for edge in graph.edges if edge.start == node_id]
    into = [("in", edge.type, nodes[edge.start].label) for edge in graph.edges if edge.end == node_id]
    return Counter([*out, *into])


def distance(graph: Graph, start: str, end: str) -> int | None:
    """Relationships of a shortest path in either direction, at most six."""
    seen = {start}
    for length in range(MAX_DEPTH + 1):
        if end in seen:
            return length
        seen |= {edge.end for edge in graph.edges if edge.start in seen} | {
            edge.start for edge in graph.edges if edge.end in seen
        }
    return None


def breakdown(graph: Graph, dimension: str, counted: Iterable[str]) -> Counter[str]:
    """How many of the counted nodes lead directly to each node of a label."""
    nodes, own = _nodes(graph), set(counted)
    pairs = {
        (edge.end, edge.start)
        for edge in graph.edges
        if nodes[edge.end].label == dimension and edge.start in own
    }
    return Counter(end for end, _ in pairs)


def per_category(graph: Graph, label: str) -> Counter[str]:
    """How many nodes of a label are in each category and those below it."""
    nodes = _nodes(graph)
    counts: Counter[str] = Counter()
    for node in graph.nodes:
        if node.label == "Category":
            leading = {edge.type for edge in graph.edges if nodes[edge.end].label == "Category"}
            inside = _reached(list(graph.edges), leading, node.node_id)
            counts[node.node_id] = sum(nodes[other].label == label for other in inside)
    return +counts


def _nodes(graph: Graph) -> dict[str, Node]:
    return {node.node_id: node for node in graph.nodes}
