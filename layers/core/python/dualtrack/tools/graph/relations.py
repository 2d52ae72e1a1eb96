"""Tools that count and list what is in a node or related to it, by its id or by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack import tool
from dualtrack.tools.graph.answered import answered
from dualtrack.tools.graph.arguments import (
    DEFAULT_LIMIT,
    LimitArgument,
    Name,
    NameLabel,
    NodeId,
    Offset,
    TargetLabel,
    Types,
)
from dualtrack.tools.graph.lookup import by_id, by_name, not_found
from dualtrack.tools.graph.names import BadArgumentError, label_named, labels_of, types_named
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.nodes import missing_id
from dualtrack.tools.graph.related import counts, counts_by_start, listed, parts
from dualtrack.tools.graph.results import GraphResult, page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.tools.graph.related import RelatedPart

MAX_NODES: Final = 20
"""Maximum nodes of one name that are shown, each with its own count."""


@tool(effect="reads")
@answered
def count_related(
    graph: GraphNeeds,
    node_id: NodeId,
    target_label: TargetLabel | None = None,
    relationship_types: Types | None = None,
) -> GraphResult:
    """Counts the nodes that are in a node or related to it, nested ones included, each once. Use it where you know the
    node_id; with a name, count_related_by_name does it in one call.
    """
    target, types = _asked(graph, target_label, relationship_types)
    start = by_id(graph, node_id)
    if start is None:
        return missing_id(graph, node_id)
    by_label = counts(graph.engine, related_to(graph, (start,), target, types))
    return {"found": True, "node": start, **_counted(by_label)}


@tool(effect="reads")
@answered
def count_related_by_name(
    graph: GraphNeeds,
    name: Name,
    label: NameLabel | None = None,
    target_label: TargetLabel | None = None,
    relationship_types: Types | None = None,
) -> GraphResult:
    """Counts what is in or related to everything of a name, nested places included, each node once. Use it for "how
    many X in Y?", such as how many assets in Biofilter 11: name is Y, target_label is what X is.
    """
    target, types = _asked(graph, target_label, relationship_types)
    starts = _starts(graph, name, label)
    if not starts:
        return not_found(graph, name, _known(graph, label))
    ways = related_to(graph, starts, target, types)
    return {"found": True, **_counted(counts(graph.engine, ways)), **_each(graph, starts, ways)}


@tool(effect="reads")
@answered
def list_related(
    graph: GraphNeeds,
    node_id: NodeId,
    target_label: TargetLabel | None = None,
    relationship_types: Types | None = None,
    limit: LimitArgument = DEFAULT_LIMIT,
    offset: Offset = 0,
) -> GraphResult:
    """Lists the nodes that are in a node or related to it, nested ones included, 50 at a time. Use it where you know
    the node_id; read on with the next_offset of the result.
    """
    target, types = _asked(graph, target_label, relationship_types)
    start = by_id(graph, node_id)
    if start is None:
        return missing_id(graph, node_id)
    nodes, total = listed(graph, related_to(graph, (start,), target, types), limit, offset)
    return {"found": True, "node": start, **page(nodes, total, offset)}


@tool(effect="reads")
@answered
def list_related_by_name(
    graph: GraphNeeds,
    name: Name,
    label: NameLabel | None = None,
    target_label: TargetLabel | None = None,
    relationship_types: Types | None = None,
    limit: LimitArgument = DEFAULT_LIMIT,
    offset: Offset = 0,
) -> GraphResult:
    """Lists what is in or related to everything of a name, nested places included, 50 at a time. Use it for "list the
    X in Y", such as the assets in Biofilter 11; read on with the next_offset of the result.
    """
    target, types = _asked(graph, target_label, relationship_types)
    starts = _starts(graph, name, label)
    if not starts:
        return not_found(graph, name, _known(graph, label))
    ways = related_to(graph, starts, target, types)
    nodes, total = listed(graph, ways, limit, offset)
    return {"found": True, **page(nodes, total, offset), **_each(graph, starts, ways)}


def related_to(
    graph: GraphNeeds, starts: Iterable[GraphResult], target: str | None, types: tuple[str, ...]
) -> tuple[RelatedPart, ...]:
    """How nodes are related to the start nodes, by the start nodes' labels."""
    ids: dict[str, list[str]] = {}
    for start in starts:
        ids.setdefault(start["label"], []).append(start["node_id"])
    return tuple(
        part for label, own in ids.items() for part in parts(graph.schema, label, own, target, types)
    )


def starts_named(graph: GraphNeeds, name: str, label: str | None = None) -> tuple[GraphResult, ...]:
    """All nodes of a name. Raises `BadArgumentError` if there are too many."""
    nodes, more = by_name(graph, name, label)
    if more:
        raise BadArgumentError(f"more than {len(nodes)} nodes have this name: ask for one by its node_id.")
    return nodes


def _asked(
    graph: GraphNeeds, target: str | None, types: list[str] | None
) -> tuple[str | None, tuple[str, ...]]:
    labels_of(graph.schema)
    return _known(graph, target), types_named(graph.schema, types)


def _known(graph: GraphNeeds, label: str | None) -> str | None:
    return label_named(graph.schema, label) if label else None


def _starts(graph: GraphNeeds, name: str, label: str | None) -> tuple[GraphResult, ...]:
    return starts_named(graph, name, _known(graph, label))


def _counted(by_label: dict[str, int]) -> dict[str, Any]:
    return {"total_count": sum(by_label.values()), "by_label": by_label}


def _each(
    graph: GraphNeeds, starts: tuple[GraphResult, ...], ways: tuple[RelatedPart, ...]
) -> dict[str, Any]:
    """The nodes of the name, each with its own count if there are several."""
    if len(starts) == 1:
        return {"node": starts[0]}
    own = counts_by_start(graph.engine, ways)
    shown = [{**start, **_counted(own.get(start["node_id"], {}))} for start in starts[:MAX_NODES]]
    return {"named_nodes_count": len(starts), "named_nodes": shown}
