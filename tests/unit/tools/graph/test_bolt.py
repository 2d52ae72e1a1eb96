"""The tools give the same answers on a real Neo4j over Bolt as on the embedded engine."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tools.graph import bolt
from dualtrack.tools.graph.bolt import Bolt
from dualtrack.tools.graph.bolt_library import SCHEMA_SECONDS, BoltLibrary
from dualtrack.tools.graph.bolt_schema import read_schema
from dualtrack.tools.graph.dialects import NEO4J
from dualtrack.tools.graph.engine import QueryFailed, QueryTimedOut
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.needs import GraphNeeds
from neo4j import GraphDatabase

from tests.drivers import graph
from tests.drivers.graph import TOOLS
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neo4j import Driver

JARS = Path(os.environ.get("NEO4J_DIR") or Path(__file__).parents[4] / ".build" / "neo4j")

JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Some forty queries: optimising its code would take longer than running them."""

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


LEGAL = [
    "MATCH (a:Asset) RETURN count(*)",
    "MATCH (a:Asset|Location) WHERE lower(a.name) CONTAINS 'pump' AND NOT a.name =  'x' RETURN a.name LIMIT 3",
    "MATCH (a:Asset)-[r]->(b) RETURN type(r), labels(b)[0], count(*) ORDER BY count(*) DESC",
    "OPTIONAL MATCH (a:Asset {node_id: 'none'}) RETURN a",
    "MATCH p = (a:Asset)-[:LOCATED_IN*1..3]->(b) RETURN length(p), size(nodes(p)), relationships(p) LIMIT 2",
    "UNWIND [1, 2, 3] AS x WITH x WHERE x > 1 RETURN sum(x), avg(x), collect(x), range(1, 3)",
    "MATCH (a:Asset) RETURN CASE WHEN a.power_kw > 5 THEN 'big' ELSE 'small' END AS size, count(*) ORDER BY size",
    "MATCH (a:Asset) WHERE a.name STARTS WITH 'I' RETURN a.name AS n UNION MATCH (b:Location) RETURN b.name AS n",
    "MATCH (a:Location) WHERE EXISTS { MATCH (a)<-[:LOCATED_IN]-(:Asset) } RETURN count(a)",
    "MATCH (a:Location) RETURN a.name, COUNT { (a)<-[:LOCATED_IN]-() } AS n ORDER BY n DESC SKIP 1 LIMIT 2",
    "MATCH (a:Asset) WHERE any(x IN labels(a) WHERE x = 'Asset') RETURN toUpper(a.name), coalesce(a.none, 1) LIMIT 1",
    "RETURN date() IS NOT NULL, substring('abc', 1), split('a,b', ','), 1 / 2.0, [1, 2][0], {a: 1}.a, $given",
]
"""With what a model would use; the server takes all of it as the guard writes it."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the sample graph."""
    if not JARS.exists():
        pytest.skip("no Neo4j here: sh .ci/install_neo4j.sh")
    folder = tmp_path_factory.mktemp("neo4j")
    command = ["java", *JAVA, "-cp", f"{JARS}/*:{JARS}", "Neo4jServer", str(folder)]
    log = (folder / "stderr").open("w")
    with (
        log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        assert server.stdin is not None
        # the server may write other lines first
        url = next((line.strip() for line in server.stdout if line.startswith(("bolt://", "neo4j://"))), "")
        assert url, (folder / "stderr").read_text()
        with GraphDatabase.driver(url) as opened:
            fill(opened)
        yield url
        server.stdin.close()


@pytest.fixture(scope="module")
def driver(address: str) -> Iterator[Driver]:
    with bolt.open_driver(address, "neo4j", "") as opened:
        yield opened


def fill(driver: Driver) -> None:
    sample = graph.sample()
    label_of = {node.node_id: node.label for node in sample.nodes}
    with driver.session() as opened:
        session: Any = opened  # its type asks for literal texts
        for label in sample.schema.labels:
            rows = [
                {"node_id": node.node_id, "name": node.name, **node.properties}
                for node in sample.nodes
                if node.label == label.name
            ]
            session.run(f"UNWIND $rows AS row CREATE (n:{label.name}) SET n = row", rows=rows).consume()
            session.run(f"CREATE CONSTRAINT FOR (n:{label.name}) REQUIRE n.node_id IS UNIQUE").consume()
        for kind in sample.schema.types:
            for start, end in kind.ends:
                rows = [
                    {"start": edge.start, "end": edge.end, "own": dict(edge.properties)}
                    for edge in sample.edges
                    if (edge.type, label_of[edge.start], label_of[edge.end]) == (kind.name, start, end)
                ]
                session.run(
                    f"UNWIND $rows AS row MATCH (a:{start} {{node_id: row.start}}), (b:{end} {{node_id: row.end}}) "
                    f"CREATE (a)-[r:{kind.name}]->(b) SET r = row.own",
                    rows=rows,
                ).consume()


def test_every_tool_is_called() -> None:
    assert {tool for tool, _ in CALLS} == set(TOOLS)


def test_the_schema_is_that_of_the_files(driver: Driver) -> None:
    read, expected = read_schema(Bolt(driver)), graph.sample().schema
    assert [(label.name, set(label.properties), label.count) for label in read.labels] == [
        (label.name, set(label.properties), label.count) for label in expected.labels
    ]
    assert [(kind.name, kind.ends, set(kind.properties), kind.count) for kind in read.types] == [
        (kind.name, kind.ends, set(kind.properties), kind.count) for kind in expected.types
    ]


@pytest.fixture(scope="module")
def on_server(address: str) -> Iterator[GraphNeeds]:
    library = BoltLibrary(address, "neo4j", str, logging.getLogger("graph"))
    yield library.needs()
    library.close()


@pytest.fixture(scope="module")
def embedded() -> Iterator[GraphNeeds]:
    needs = graph.needs_of(graph.sample())
    yield needs
    needs.engine.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_the_answer_is_that_of_the_embedded_engine(
    on_server: GraphNeeds, embedded: GraphNeeds, tool: str, arguments: dict[str, Any]
) -> None:
    assert graph.told(on_server, tool, **arguments) == graph.told(embedded, tool, **arguments)


@pytest.mark.parametrize("query", LEGAL)
def test_the_server_accepts_the_guards_queries(driver: Driver, query: str) -> None:
    text, parameters = guarded(query, {"given": 1}, NEO4J)
    assert Bolt(driver).read_foreign(text, parameters, 200).rows


def test_the_server_has_every_function_of_the_dialect(driver: Driver) -> None:
    functions = Bolt(driver).rows("SHOW FUNCTIONS YIELD name RETURN name", {}, 1_000).rows
    known = {str(name) for (name,) in functions} | {"isEmpty", "stDev", "lTrim", "rTrim", "nullIf"}
    lower = {name.lower() for name in known}
    assert [name for name in NEO4J.functions.values() if name.lower() not in lower] == []


def test_the_server_refuses_to_write(driver: Driver) -> None:
    with pytest.raises(QueryFailed, match="Writing in read access mode not allowed"):
        Bolt(driver).read("CREATE (n:Asset {node_id: 'x'}) RETURN n", {}, 1)
    assert Bolt(driver).read("MATCH (n {node_id: 'x'}) RETURN n", {}, 1).rows == ()


def test_a_runaway_ends(driver: Driver) -> None:
    with pytest.raises(QueryTimedOut):
        Bolt(driver, seconds=0.5).read("UNWIND range(1, 1000000000) AS x RETURN sum(x % 7)", {}, 1)
    assert Bolt(driver).read("RETURN 1 AS one", {}, 1).rows == ((1,),)


def test_rows_are_counted_and_weighed(driver: Driver) -> None:
    answer = Bolt(driver).read_foreign("UNWIND range(1, 1000) AS x RETURN x", {}, 500)
    assert (len(answer.rows), answer.more) == (200, True)
    with pytest.raises(QueryFailed, match="too large"):
        Bolt(driver).read("UNWIND range(1, 100) AS x RETURN range(1, 10000)", {}, 200)


def test_the_servers_message_is_one_line_of_300_characters(driver: Driver) -> None:
    with pytest.raises(QueryFailed) as failure:
        Bolt(driver).read("RETURN " + "unknown_name + " * 50 + "1", {}, 1)
    assert len(str(failure.value)) <= 300
    assert "\n" not in str(failure.value)


def test_a_strange_name_is_left_out_of_the_schema_and_a_node_without_id_is_no_crash(
    address: str, driver: Driver
) -> None:
    strange = "MATCH (a:Context) WITH a LIMIT 1 CREATE (n:Asset)-[:`b\\a`]->(a)"
    with GraphDatabase.driver(address) as writing, writing.session() as session:
        session.run(strange).consume()
        try:
            needs = GraphNeeds(Bolt(driver), read_schema(Bolt(driver)), NEO4J)
            assert [kind for kind in needs.schema.types if "\\" in kind.name] == []
            answer = graph.told(needs, "list_nodes", label="Asset", limit=200, offset=400)
            assert answer["nodes"][-1] == {"node_id": "", "label": "Asset", "name": "", "properties": {}}
        finally:
            session.run("MATCH (n:Asset) WHERE n.node_id IS NULL DETACH DELETE n").consume()


def test_a_new_password_is_a_new_driver_and_the_schema_is_kept_for_a_time(address: str) -> None:
    """This server accepts any password."""
    passwords, clock = ["a"], FakeClock()
    library = BoltLibrary(address, "neo4j", lambda: passwords[-1], logging.getLogger("graph"), clock)
    first = library.needs()
    assert library.needs() == first
    passwords.append("b")
    second = library.needs()
    assert second.engine != first.engine
    assert second.schema is first.schema
    clock.now += SCHEMA_SECONDS
    assert library.needs().schema is not first.schema
    library.close()
