"""Each tool against figures counted by hand in the sample (see `dualtrack_stack.local.sample_graph.__main__`).

Assets: 2 in each of 3 halls; 24 biofilters of 6 + 5 + 3, but 23 in number 11; intake 2 + 12 + 6; sludge 2 + 10 + 5;
6 bays of 6; 6 in the control room. 6 + 345 + 20 + 17 + 36 + 6 = 430.
Locations: the works, 3 halls, 24 × 3 and a cabinet, 2 buildings of 3, the store with 6 bays, control room, archive: 92.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.schema import StoredSchema
from dualtrack.tools.registry import IN_HOUSE
from dualtrack_stack.local.sample_graph import EDGES, NODES
from dualtrack_stack.local.sample_graph.__main__ import water_works, write

from tests.drivers import graph
from tests.drivers.graph import TOOLS, Edge, Graph, MemoryEngine, Node, needs_of, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@cache
def works() -> GraphNeeds:
    return needs_of(graph.sample())


def engine() -> MemoryEngine:
    used = works().engine
    assert isinstance(used, MemoryEngine)
    return used


def told(tool: str, **arguments: Any) -> Any:
    return graph.told(works(), tool, **arguments)


def names(result: Any) -> list[str]:
    return [node["name"] for node in result["nodes"]]


def counts(groups: Any) -> dict[str, int]:
    return {group["name"]: group["count"] for group in groups}


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    sample = water_works()
    for path, rows in ((NODES, sample.nodes), (EDGES, sample.edges)):
        write(tmp_path / path.name, rows)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert len(sample.nodes) == 565


def test_find_node() -> None:
    answer = told("find_node", name="biofilter 11")
    assert answer["nodes"] == [
        {"node_id": "loc-0034", "label": "Location", "name": "Biofilter 11", "properties": {"floor": 0}}
    ]
    twice = told("find_node", name="Pump Room", label="location")
    assert (twice["total_count"], [node["node_id"] for node in twice["nodes"]]) == (
        2,
        ["loc-0079", "loc-0082"],
    )
    other = told("find_node", name="Biofilter 11", label="Asset")
    assert (other["found"], other["similar_names"][0]) == (False, "Filter Bed 11")


def test_for_an_unknown_name_similar_ones_are_listed() -> None:
    for misspelt in ("Biofiltr 11", "biofilter11", "Bio filter 11", "11 biofilter"):
        missing = told("find_node", name=misspelt)
        assert missing["found"] is False
        assert missing["similar_names"][0] == "Biofilter 11", missing
        assert len(missing["similar_names"]) <= 5
    assert told("find_node", name="Quxly")["similar_names"] == []


def test_similar_names_are_found_in_any_language() -> None:
    names = ("Zürich Öst", "東京タワー", "ประเทศไทย", "हिन्दी भवन", "Ὀδυσσεύς")
    needs = needs_of(Graph(tuple(Node(f"n{at}", "Place", name) for at, name in enumerate(names)), ()))
    for asked, name in (
        ("zurich ost", "Zürich Öst"),
        ("東京の塔", "東京タワー"),
        ("ไทยแลนด์", "ประเทศไทย"),
        ("हिन्दी", "हिन्दी भवन"),
        ("Οδυσσευς ο", "Ὀδυσσεύς"),
    ):
        assert graph.told(needs, "find_node", name=asked)["similar_names"][:1] == [name]


def test_count_nodes() -> None:
    # feed 24, backwash 24, intake 6, sludge 6, dosing 12 pumps; the category Pumps; two pump rooms
    answer = told("count_nodes", name="PUMP")
    assert answer["by_label"] == {"Asset": 72, "Category": 1, "Location": 2}
    assert (answer["total_count"], answer["of_this_very_name"]) == (75, 0)
    assert told("count_nodes", name="pump room")["of_this_very_name"] == 2
    assert told("count_nodes", name="turbine")["found"] is False


def test_count_by_label() -> None:
    assert told("count_by_label", label="Asset") == {"label": "Asset", "total_count": 430}
    assert told("count_by_label", label="location")["total_count"] == 92


def test_list_nodes() -> None:
    systems = told("list_nodes", label="System")
    assert systems["total_count"] == len(systems["nodes"]) == 8
    assert names(systems) == sorted(names(systems))
    page = told("list_nodes", label="Asset", name_prefix="intake p", limit=4)
    assert (page["total_count"], page["next_offset"]) == (6, 4)
    rest = told("list_nodes", label="Asset", name_prefix="intake p", limit=4, offset=4)
    assert (names(page) + names(rest), "next_offset" in rest) == (
        [f"Intake Pump {n}" for n in range(1, 7)],
        False,
    )
    assert len(told("list_nodes", label="Asset")["nodes"]) == 50


@pytest.mark.parametrize("limit", [201, 500, 10**30, 1e300])
@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("list_nodes", {"label": "Asset"}),
        ("list_related", {"node_id": "loc-0001"}),
        ("list_related_by_name", {"name": "Northwater Works"}),
    ],
)
def test_a_limit_that_is_too_large_is_lowered_and_said(
    tool: str, asked: dict[str, Any], limit: float
) -> None:
    answer = told(tool, **asked, limit=limit)
    assert answer.pop("note") == "limit is at most 200: this result uses that."
    assert answer == told(tool, **asked, limit=200) == told(tool, **asked, limit=200.0)
    assert answer["count"] == 200


def test_several_numbers_that_are_too_large_are_said_at_once() -> None:
    far = told("list_nodes", label="Asset", limit=1000, offset=10**19)
    assert far["note"] == "limit is at most 200 and offset is at most 1000000: this result uses that."
    assert (far["total_count"], far["nodes"]) == (430, [])
    assert not any("SKIP 1000000" in query for query in engine().queries), "the engine may crash on it"
    deep = told("find_path", from_="Biofilter 11", to="Control Room", max_depth=50)
    assert deep.pop("note") == "max_depth is at most 6: this result uses that."
    assert deep == told("find_path", from_="Biofilter 11", to="Control Room")


@pytest.mark.parametrize(
    "asked", [{"limit": 0}, {"limit": -1}, {"offset": -1}, {"limit": 2.5}, {"limit": "many"}]
)
def test_a_number_without_a_meaning_is_a_bad_argument(asked: dict[str, Any]) -> None:
    """Nobody can say what was meant, and the refusal costs no credit."""
    assert invalid_arguments(IN_HOUSE["list_nodes"], {"label": "Asset", **asked}).startswith("bad arguments:")


def test_list_categories() -> None:
    every = told("list_categories")
    assert (every["total_count"], every["nodes"][0]["name"]) == (30, "All Categories")
    pumps = next(node for node in every["nodes"] if node["name"] == "Pumps")
    assert (pumps["depth"], pumps["parent_id"], pumps["members"]) == (2, "cat-0016", {"Asset": 72})
    systems = told("list_categories", scope="system")
    assert names(systems) == [
        "All Categories",
        "Process Systems",
        "Air Supply",
        "Dosing Systems",
        "Water Treatment",
        "Support Systems",
        "Electrical Supply",
        "Monitoring",
    ]


def test_get_node_connections() -> None:
    answer = told("get_node_connections", name="Biofilter 11")
    assert answer["total_count"] == len(answer["connections"]) == 13
    assert answer["counts"] == [
        {"direction": "out", "type": "IN_CATEGORY", "label": "Category", "count": 1},
        {"direction": "out", "type": "LOCATED_IN", "label": "Location", "count": 1},
        {"direction": "in", "type": "LOCATED_IN", "label": "Asset", "count": 9},
        {"direction": "in", "type": "LOCATED_IN", "label": "Location", "count": 2},
    ]
    assert told("get_node_connections", node_id="loc-0034") == answer
    assert [node["node_id"] for node in told("get_node_connections", name="Pump Room")["nodes"]] == [
        "loc-0079",
        "loc-0082",
    ]
    assert told("get_node_connections", node_id="Pump Rom")["similar_names"][0] == "Pump Room"


def test_count_by_category() -> None:
    answer = told("count_by_category", scope="both")
    assert counts(answer["location"]["nodes"]) == {
        "All Categories": 92,
        "Buildings": 54,  # 51 technical rooms, 2 offices, the works
        "Technical Rooms": 51,  # 24 galleries, 24 blower rooms, a cabinet, 2 pump rooms
        "Offices": 2,
        "Process Areas": 38,
        "Biological Stages": 24,
        "Chemical Stages": 7,
        "Mechanical Stages": 4,
    }
    assert counts(answer["system"]["nodes"])["Water Treatment"] == 4
    assets = told("count_by_category", scope="location", target_label="Asset")["location"]["nodes"]
    # in galleries 23 × 5 + 8, in blower rooms 23 × 3 + 4 + 2 of the cabinet, in pump rooms 12 + 10
    assert counts(assets)["Technical Rooms"] == 123 + 75 + 22
    assert counts(assets)["Chemical Stages"] == 36


def test_count_related() -> None:
    assert told("count_related", node_id="loc-0034", target_label="Asset")["total_count"] == 23
    every = told("count_related", node_id="loc-0034")
    assert every["by_label"] == {"Asset": 23, "Location": 3, "Category": 1}
    assert told("count_related", node_id="loc-0027", target_label="Asset")["total_count"] == 123
    assert told("count_related", node_id="loc-0001")["by_label"]["Location"] == 91
    asset = told("count_related", node_id="ass-0001")
    assert asset["by_label"] == {"Category": 1, "Context": 1, "Location": 1, "System": 1}
    # Rotating Equipment: 72 pumps, 25 blowers (two in number 11), 6 tank and 3 sludge mixers
    rotating = told("count_related_by_name", name="Rotating Equipment", target_label="Asset")
    assert rotating["total_count"] == 72 + 25 + 9
    only = told("count_related", node_id="cat-0016", relationship_types=["IN_CATEGORY"])
    assert only["total_count"] == 0  # its assets are in its subcategories
    assert told("count_related", node_id="Biofilter 11")["found"] is False


def test_count_related_by_name() -> None:
    answer = told("count_related_by_name", name="Biofilter 11", target_label="Asset")
    assert (answer["found"], answer["total_count"], answer["node"]["node_id"]) == (True, 23, "loc-0034")
    twice = told("count_related_by_name", name="Pump Room", target_label="Asset")
    assert twice["total_count"] == 22
    assert [(node["node_id"], node["total_count"]) for node in twice["named_nodes"]] == [
        ("loc-0079", 12),
        ("loc-0082", 10),
    ]
    assert told("count_related_by_name", name="Biofilter 99")["found"] is False


def test_list_related() -> None:
    first = told("list_related", node_id="loc-0034", target_label="Asset", limit=20)
    rest = told(
        "list_related", node_id="loc-0034", target_label="Asset", limit=20, offset=first["next_offset"]
    )
    assert (first["total_count"], len(first["nodes"]), len(rest["nodes"])) == (23, 20, 3)
    assert "next_offset" not in rest
    listed = names(first) + names(rest)
    assert listed == sorted(set(listed))
    assert sum(name.startswith("Inlet Valve") for name in listed) == 3
    mixed = told("list_related", node_id="loc-0034", limit=6, offset=22)
    assert [node["label"] for node in mixed["nodes"]] == [
        "Asset",
        "Category",
        "Location",
        "Location",
        "Location",
    ]


def test_list_related_by_name() -> None:
    answer = told("list_related_by_name", name="Biofilter 11", target_label="Asset")
    assert answer["total_count"] == len(answer["nodes"]) == 23
    twice = told("list_related_by_name", name="Pump Room", target_label="Asset")
    assert len(twice["nodes"]) == twice["total_count"] == 22
    assert [node["total_count"] for node in twice["named_nodes"]] == [12, 10]


def test_count_breakdown() -> None:
    answer = told("count_breakdown", name="Biofilter 11")
    assert answer["total_count"] == 23
    assert counts(answer["by"]["Location"]["groups"]) == {
        "Biofilter 11": 9,
        "Biofilter 11 Valve Gallery": 8,
        "Biofilter 11 Blower Room": 4,
        "Biofilter 11 Control Cabinet": 2,
    }
    assert counts(answer["by"]["System"]["groups"]) == {
        # feed pump, filter bed, 3 inlet and 3 outlet valves; 2 flow, 2 level and 2 oxygen sensors and the cabinet's
        "Biological Filtration": 8,
        "Process Monitoring": 7,
        "Backwash Water": 3,
        "Low Voltage Distribution": 3,
        "Process Air": 2,
    }
    every = told("count_breakdown")
    assert (every["target_label"], every["total_count"]) == ("Asset", 430)
    assert sum(counts(every["by"]["System"]["groups"]).values()) == 430
    assert every["by"]["Location"]["more"] is True
    assert told("count_breakdown", name="Archive")["total_count"] == 0


def test_find_path() -> None:
    answer = told("find_path", from_="Biofilter 11", to="Control Room")
    assert names(answer) == ["Biofilter 11", "Biofilter Hall B", "Northwater Works", "Control Room"]
    assert answer["relationships"][1:] == [
        {"from": "loc-0027", "type": "LOCATED_IN", "to": "loc-0001"},
        {"from": "loc-0091", "type": "LOCATED_IN", "to": "loc-0001"},
    ]
    assert told("find_path", from_="loc-0034", to="biofilter 11")["length"] == 0
    short = told("find_path", from_="Biofilter 11", to="Control Room", max_depth=2)
    assert (short["found"], short["max_depth"]) == (False, 2)
    assert "ambiguous" in told("find_path", from_="Pump Room", to="Archive")
    assert told("find_path", from_="Archive", to="Nowhere")["found"] is False


def test_get_schema() -> None:
    answer = told("get_schema")
    assert {label["label"]: label["count"] for label in answer["labels"]} == {
        "Asset": 430,
        "Category": 30,
        "Context": 5,
        "Location": 92,
        "System": 8,
    }
    located = next(
        relationship for relationship in answer["relationship_types"] if relationship["type"] == "LOCATED_IN"
    )
    assert located["from_to"] == [["Asset", "Location"], ["Location", "Location"]]
    assert located["properties"] == {"since": "INT64"}


def test_run_query() -> None:
    answer = told(
        "run_query",
        query="MATCH (a:Asset) WHERE a.power_kw > $least RETURN a.name AS name ORDER BY name",
        parameters={"least": 40},
    )
    assert (answer["columns"], answer["rows"]) == (["name"], [[f"Intake Pump {n}"] for n in range(1, 7)])
    many = told("run_query", query="MATCH (n:Asset) RETURN n.name")
    assert (many["row_count"], "more" in many) == (200, True)


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n) DELETE n",
        "CREATE (:Asset {node_id: 'x'})",
        "LOAD FROM '/etc/passwd' RETURN *",
        "CALL threads=4",
    ],
)
def test_run_query_reads_only(query: str) -> None:
    result = run(works(), "run_query", query=query)
    assert (result.is_error, result.content) == (
        True,
        "Tool execution failed: only read-only queries are allowed.",
    )


def test_run_query_reports_a_mistake_briefly() -> None:
    result = run(works(), "run_query", query="MATCH (n:Nowhere) RETURN n.name")
    assert result.is_error
    assert result.content.startswith("Tool execution failed: ")
    assert len(result.content) <= 330


@pytest.mark.parametrize(
    ("tool", "arguments", "valid"),
    [
        ("find_node", {"name": "x", "label": "Pump"}, "Asset, Category, Context, Location, System"),
        ("count_by_label", {"label": "x`) DETACH DELETE (n"}, "Asset, Category"),
        ("count_related", {"node_id": "loc-0034", "target_label": "Pump"}, "Asset, Category"),
        (
            "list_related_by_name",
            {"name": "x", "relationship_types": ["FEEDS"]},
            "LOCATED_IN, PART_OF_SYSTEM",
        ),
        ("get_node_connections", {}, "give node_id or name"),
    ],
)
def test_a_wrong_argument_is_answered_with_the_valid_values(
    tool: str, arguments: dict[str, Any], valid: str
) -> None:
    result = run(works(), tool, **arguments)
    assert result.is_error
    assert result.content.startswith("Tool execution failed: ")
    assert valid in result.content


class Nothing:
    """An engine that must not be called."""

    def read(self, query: str, parameters: Any, limit: int) -> Any:
        raise AssertionError(query)

    read_foreign = read


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_before_a_graph_is_loaded_every_tool_says_so(tool: str) -> None:
    arguments = {
        "find_node": {"name": "x"},
        "count_nodes": {"name": "x"},
        "count_by_label": {"label": "x"},
        "list_nodes": {"label": "x"},
        "get_node_connections": {"name": "x"},
        "count_by_category": {"scope": "both"},
        "count_related": {"node_id": "x"},
        "count_related_by_name": {"name": "x"},
        "list_related": {"node_id": "x"},
        "list_related_by_name": {"name": "x"},
        "find_path": {"from_": "x", "to": "y"},
        "run_query": {"query": "MATCH (n) RETURN n"},
    }.get(tool, {})
    result = run(GraphNeeds(Nothing(), StoredSchema()), tool, **arguments)
    assert (result.is_error, result.content) == (True, "Tool execution failed: no graph is loaded.")


@pytest.fixture(scope="module")
def people() -> Iterator[GraphNeeds]:
    """Another graph: no label of the sample, a name with two labels, a cycle, and long text."""
    needs = needs_of(
        Graph(
            (
                Node("p1", "Person", "Ada"),
                Node("p2", "Person", "Grace"),
                Node("p3", "Person", "Alan", {"bio": "x" * 2_000}),
                Node("t1", "Team", "Ada"),
                Node("t2", "Team", "Compilers"),
            ),
            (
                Edge("p1", "REPORTS_TO", "p2"),
                Edge("p2", "REPORTS_TO", "p3"),
                Edge("p3", "REPORTS_TO", "p1"),
                Edge("p1", "MEMBER_OF", "t1"),
                Edge("p2", "MEMBER_OF", "t1"),
                Edge("p3", "MEMBER_OF", "t2"),
                Edge("t2", "PART_OF", "t1"),
            ),
        )
    )
    yield needs
    needs.engine.close()  # type: ignore[attr-defined]


def test_tools_work_on_any_graph(people: GraphNeeds) -> None:
    assert graph.told(people, "count_related", node_id="t1", target_label="Person")["total_count"] == 3
    assert graph.told(people, "count_related", node_id="p1")["by_label"] == {"Person": 2, "Team": 1}
    for tool in ("list_categories", "count_breakdown"):
        result = run(people, tool)
        assert result.is_error
        assert "Person" in result.content
    long = graph.told(people, "find_node", name="Alan")["nodes"][0]["properties"]["bio"]
    assert len(long) == 500


def test_a_name_of_several_labels_is_aggregated_without_counting_twice(people: GraphNeeds) -> None:
    """Ada the person has 2 people below her in the cycle; Ada the team has all 3."""
    answer = graph.told(people, "count_related_by_name", name="Ada", target_label="Person")
    assert answer["total_count"] == 3
    assert {node["node_id"]: node["total_count"] for node in answer["named_nodes"]} == {"p1": 2, "t1": 3}
    listed = graph.told(people, "list_related_by_name", name="Ada", target_label="Person", limit=2, offset=1)
    assert (listed["total_count"], names(listed)) == (3, ["Alan", "Grace"])
    only = graph.told(people, "count_related_by_name", name="Ada", label="Team", target_label="Person")
    assert only["node"]["node_id"] == "t1"
