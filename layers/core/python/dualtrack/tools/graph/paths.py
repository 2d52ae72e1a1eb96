"""The tool that finds how two nodes are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.arguments import MAX_DEPTH
from dualtrack.tools.graph.lookup import by_id, by_name, not_found
from dualtrack.tools.graph.names import labels_of, quoted
from dualtrack.tools.graph.nodes import ambiguous
from dualtrack.tools.graph.results import node

if TYPE_CHECKING:
    from dualtrack.tools.graph.arguments import Depth, Place
    from dualtrack.tools.graph.needs import GraphNeeds
    from dualtrack.tools.graph.results import Result

_FORWARD: Final = "MATCH (a:{start} {{node_id: $a}})-[r:{kind}]->(b:{end} {{node_id: $b}}) RETURN count(r)"


def find_path(graph: GraphNeeds, from_: Place, to: Place, max_depth: Depth = MAX_DEPTH) -> Result:
    """Finds a shortest path between two nodes, over relationships of any type in either direction. Use it for "how is
    X connected with Y?".
    """
    labels_of(graph.schema)
    ends = []
    for place in (from_, to):
        found = _at(graph, place)
        if "ambiguous" in found or not found["found"]:
            return found
        ends.append(found["node"])
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
    passed = [node(one) for one in nodes]
    return _path(
        passed, [_step(graph, *pair) for pair in zip(passed, passed[1:], relationships, strict=False)]
    )


def _at(graph: GraphNeeds, place: str) -> Result:
    """``{"found": True, "node"}``, or what is told instead."""
    if one := by_id(graph, place):
        return {"found": True, "node": one}
    found, more = by_name(graph, place)
    if len(found) == 1:
        return {"found": True, "node": found[0]}
    return ambiguous(found, more=more) if found else not_found(graph, place)


def _step(graph: GraphNeeds, start: Result, end: Result, relationship: dict[str, str]) -> Result:
    """One relationship of the path, with the direction that it has in the graph."""
    kind = relationship["_type"]
    forward = _is_forward(graph, start, end, kind)
    first, second = (start, end) if forward else (end, start)
    return {"from": first["node_id"], "type": kind, "to": second["node_id"]}


def _is_forward(graph: GraphNeeds, start: Result, end: Result, kind: str) -> bool:
    """The schema tells, or the graph itself where both directions may be."""
    ends = next(one.ends for one in graph.schema.types if one.name == kind)
    labels = start["label"], end["label"]
    if (labels in ends) != (labels[::-1] in ends):
        return labels in ends
    query = _FORWARD.format(start=quoted(labels[0]), kind=quoted(kind), end=quoted(labels[1]))
    return bool(graph.engine.read(query, {"a": start["node_id"], "b": end["node_id"]}, 1).rows[0][0])


def _path(nodes: list[Result], relationships: list[Result]) -> Result:
    return {"found": True, "length": len(relationships), "nodes": nodes, "relationships": relationships}
