"""The graph's tools against the same graph in plain Python, on random graphs (`tests.drivers.graph_model`).

``DUALTRACK_GRAPH_EXAMPLES`` sets the number of graphs; a plain run has a few.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drivers import graph_model as model
from tests.drivers.graph import Edge, Graph, Node, needs_of, told
from tests.long_forms import LONG

EXAMPLES = int(os.environ.get("DUALTRACK_GRAPH_EXAMPLES", "60" if LONG else "12"))
FEW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

LABELS = ("Asset", "Location", "System", "Context", "Category")
ENDS = {
    "LOCATED_IN": (("Asset", "Location"), ("Location", "Location")),
    "PART_OF_SYSTEM": (("Asset", "System"), ("System", "System")),
    "IN_CONTEXT": (("Asset", "Context"),),
    "IN_CATEGORY": (("Asset", "Category"), ("Location", "Category"), ("System", "Category")),
    "SUBCATEGORY_OF": (("Category", "Category"),),
    "FEEDS": (("Asset", "Asset"), ("System", "Asset")),
}
NAMES = ("Pump", "pump", "Pump Room", "Hall", "hall B", "Archive", 'O\'Neil "x" \\ `y`', "Größe", "日本")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs with at least one node of each label, repeated names, and any relationships that the types allow."""
    labels = [*LABELS, *draw(st.lists(st.sampled_from(LABELS), max_size=14))]
    nodes = tuple(Node(f"n{at:02}", label, draw(st.sampled_from(NAMES))) for at, label in enumerate(labels))
    possible = [
        (start.node_id, kind, end.node_id)
        for kind, ends in ENDS.items()
        for start in nodes
        for end in nodes
        if (start.label, end.label) in ends
    ]
    chosen = draw(st.lists(st.sampled_from(possible), unique=True, max_size=40))
    one_of_each = [next(ends for ends in possible if ends[1] == kind) for kind in ENDS]
    return Graph(nodes, tuple(Edge(*ends) for ends in dict.fromkeys([*one_of_each, *chosen])))


@FEW
@given(graphs(), st.data())
def test_tools_agree_with_plain_python(graph: Graph, data: st.DataObject) -> None:
    needs = needs_of(graph)
    try:
        start = data.draw(st.sampled_from(graph.nodes))
        target = data.draw(st.sampled_from((None, *LABELS)))
        types = data.draw(
            st.none() | st.lists(st.sampled_from(list(ENDS)), min_size=1, max_size=3, unique=True)
        )
        _names(needs, graph, start)
        _related(needs, graph, start, target, types)
        _connections(needs, graph, start, data.draw(st.sampled_from(graph.nodes)))
        _groups(needs, graph, start)
    finally:
        needs.engine.close()  # type: ignore[attr-defined]


def _names(needs: Any, graph: Graph, start: Node) -> None:
    named = told(
        needs, "find_node", name=start.name.upper().replace("SS", "ß") if "ß" in start.name else start.name
    )
    assert [node["node_id"] for node in named["nodes"]] == model.by_name(graph, start.name)
    part = start.name[:3]
    counted = told(needs, "count_nodes", name=part)
    assert counted["by_label"] == model.having(graph, part)
    every = told(needs, "list_nodes", label=start.label, limit=200)
    own = [node.node_id for node in graph.nodes if node.label == start.label]
    assert [node["node_id"] for node in every["nodes"]] == model.listed(graph, own)
    assert told(needs, "count_by_label", label=start.label)["total_count"] == len(own)


def _related(needs: Any, graph: Graph, start: Node, target: str | None, types: list[str] | None) -> None:
    asked: dict[str, Any] = {"target_label": target, "relationship_types": types}
    expected = model.related(graph, start.node_id, target, types)
    assert told(needs, "count_related", node_id=start.node_id, **asked)["total_count"] == len(expected)
    listed = told(needs, "list_related", node_id=start.node_id, limit=200, **asked)
    assert [node["node_id"] for node in listed["nodes"]] == model.listed(graph, expected)

    own = {
        node_id: model.related(graph, node_id, target, types) for node_id in model.by_name(graph, start.name)
    }
    expected = set().union(*own.values())
    counted = told(needs, "count_related_by_name", name=start.name, **asked)
    assert counted["total_count"] == len(expected)
    assert {node["node_id"]: node["total_count"] for node in counted.get("named_nodes", ())} == (
        {node_id: len(reached) for node_id, reached in own.items()} if len(own) > 1 else {}
    )
    pages: list[str] = []
    while len(pages) < len(expected):
        page = told(needs, "list_related_by_name", name=start.name, limit=3, offset=len(pages), **asked)
        pages += [node["node_id"] for node in page["nodes"]]
        assert page.get("next_offset", len(expected)) == len(pages)
    assert pages == model.listed(graph, expected)


def _connections(needs: Any, graph: Graph, start: Node, end: Node) -> None:
    connections = told(needs, "get_node_connections", node_id=start.node_id)
    counts = {
        (count["direction"], count["type"], count["label"]): count["count"] for count in connections["counts"]
    }
    assert counts == model.connections(graph, start.node_id)
    path = told(needs, "find_path", from_=start.node_id, to=end.node_id)
    assert path.get("length") == model.distance(graph, start.node_id, end.node_id)
    edges = {(edge.start, edge.type, edge.end) for edge in graph.edges}
    assert all((edge["from"], edge["type"], edge["to"]) in edges for edge in path.get("relationships", ()))


def _groups(needs: Any, graph: Graph, start: Node) -> None:
    assets = {node.node_id for node in graph.nodes if node.label == "Asset"}
    breakdown = told(needs, "count_breakdown")
    within = told(needs, "count_breakdown", name=start.name)
    own = set().union(
        *(model.related(graph, node_id, "Asset") for node_id in model.by_name(graph, start.name))
    )
    for result, counted in ((breakdown, assets), (within, own)):
        assert result["total_count"] == len(counted)
        for dimension, by in result["by"].items():
            groups = {group["node_id"]: group["count"] for group in by["groups"]}
            assert groups == model.breakdown(graph, dimension, counted)
    categories = told(needs, "count_by_category", scope="both")
    for scope, label in (("location", "Location"), ("system", "System")):
        counts = {category["node_id"]: category["count"] for category in categories[scope]["nodes"]}
        assert counts == model.per_category(graph, label)
    tree = told(needs, "list_categories")["nodes"]
    assert sorted(node["node_id"] for node in tree) == [
        node.node_id for node in graph.nodes if node.label == "Category"
    ]
