"""Tools that find nodes, count them, list them, and show how one is connected."""

from __future__ import annotations

from typing import Any

from dualtrack import tool
from dualtrack.text import clean
from dualtrack.tools.graph.answered import answered
from dualtrack.tools.graph.arguments import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    LabelArgument,
    LimitArgument,
    Name,
    NamePrefix,
    NodeId,
    Offset,
    OfLabel,
    PartOfName,
)
from dualtrack.tools.graph.lookup import by_id, by_name, not_found, of, plain, similar
from dualtrack.tools.graph.names import BadArgumentError, label_named, labels_of, quoted
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.results import GraphResult, node, page


@tool(effect="reads")
@answered
def find_node(graph: GraphNeeds, name: Name, label: LabelArgument | None = None) -> GraphResult:
    """Finds nodes by their whole name and returns their node_id and properties. Call it first when another tool needs a
    node_id, and for questions about one thing. If no node has the name, it returns similar names.
    """
    known = _label(graph, label)
    nodes, more = by_name(graph, name, known)
    if not nodes:
        return not_found(graph, name, known)
    total = _count(graph, known, "lower(n.name) = lower($name)", plain(name)) if more else len(nodes)
    return {"found": True, **page(nodes[:DEFAULT_LIMIT], total, 0)}


@tool(effect="reads")
@answered
def count_nodes(graph: GraphNeeds, name: PartOfName, label: LabelArgument | None = None) -> GraphResult:
    """Counts the nodes whose name contains the given text, by label. Use it for "do we have any X?" and "how many X
    are there?" where X is a word in names, such as 'pump'.
    """
    known = _label(graph, label)
    rows = graph.engine.read(
        f"MATCH (n{of(known)}) WHERE lower(n.name) CONTAINS lower($name) RETURN label(n) AS label, count(*), "
        "sum(CASE WHEN lower(n.name) = lower($name) THEN 1 ELSE 0 END) ORDER BY label",
        {"name": plain(name)},
        MAX_LIMIT,
    ).rows
    counts: dict[str, Any] = {str(row[0]): row[1] for row in rows}
    if not counts:
        return not_found(graph, name, known)
    exact = sum(int(str(row[2])) for row in rows)
    return {
        "found": True,
        "total_count": sum(counts.values()),
        "by_label": counts,
        "of_this_very_name": exact,
    }


@tool(effect="reads")
@answered
def count_by_label(graph: GraphNeeds, label: OfLabel) -> GraphResult:
    """Counts all nodes of a label. Use it for totals without a place, such as how many assets there are."""
    known = label_named(graph.schema, label)
    return {"label": known, "total_count": _total(graph, known)}


@tool(effect="reads")
@answered
def list_nodes(
    graph: GraphNeeds,
    label: OfLabel,
    name_prefix: NamePrefix | None = None,
    limit: LimitArgument = DEFAULT_LIMIT,
    offset: Offset = 0,
) -> GraphResult:
    """Lists the nodes of a label, sorted by name, 50 at a time. Use it for "which X are there?" without a place; read
    on with the next_offset of the result.
    """
    known = label_named(graph.schema, label)
    begins = "lower(n.name) STARTS WITH lower($name)"
    total = _count(graph, known, begins, plain(name_prefix)) if name_prefix else _total(graph, known)
    if offset >= total:  # the engine may crash on a SKIP far beyond the end
        return {"label": known, **page([], total, offset)}
    listed = graph.engine.read(
        f"MATCH (n{of(known)}) {f'WHERE {begins} ' if name_prefix else ''}"
        f"RETURN n ORDER BY n.name, n.node_id SKIP {offset} LIMIT {limit}",
        {"name": plain(name_prefix)} if name_prefix else {},
        limit,
    )
    return {"label": known, **page([node(row[0]) for row in listed.rows], total, offset)}


@tool(effect="reads")
@answered
def get_node_connections(
    graph: GraphNeeds, node_id: NodeId | None = None, name: Name | None = None
) -> GraphResult:
    """Shows what a node is directly connected to: type and direction of each relationship, and the node at its other
    end. Give node_id or name. Use it for "what is connected to X?" and "where is X?".
    """
    labels_of(graph.schema)
    if node_id:
        start = by_id(graph, node_id)
        return _connections(graph, start) if start else missing_id(graph, node_id)
    if not name:
        raise BadArgumentError("give node_id or name.")
    nodes, more = by_name(graph, name)
    if not nodes:
        return not_found(graph, name)
    if len(nodes) > 1:
        return ambiguous(nodes, more=more)
    return _connections(graph, nodes[0])


def missing_id(graph: GraphNeeds, node_id: str) -> GraphResult:
    """The answer for a node_id that does not exist, with similar names, as it may have been a name."""
    return {"found": False, "node_id": clean(node_id), "similar_names": similar(graph, node_id)}


def ambiguous(nodes: tuple[GraphResult, ...], *, more: bool) -> GraphResult:
    """The answer if a tool for a single node gets a name that several nodes have."""
    shown = list(nodes[:DEFAULT_LIMIT])
    rest = {"more": True} if more or len(nodes) > len(shown) else {}
    return {
        "found": True,
        "ambiguous": "Several nodes have this name: call again with a node_id.",
        **rest,
        "nodes": shown,
    }


def _total(graph: GraphNeeds, label: str) -> int:
    return next(counted.count for counted in graph.schema.labels if counted.name == label)


def _label(graph: GraphNeeds, label: str | None) -> str | None:
    labels_of(graph.schema)
    return label_named(graph.schema, label) if label else None


def _count(graph: GraphNeeds, label: str | None, condition: str, name: str) -> int:
    counted = graph.engine.read(f"MATCH (n{of(label)}) WHERE {condition} RETURN count(*)", {"name": name}, 1)
    return int(str(counted.rows[0][0]))


def _connections(graph: GraphNeeds, start: GraphResult) -> GraphResult:
    counts: list[GraphResult] = []
    shown: list[GraphResult] = []
    for direction, arrow in (("out", "-[r]->"), ("in", "<-[r]-")):
        match = f"MATCH (n:{quoted(start['label'])} {{node_id: $id}}){arrow}(m) "
        parameters = {"id": start["node_id"]}
        counted = graph.engine.read(
            f"{match}RETURN label(r) AS type, label(m) AS label, count(*) ORDER BY type, label",
            parameters,
            MAX_LIMIT,
        )
        counts += [
            {"direction": direction, "type": kind, "label": label, "count": count}
            for kind, label, count in counted.rows
        ]
        connected = graph.engine.read(
            f"{match}RETURN label(r) AS type, m ORDER BY type, m.name, m.node_id LIMIT {DEFAULT_LIMIT}",
            parameters,
            DEFAULT_LIMIT,
        )
        shown += [
            {"direction": direction, "type": kind, "node": node(other)} for kind, other in connected.rows
        ]
    total = sum(row["count"] for row in counts)
    return {"found": True, "node": start, "total_count": total, "counts": counts, "connections": shown}
