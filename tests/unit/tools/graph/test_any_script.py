"""Labels, types and properties in any script, lists and dates: from a file to a tool's answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from dualtrack.corpora.graph.load import GraphFile, make_database, taken_in
from dualtrack.corpora.graph.survey import Survey
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.needs import GraphNeeds

from tests.drivers.graph import run, told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NODES = """node_id,label,name,größe,baujahr,geprüft,teile[],maße[]
a,Gerät,Überdruckventil,3,2024-02-29,2024-03-01T09:30:00Z,"Feder; Kegel, links ;Sitz",1;2.5
b,Gerät,Pumpe,,2023-12-31,,,
c,設備,冷却塔,,,,,
d,उपकरण,पंप,,,,,
"""
EDGES = "from,type,to,seit,wege[]\na,liegtÜber,c,2020-01-05,x;y\nb,liegtÜber,c,,\nd,हिस्सा,c,,\n"
MORE = {
    "nodes": [
        {"node_id": "e", "label": "Gerät", "name": "Filter", "größe": 7, "teile": ["Sieb"], "maße": [4]},
        {"node_id": "f", "label": "Probe", "name": "Wasser", "werte": [1, 2], "wahr": [True], "leer": []},
    ]
}


def loaded(folder: Path, files: Mapping[str, str]) -> GraphNeeds:
    """The files through the loader, as in the function `graph_load`."""
    sources = []
    for at, (name, text) in enumerate(files.items()):
        path = folder / f"source-{at}"
        path.write_text(text)
        sources.append(GraphFile(name, path))
    survey = Survey()
    problems = taken_in(survey, sources)
    assert {name: found.lines for name, found in problems.items()} == {}
    return GraphNeeds(Ladybug(make_database(folder, sources, survey)), survey.schema())


@pytest.fixture(scope="module")
def needs(tmp_path_factory: pytest.TempPathFactory) -> GraphNeeds:
    files = {"nodes.csv": NODES, "edges.csv": EDGES, "more.json": json.dumps(MORE)}
    return loaded(tmp_path_factory.mktemp("graph"), files)


def rows(needs: GraphNeeds, query: str) -> list[list[object]]:
    answer = told(needs, "run_query", query=query)
    return [list(row.values()) if isinstance(row, dict) else row for row in answer["rows"]]


def test_the_schema_has_every_type(needs: GraphNeeds) -> None:
    labels = {label["label"]: label for label in told(needs, "get_schema")["labels"]}
    assert set(labels) == {"Gerät", "設備", "उपकरण", "Probe"}
    found = labels["Gerät"]["properties"]
    assert found == {
        "baujahr": "DATE",
        "geprüft": "TIMESTAMP",
        "größe": "INT64",
        "maße": "DOUBLE[]",
        "teile": "STRING[]",
    }
    assert labels["Probe"]["properties"] == {"wahr": "BOOL[]", "werte": "INT64[]"}


def test_a_node_has_lists_and_dates(needs: GraphNeeds) -> None:
    (node,) = told(needs, "find_node", name="überdruckventil")["nodes"]
    assert node["properties"] == {
        "größe": 3,
        "baujahr": "2024-02-29",
        "geprüft": "2024-03-01T09:30:00",
        "teile": ["Feder", "Kegel, links", "Sitz"],
        "maße": [1.0, 2.5],
    }


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("MATCH (g:Gerät) WHERE 'Sitz' IN g.teile RETURN g.name", [["Überdruckventil"]]),
        ("MATCH (g:Gerät) WHERE g.baujahr < date('2024-01-01') RETURN g.name", [["Pumpe"]]),
        ("MATCH (g:Gerät) RETURN max(g.baujahr)", [["2024-02-29"]]),
        ("MATCH (g:Gerät) WHERE g.größe > 5 RETURN g.name, g.teile, g.maße", [["Filter", ["Sieb"], [4.0]]]),
        (
            "MATCH (g:Gerät)-[r:liegtÜber]->(s:設備) WHERE r.seit IS NOT NULL RETURN r.wege, s.name",
            [[["x", "y"], "冷却塔"]],
        ),
        ("MATCH (p:उपकरण)-[:हिस्सा]->(s) RETURN p.name, s.name", [["पंप", "冷却塔"]]),
        ("MATCH (p:`Probe`) RETURN p.werte, p.wahr, size(p.werte)", [[[1, 2], [True], 2]]),
        (
            "MATCH (g:Gerät {node_id: 'a'}) UNWIND g.teile AS teil RETURN teil ORDER BY teil LIMIT 1",
            [["Feder"]],
        ),
    ],
)
def test_a_query_names_them_as_they_are(needs: GraphNeeds, query: str, answer: list[list[object]]) -> None:
    assert rows(needs, query) == answer


def test_a_date_is_not_compared_with_a_text(needs: GraphNeeds) -> None:
    refused = run(needs, "run_query", query="MATCH (g:Gerät) WHERE g.baujahr = '2024-02-29' RETURN g")
    assert refused.is_error
    assert "date('2024-01-31') a date" in refused.content


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ("node_id,label,name,x\na,A,n,2024-02-30\n", ""),
        ("node_id,label,name,x\na,A,n,2024-01-05T10:00:00+02:00\n", ""),
        ("node_id,label,name,x[]\na,A,n,1;x\n", ""),
        ("node_id,label,name,x[],X\n", "two columns of one name"),
        ("node_id,label,name\na,1A,n\n", "a letter of any script"),
        ("node_id,label,name\na,A-B,n\n", "a letter of any script"),
        ("node_id,label,name\na,A\u0308,n\n", "a letter of any script"),
    ],
)
def test_what_is_no_date_stays_text_and_what_is_no_name_is_refused(
    tmp_path: Path, nodes: str, problem: str
) -> None:
    path = tmp_path / "source"
    path.write_text(nodes)
    survey, source = Survey(), GraphFile("nodes.csv", path)
    try:
        problems = taken_in(survey, [source])
        found = [line for one in problems.values() for line in one.lines]
    except Exception as refused:  # noqa: BLE001 - the file as a whole
        found = [str(refused)]
    found += [str(row) for row in source.rows() if "Problem" in type(row).__name__] if not found else []
    assert (problem in "".join(found)) if problem else not found
    if not problem:
        (label,) = survey.schema().labels
        assert {column.type for column in label.properties} <= {"STRING", "STRING[]"}


def test_a_list_beside_a_text_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_text(
        json.dumps(
            {
                "nodes": [
                    {"node_id": "a", "label": "A", "name": "n", "x": ["1"]},
                    {"node_id": "b", "label": "A", "name": "n", "x": "1"},
                ]
            }
        )
    )
    problems = taken_in(Survey(), [GraphFile("nodes.json", path)])
    assert problems["nodes.json"].lines == ("node 2: has no list as x, unlike rows before it",)
