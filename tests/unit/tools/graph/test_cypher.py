"""The engine answers the corpus of queries as openCypher defines, refuses, or differs as docs/graph.md says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from dualtrack.tools.graph.dialects import NEO4J
from dualtrack.tools.graph.engine import GraphError, QueryFailed
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.needs import GraphNeeds

from tests.drivers.cypher_results import answer, corpus, make_graph, verdict
from tests.drivers.graph import told

if TYPE_CHECKING:
    from tests.drivers.cypher_results import Known

AREAS = sorted({known.area for known in corpus()})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphNeeds:
    database, schema = make_graph(tmp_path_factory.mktemp("graph"))
    return GraphNeeds(Ladybug(database), schema)


def test_the_corpus_is_large_and_each_query_stands_once() -> None:
    queries = Counter(known.query for known in corpus())
    assert len(queries) >= 500
    assert queries.most_common(1)[0][1] == 1


@pytest.mark.parametrize("area", AREAS)
def test_no_answer_differs_silently(graph: GraphNeeds, area: str) -> None:
    wrong: list[tuple[str, str, object]] = []
    for known in of_area(area):
        got = answer(graph.engine, known.query, schema=graph.schema)
        if (said := verdict(known, "embedded", got)) in ("silent", "unexpected"):
            wrong.append((said, known.query, got))
    assert wrong == []


def of_area(area: str) -> list[Known]:
    return [known for known in corpus() if known.area == area]


def test_a_sum_is_a_number_in_the_tools_result(graph: GraphNeeds) -> None:
    query = "MATCH (p:Person) WITH p ORDER BY p.age DESC SKIP 1 LIMIT 2 RETURN sum(p.age), avg(p.age)"
    answered = told(graph, "run_query", query=query)
    assert (answered["columns"], answered["rows"]) == (["sum(p.age)", "avg(p.age)"], [[70, 35.0]])


def test_a_users_query_is_right_in_its_own_process(graph: GraphNeeds) -> None:
    query = "MATCH (a:Person {name: $who})-[:LIVES_IN]->()<-[:LIVES_IN]-(b) RETURN count(b) AS others"
    assert told(graph, "run_query", query=query, parameters={"who": "Ann"})["rows"] == [[2]]


@pytest.mark.parametrize("rows", [20_000, 300_000])
def test_order_and_number_of_many_rows_are_kept_by_several_threads(graph: GraphNeeds, rows: int) -> None:
    query = (
        f"UNWIND range(1, {rows}) AS x WITH x ORDER BY x DESC SKIP 10 LIMIT {rows // 2} "
        "WITH collect(x) AS l RETURN l[0..3], l[-1], size(l)"
    )
    first = rows - 10
    assert answer(graph.engine, query) == [[[first, first - 1, first - 2], first - rows // 2 + 1, rows // 2]]


def test_a_server_gets_no_rewriting() -> None:
    """It knows openCypher."""
    query = "MATCH (a)-[:X*1..2]->(b)<-[:X]-(c) WITH a ORDER BY a.x LIMIT 1 RETURN sum(a.x), [1, 2][0..1]"
    text, _ = guarded(query, {}, NEO4J)
    assert text == (
        "MATCH ( `a` ) - [ : `X` * 1 .. 2 ] -> ( `b` ) < - [ : `X` ] - ( `c` ) WITH `a` ORDER BY `a` . `x` LIMIT $p0 "
        "RETURN sum ( `a` . `x` ), [ $p0, $p1 ][$p2..$p0]"
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("MATCH (p:Person) WHERE p.age = '20' RETURN p", "integer and text"),
        ("MATCH (p:Person {age: '20'}) RETURN p", "compare like with like"),
        ("RETURN [1, 'a']", "a list has elements of one kind here, not integer and text"),
        ("RETURN 1 AS x UNION RETURN 1 AS y", "name them with AS"),
        ("RETURN 1 AS x UNION RETURN 1 AS x UNION ALL RETURN 1 AS x", "cannot be mixed"),
        ("UNWIND [1] AS x RETURN reverse(x)", "list_reverse"),
        ("MATCH (a)-[r*1..2]->(b) RETURN [x IN r | x.since]", "relationships(p)"),
        ("MATCH (a)" + "-->()" * 31 + " RETURN a", "at most 30 relationships"),
        ("WITH [1] AS l RETURN " + "l[" * 12 + "0" + "]" * 12, "the query is too deep"),
    ],
)
def test_what_is_refused_says_what_to_write(graph: GraphNeeds, query: str, words: str) -> None:
    with pytest.raises(QueryFailed, match=words.replace("(", r"\(").replace(")", r"\)")):
        guarded(query, {}, schema=graph.schema)


@pytest.mark.parametrize("nested", ["(", "[", "size([", "CASE WHEN TRUE THEN ", "coalesce("])
def test_what_is_nested_as_deep_as_allowed_is_rewritten(nested: str) -> None:
    ends = {"(": ")", "[": "]", "size([": "])", "CASE WHEN TRUE THEN ": " END", "coalesce(": ")"}
    deep = 12 if nested == "size([" else 24
    try:
        text, _ = guarded("RETURN " + nested * deep + "1" + ends[nested] * deep, {})
    except GraphError as error:
        text = str(error)
    assert "only read-only" not in text
