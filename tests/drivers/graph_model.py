"""The same graph in plain Python: what each tool should say, said without a query."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.drivers.graph import Edge, Graph, Node

MAX_DEPTH = 6


def by_name(graph: Graph, name: str, label: str | None = None) -> list[str]:
    """The ids of a name in any case."""
    return sorted(
        one.node_id for one in graph.nodes if one.name.lower() == name.lower() and label in (None, one.label)
    )


def having(graph: Graph, words: str, label: str | None = None) -> Counter[str]:
    """How many nodes of each label have the words in their name."""
    return Counter(
        one.label for one in graph.nodes if words.lower() in one.name.lower() and label in (None, one.label)
    )


def listed(graph: Graph, ids: Iterable[str]) -> list[str]:
    """In the order of a list: by label, name and id."""
    nodes = _nodes(graph)
    return sorted(ids, key=lambda one: (nodes[one].label, nodes[one].name, one))


def related(
    graph: Graph, start: str, target: str | None = None, types: Sequence[str] | None = None
) -> set[str]:
    """What is in the node by at most six steps, and what of other labels it leads to in one."""
    nodes = _nodes(graph)
    label = nodes[start].label
    edges = [one for one in graph.edges if types is None or one.type in types]
    ends = {(one.type, nodes[one.start].label, nodes[one.end].label) for one in edges}
    leading = {kind for kind, _, end in ends if end == label}
    within = set[str]()
    for _ in range(MAX_DEPTH):
        within |= {start for kind, start, end in ends if kind in leading and end in (label, *within)}
    found = _reached(edges, leading, start) if leading else set()
    outward = {one.end for one in edges if one.start == start and nodes[one.end].label not in within}
    return {one for one in (found | outward) - {start} if target in (None, nodes[one].label)}


def _reached(edges: list[Edge], types: set[str], start: str) -> set[str]:
    found, edge = set[str](), {start}
    for _ in range(MAX_DEPTH):
        edge = {one.start for one in edges if one.type in types and one.end in edge} - found
        found |= edge
    return found


def connections(graph: Graph, node_id: str) -> Counter[tuple[str, str, str]]:
    """Direction, type and the other's label of each relationship."""
    nodes = _nodes(graph)
    out = [("out", one.type, nodes[one.end].label) for one in graph.edges if one.start == node_id]
    into = [("in", one.type, nodes[one.start].label) for one in graph.edges if one.end == node_id]
    return Counter([*out, *into])


def distance(graph: Graph, start: str, end: str) -> int | None:
    """Relationships of a shortest path in either direction, at most six."""
    seen = {start}
    for length in range(MAX_DEPTH + 1):
        if end in seen:
            return length
        seen |= {one.end for one in graph.edges if one.start in seen} | {
            one.start for one in graph.edges if one.end in seen
        }
    return None


def breakdown(graph: Graph, dimension: str, counted: Iterable[str]) -> Counter[str]:
    """How many of these lead directly to each node of a label."""
    nodes, own = _nodes(graph), set(counted)
    pairs = {
        (one.end, one.start) for one in graph.edges if nodes[one.end].label == dimension and one.start in own
    }
    return Counter(end for end, _ in pairs)


def per_category(graph: Graph, label: str) -> Counter[str]:
    """How many nodes of a label are in each category and those below it."""
    nodes = _nodes(graph)
    counts: Counter[str] = Counter()
    for one in graph.nodes:
        if one.label == "Category":
            leading = {edge.type for edge in graph.edges if nodes[edge.end].label == "Category"}
            found = _reached(list(graph.edges), leading, one.node_id)
            counts[one.node_id] = sum(nodes[other].label == label for other in found)
    return +counts


def _nodes(graph: Graph) -> dict[str, Node]:
    return {one.node_id: one for one in graph.nodes}
