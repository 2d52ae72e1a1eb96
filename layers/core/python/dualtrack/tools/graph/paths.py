"""The tool that finds a shortest path between two nodes."""

from __future__ import annotations

from typing import Final

from dualtrack import tool
from dualtrack.tools.graph.answered import answered
from dualtrack.tools.graph.arguments import MAX_DEPTH, Depth, PlaceArgument
from dualtrack.tools.graph.lookup import by_id, by_name, not_found
from dualtrack.tools.graph.names import labels_of, quoted
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.nodes import ambiguous
from dualtrack.tools.graph.results import GraphResult, node

_FORWARD: Final = "MATCH (a:{start} {{node_id: $a}})-[r:{kind}]->(b:{end} {{node_id: $b}}) RETURN count(r)"


@tool(effect="reads")
@answered
def find_path(
    graph: GraphNeeds, from_: PlaceArgument, to: PlaceArgument, max_depth: Depth = MAX_DEPTH
) -> GraphResult:
    """Finds a shortest path between two nodes, over relationships of any type in either direction. Use it for "how is
    X connected with Y?".
    """
    labels_of(graph.schema)
    ends = []
    for id_or_name in (from_, to):
        end_node = _at(graph, id_or_name)
        if "ambiguous" in end_node or not end_node["found"]:
            return end_node
        ends.append(end_node["node"])
    start, end = ends
    if start["node_id"] == end["node_id"]:
        return _path([start], [])
    rows = graph.engine.read(
        f"MATCH p = (a:{quoted(start['label'])} {{node_id: $a}})-[* SHORTEST 1..{max_depth}]-"
        f"(b:{quoted(end['label'])} {{node_id: $b}}) RETURN nodes(p), rels(p) LIMIT 1",
        {"a": start["node_id"], "b": end["node_id"]},
        1,
    ).rows
    if not rows:
        return {"found": False, "from": start, "to": end, "max_depth": max_depth}
    nodes, relationships = rows[0]
    assert isinstance(nodes, list)
    assert isinstance(relationships, list)
    passed = [node(value) for value in nodes]
    return _path(
        passed, [_step(graph, *pair) for pair in zip(passed, passed[1:], relationships, strict=False)]
    )


def _at(graph: GraphNeeds, id_or_name: str) -> GraphResult:
    """``{"found": True, "node"}``, or the tool's answer if no node or several have this id or name."""
    if node_of_id := by_id(graph, id_or_name):
        return {"found": True, "node": node_of_id}
    nodes, more = by_name(graph, id_or_name)
    if len(nodes) == 1:
        return {"found": True, "node": nodes[0]}
    return ambiguous(nodes, more=more) if nodes else not_found(graph, id_or_name)


def _step(
    graph: GraphNeeds, start: GraphResult, end: GraphResult, relationship: dict[str, str]
) -> GraphResult:
    """A relationship of the path, in its direction in the graph."""
    kind = relationship["_type"]
    forward = _is_forward(graph, start, end, kind)
    first, second = (start, end) if forward else (end, start)
    return {"from": first["node_id"], "type": kind, "to": second["node_id"]}


def _is_forward(graph: GraphNeeds, start: GraphResult, end: GraphResult, kind: str) -> bool:
    """From the schema, or from the graph where the schema allows both directions."""
    ends = next(relationship.ends for relationship in graph.schema.types if relationship.name == kind)
    labels = start["label"], end["label"]
    if (labels in ends) != (labels[::-1] in ends):
        return labels in ends
    query = _FORWARD.format(start=quoted(labels[0]), kind=quoted(kind), end=quoted(labels[1]))
    return bool(graph.engine.read(query, {"a": start["node_id"], "b": end["node_id"]}, 1).rows[0][0])


def _path(nodes: list[GraphResult], relationships: list[GraphResult]) -> GraphResult:
    return {"found": True, "length": len(relationships), "nodes": nodes, "relationships": relationships}
