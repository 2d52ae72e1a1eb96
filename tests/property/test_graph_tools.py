"""The graph's tools against the same graph in plain Python, on random graphs (`tests.drivers.graph_model`).

``DUALTRACK_GRAPH_EXAMPLES`` says how many graphs; a plain run has a few.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drivers import graph_model as model
from tests.drivers.graph import Edge, Graph, Node, needs_of, told
from tests.long_forms import LONG

EXAMPLES = int(os.environ.get("DUALTRACK_GRAPH_EXAMPLES", "150" if LONG else "12"))
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
    """At least one node of each label, names that occur twice, and any relationships that the types allow."""
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
    one_of_each = [next(one for one in possible if one[1] == kind) for kind in ENDS]
    return Graph(nodes, tuple(Edge(*one) for one in dict.fromkeys([*one_of_each, *chosen])))


@FEW
@given(graphs(), st.data())
def test_tools_say_what_plain_python_says(graph: Graph, data: st.DataObject) -> None:
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
    found = told(
        needs, "find_node", name=start.name.upper().replace("SS", "ß") if "ß" in start.name else start.name
    )
    assert [one["node_id"] for one in found["nodes"]] == model.by_name(graph, start.name)
    part = start.name[:3]
    counted = told(needs, "count_nodes", name=part)
    assert counted["by_label"] == model.having(graph, part)
    every = told(needs, "list_nodes", label=start.label, limit=200)
    own = [one.node_id for one in graph.nodes if one.label == start.label]
    assert [one["node_id"] for one in every["nodes"]] == model.listed(graph, own)
    assert told(needs, "count_by_label", label=start.label)["total_count"] == len(own)


def _related(needs: Any, graph: Graph, start: Node, target: str | None, types: list[str] | None) -> None:
    asked: dict[str, Any] = {"target_label": target, "relationship_types": types}
    expected = model.related(graph, start.node_id, target, types)
    assert told(needs, "count_related", node_id=start.node_id, **asked)["total_count"] == len(expected)
    listed = told(needs, "list_related", node_id=start.node_id, limit=200, **asked)
    assert [one["node_id"] for one in listed["nodes"]] == model.listed(graph, expected)

    own = {one: model.related(graph, one, target, types) for one in model.by_name(graph, start.name)}
    expected = set().union(*own.values())
    counted = told(needs, "count_related_by_name", name=start.name, **asked)
    assert counted["total_count"] == len(expected)
    assert {one["node_id"]: one["total_count"] for one in counted.get("named_nodes", ())} == (
        {one: len(found) for one, found in own.items()} if len(own) > 1 else {}
    )
    pages: list[str] = []
    while len(pages) < len(expected):
        page = told(needs, "list_related_by_name", name=start.name, limit=3, offset=len(pages), **asked)
        pages += [one["node_id"] for one in page["nodes"]]
        assert page.get("next_offset", len(expected)) == len(pages)
    assert pages == model.listed(graph, expected)


def _connections(needs: Any, graph: Graph, start: Node, end: Node) -> None:
    found = told(needs, "get_node_connections", node_id=start.node_id)
    counts = {(one["direction"], one["type"], one["label"]): one["count"] for one in found["counts"]}
    assert counts == model.connections(graph, start.node_id)
    path = told(needs, "find_path", from_=start.node_id, to=end.node_id)
    assert path.get("length") == model.distance(graph, start.node_id, end.node_id)
    edges = {(one.start, one.type, one.end) for one in graph.edges}
    assert all((one["from"], one["type"], one["to"]) in edges for one in path.get("relationships", ()))


def _groups(needs: Any, graph: Graph, start: Node) -> None:
    assets = {one.node_id for one in graph.nodes if one.label == "Asset"}
    found = told(needs, "count_breakdown")
    within = told(needs, "count_breakdown", name=start.name)
    own = set().union(*(model.related(graph, one, "Asset") for one in model.by_name(graph, start.name)))
    for result, counted in ((found, assets), (within, own)):
        assert result["total_count"] == len(counted)
        for dimension, by in result["by"].items():
            groups = {one["node_id"]: one["count"] for one in by["groups"]}
            assert groups == model.breakdown(graph, dimension, counted)
    categories = told(needs, "count_by_category", scope="both")
    for scope, label in (("location", "Location"), ("system", "System")):
        counts = {one["node_id"]: one["count"] for one in categories[scope]["nodes"]}
        assert counts == model.per_category(graph, label)
    tree = told(needs, "list_categories")["nodes"]
    assert sorted(one["node_id"] for one in tree) == [
        one.node_id for one in graph.nodes if one.label == "Category"
    ]
