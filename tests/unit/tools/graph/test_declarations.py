"""The graph's tools as the model sees them."""

from __future__ import annotations

from dualtrack.frozen import thaw
from dualtrack.profiles import all_profiles
from dualtrack.tools.graph.arguments import MOST
from dualtrack.tools.registry import IN_HOUSE

from tests.drivers.graph import TOOLS

GRAPH = tuple(IN_HOUSE[name] for name in TOOLS)
FIFTEEN = (
    "find_node(name, label?)",
    "count_nodes(name, label?)",
    "count_by_label(label)",
    "list_categories(scope?)",
    "get_node_connections(node_id?, name?)",
    "count_by_category(scope, target_label?)",
    "count_related(node_id, target_label?, relationship_types?)",
    "count_related_by_name(name, label?, target_label?, relationship_types?)",
    "list_related(node_id, target_label?, relationship_types?, limit?, offset?)",
    "list_related_by_name(name, label?, target_label?, relationship_types?, limit?, offset?)",
    "count_breakdown(name?, target_label?)",
    "get_schema()",
    "run_query(query, parameters?)",
    "list_nodes(label, name_prefix?, limit?, offset?)",
    "find_path(from, to, max_depth?)",
)
"""PROFILES 4."""


def test_the_tools_are_those_of_the_specification() -> None:
    said = {
        f"{spec.name}({', '.join(name + ('' if name in spec.input_schema['required'] else '?') for name in spec.input_schema['properties'])})"
        for spec in GRAPH
    }
    assert said == set(FIFTEEN)
    *of_graph, last = all_profiles()["graph"].tools
    assert (sorted(of_graph), last) == (sorted(TOOLS), "retrieve_full_context")


def test_every_argument_is_described_and_bounded() -> None:
    for spec in GRAPH:
        assert (spec.kind, spec.price_class) == ("graph", "other")
        for name, schema in thaw(spec.input_schema)["properties"].items():
            assert schema["description"], (spec.name, name)
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if kinds[0] == "integer":
                assert str(MOST[name]) in schema["description"], "the model is told where its number ends"
                assert "maximum" not in schema, "a schema's maximum refuses the call before it can be lowered"
                continue
            bound = {"string": "maxLength", "array": "maxItems", "object": "type"}[kinds[0]]
            assert bound in schema or "enum" in schema, (spec.name, name)
