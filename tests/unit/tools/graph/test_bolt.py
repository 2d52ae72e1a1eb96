"""The tools on a real Neo4j over Bolt answer as on the embedded engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tools.graph.bolt import Bolt
from dualtrack.tools.graph.engine import QueryFailed, QueryTimedOut
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.tools import TOOLS
from neo4j import GraphDatabase

from tests.drivers import graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neo4j import Driver

JARS = Path(os.environ.get("NEO4J_DIR") or Path(__file__).parents[4] / ".build" / "neo4j")

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("find_node", {"name": "biofilter 11"}),
    ("find_node", {"name": "Biofiltr 11"}),
    ("count_nodes", {"name": "PUMP"}),
    ("count_by_label", {"label": "Asset"}),
    ("list_nodes", {"label": "Asset", "name_prefix": "intake p", "limit": 4, "offset": 4}),
    ("list_categories", {}),
    ("list_categories", {"scope": "system"}),
    ("get_node_connections", {"node_id": "loc-0034"}),
    ("count_by_category", {"scope": "both"}),
    ("count_by_category", {"scope": "location", "target_label": "Asset"}),
    ("count_related", {"node_id": "loc-0001"}),
    ("count_related_by_name", {"name": "Pump Room", "target_label": "Asset"}),
    ("list_related", {"node_id": "loc-0034", "limit": 6, "offset": 22}),
    ("list_related_by_name", {"name": "Pump Room", "target_label": "Asset"}),
    ("count_breakdown", {}),
    ("count_breakdown", {"name": "Biofilter 11"}),
    ("find_path", {"from_": "Biofilter 11", "to": "Control Room"}),
    ("find_path", {"from_": "Biofilter 11", "to": "Control Room", "max_depth": 2}),
    ("get_schema", {}),
    ("run_query", {"query": "MATCH (n:Asset) WHERE n.name STARTS WITH 'I' RETURN n.name AS x ORDER BY x LIMIT 7"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A server with the sample graph."""
    if not JARS.exists():
        pytest.skip("no Neo4j here: bash .ci/install_neo4j.sh")
    command = [
        "java", "-Xmx512m", "-cp", f"{JARS}/*:{JARS}", "Neo4jServer", str(tmp_path_factory.mktemp("neo4j")),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        address = server.stdout.readline().strip()
        with GraphDatabase.driver(address) as opened:
            fill(opened)
            yield opened
        server.stdin.close()


def fill(driver: Driver) -> None:
    sample = graph.sample()
    label_of = {one.node_id: one.label for one in sample.nodes}
    with driver.session() as session:
        for label in sample.schema.labels:
            rows = [
                {"node_id": one.node_id, "name": one.name, **one.properties}
                for one in sample.nodes
                if one.label == label.name
            ]
            session.run(f"UNWIND $rows AS row CREATE (n:{label.name}) SET n = row", rows=rows).consume()
            session.run(f"CREATE CONSTRAINT FOR (n:{label.name}) REQUIRE n.node_id IS UNIQUE").consume()
        for edge in sample.edges:
            session.run(
                f"MATCH (a:{label_of[edge.start]} {{node_id: $start}}), (b:{label_of[edge.end]} {{node_id: $end}}) "
                f"CREATE (a)-[r:{edge.type}]->(b) SET r = $properties",
                start=edge.start,
                end=edge.end,
                properties=dict(edge.properties),
            ).consume()


def test_every_tool_is_called() -> None:
    assert {tool for tool, _ in CALLS} == TOOLS.keys()


@pytest.mark.parametrize(("tool", "given"), CALLS)
def test_the_answer_is_that_of_the_embedded_engine(driver: Driver, tool: str, given: dict[str, Any]) -> None:
    sample = graph.sample()
    needs = GraphNeeds(Bolt(driver), sample.schema)
    said = graph.told(needs, tool, **given)
    if tool == "run_query":
        said["columns"] = ["x"]
    embedded = graph.needs_of(sample)
    expected = graph.told(embedded, tool, **given)
    embedded.engine.close()  # type: ignore[attr-defined]
    assert said == expected


def test_the_server_refuses_to_write(driver: Driver) -> None:
    with pytest.raises(QueryFailed, match="Writing in read access mode not allowed"):
        Bolt(driver).read("CREATE (n:Asset {node_id: 'x'}) RETURN n", {}, 1)


def test_a_runaway_ends(driver: Driver) -> None:
    with pytest.raises(QueryTimedOut):
        Bolt(driver, seconds=0.5).read("UNWIND range(1, 1000000000) AS x RETURN sum(x % 7)", {}, 1)
    assert Bolt(driver).read("RETURN 1 AS one", {}, 1).rows == ((1,),)
