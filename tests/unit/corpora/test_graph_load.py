"""Jobs on the graph: column types, inconsistent rows, replacement, all or nothing, two at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dualtrack.corpora.graph import load, survey
from dualtrack.tools.graph.schema import NodeLabel, Property, RelationshipType

from tests.drivers.corpus_world import limited
from tests.drivers.graph_corpus import GraphWorld, edges, nodes, table

NODES = nodes("a1,Asset,Pump", "a2,Asset,Valve", "l1,Location,Hall")
EDGES = edges("a1,IN,l1", "a2,IN,l1")


def _loaded(**files: bytes) -> GraphWorld:
    world = GraphWorld()
    job = world.run(world.begin({f"{name}.csv": data for name, data in files.items()}))
    assert job.status == "done", (job.error, world.files(job))
    return world


def _refused(files: dict[str, bytes], world: GraphWorld | None = None, **more: Any) -> tuple[str, Any]:
    world = world or GraphWorld()
    job = world.run(world.begin(files, **more))
    assert job.status == "failed"
    return job.error, world.files(job)


def test_files_become_tables_of_labels_and_types() -> None:
    world = _loaded(edges=EDGES, nodes=NODES)  # relationships may come first
    assert world.schema().labels == (NodeLabel("Asset", (), 2), NodeLabel("Location", (), 1))
    assert world.schema().types == (RelationshipType("IN", (("Asset", "Location"),), (), 2),)
    answer = world.ask(
        "MATCH (a:Asset)-[:`IN`]->(l:Location) RETURN a.node_id, a.name, l.name ORDER BY a.name"
    )
    assert answer == [["a1", "Pump", "Hall"], ["a2", "Valve", "Hall"]]
    assert dict(world.published().counts) == {"documents": 2, "nodes": 3, "edges": 2}


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [
        (["1", "-20", ""], "INT64", [1, -20, None]),
        (["1", "2.5"], "DOUBLE", [1.0, 2.5]),
        (["true", "FALSE"], "BOOL", [True, False]),
        (["1", "true"], "STRING", ["1", "true"]),
        (["007", "8"], "STRING", ["007", "8"]),
        (["1e5"], "STRING", ["1e5"]),
        (["-0"], "STRING", ["-0"]),
        (["1" * 19], "STRING", ["1" * 19]),
        (["NULL", " a "], "STRING", ["NULL", " a "]),
        (['"x', "a\nb\r\nc", "\\", "[1,2]", "é☃😀"], "STRING", ['"x', "a\nb\r\nc", "\\", "[1,2]", "é☃😀"]),
    ],
)
def test_a_column_has_a_lossless_type(values: list[str], kind: str, held: list[Any]) -> None:
    quoted = [f'{n:02d},A,x,"{value.replace(chr(34), chr(34) * 2)}"' for n, value in enumerate(values)]
    world = _loaded(nodes=table("node_id,label,name,p", *quoted))
    assert [(column.name, column.type) for column in world.schema().labels[0].properties] == [("p", kind)]
    assert [row[0] for row in world.ask("MATCH (a:A) RETURN a.p ORDER BY a.node_id")] == held


def test_values_of_json_keep_their_types_and_mixed_ones_become_text() -> None:
    listed = [
        {"node_id": "1", "label": "A", "name": "x", "text": "12", "mixed": 1, "n": 2, "b": True},
        {"node_id": "2", "label": "A", "name": "x", "text": "13", "mixed": True, "n": 2.5},
    ]
    world = GraphWorld()
    world.run(world.begin({"g.json": json.dumps({"nodes": listed}).encode()}))
    kinds = {column.name: column.type for column in world.schema().labels[0].properties}
    assert kinds == {"text": "STRING", "mixed": "STRING", "n": "DOUBLE", "b": "BOOL"}
    assert world.ask("MATCH (a:A) RETURN a.mixed, a.b ORDER BY a.node_id") == [["1", True], ["true", None]]


def test_a_label_has_only_the_columns_that_it_fills() -> None:
    world = _loaded(nodes=table("node_id,label,name,serial,floor", "a,Asset,x,S1,", "b,Location,y,,2"))
    properties = {label.name: label.properties for label in world.schema().labels}
    assert properties == {"Asset": (Property("serial", "STRING"),), "Location": (Property("floor", "INT64"),)}


@pytest.mark.parametrize(
    ("more", "name", "words"),
    [
        (edges("a1,IN,nowhere"), "more.csv", "line 2: there is no node 'nowhere'"),
        (nodes("a1,Asset,Again"), "more.csv", "line 2: node_id 'a1' occurs twice"),
        (nodes("b1,asset,Other"), "more.csv", "line 2: label 'asset': there is the label 'Asset'"),
        (edges("a1,Location,l1"), "more.csv", "line 2: type 'Location': there is the label 'Location'"),
    ],
)
def test_inconsistent_files_are_refused_and_nothing_is_published(more: bytes, name: str, words: str) -> None:
    world = _loaded(nodes=NODES)
    before = world.published()
    error, files = _refused({"edges.csv": EDGES, "more.csv": more}, world)
    assert error == "Nothing was loaded: more.csv has 1 bad row."
    assert files[name].problems[0].startswith(words)
    assert world.published() == before


def test_properties_that_differ_only_in_case_are_refused() -> None:
    _, files = _refused({"a.csv": table("node_id,label,name,p", "1,A,x,1"), "b.csv": table("node_id,label,name,P", "2,A,x,1")})  # fmt: skip
    assert files["b.csv"].problems == (
        "line 2: has the property 'P', and rows before have 'p': case does not count",
    )


def test_a_bad_file_is_named_with_its_rows_and_nothing_is_loaded() -> None:
    error, files = _refused({"nodes.csv": NODES, "edges.csv": edges("a1,IN IT,l1"), "x.csv": b"?"})
    assert error == ("Nothing was loaded: edges.csv has 1 bad row, and 1 more files were refused.")
    assert files["edges.csv"].problems[0].startswith("line 2: type is 'IN IT'")
    assert files["x.csv"].reason.startswith("has no header")
    assert files["nodes.csv"].state == "read"


def test_a_file_of_the_same_name_replaces_and_others_stay() -> None:
    world = _loaded(nodes=NODES, edges=EDGES)
    job = world.run(world.begin({"nodes.csv": NODES + b"a3,Asset,Fan\n"}))
    assert (job.status, dict(job.outcomes)) == ("done", {"1": "replaced"})
    assert world.ask("MATCH (a:Asset) RETURN count(*)") == [[3]]
    assert world.ask("MATCH ()-[r:`IN`]->() RETURN count(*)") == [[2]]
    version = world.published().version
    assert dict(world.run(world.begin({"nodes.csv": NODES + b"a3,Asset,Fan\n"})).outcomes) == {"1": "skipped"}
    assert world.published().version == version


def test_a_loaded_file_that_would_become_inconsistent_is_named() -> None:
    world = _loaded(nodes=NODES, edges=EDGES)
    error, files = _refused({"nodes.csv": nodes("a1,Asset,Pump")}, world)
    assert error == (
        "Nothing was loaded: edges.csv, which was loaded before, would have 2 bad rows "
        "(line 2: there is no node 'l1')."
    )
    assert files["nodes.csv"].state == "read"
    removal = world.run(world.begin({}, remove=["nodes.csv"]))
    assert (removal.status, "edges.csv" in removal.error) == ("failed", True)


def test_reset_keeps_only_the_new_files_if_any() -> None:
    world = _loaded(nodes=NODES, edges=EDGES)
    world.run(world.begin({"new.csv": nodes("x,Thing,Only")}, reset=True))
    assert (world.titles(), world.ask("MATCH (n) RETURN n.name")) == (["new.csv"], [["Only"]])
    assert world.run(world.begin({}, reset=True)).status == "done"
    assert (world.titles(), world.schema().labels) == ([], ())


def test_two_concurrent_jobs_are_both_loaded() -> None:
    world = GraphWorld()
    first = world.begin({"a.csv": nodes("a,A,x")})
    second = world.begin({"b.csv": nodes("b,B,y")})
    base = world.stores().corpora.published_documents
    assert base("graph") == (None, ())
    one_read = limited(1)
    assert world.step(first, one_read) == "again"  # read, and not published
    assert world.step(second) == "done"
    assert world.step(first) == "done"
    assert world.titles() == ["b.csv", "a.csv"]


def test_the_slower_job_rebuilds_from_the_other_ones_version(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GraphWorld()
    first = world.begin({"a.csv": nodes("a,A,x")})
    second = world.begin({"b.csv": nodes("b,B,y")})
    build = load.make_database

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(load, "make_database", build)
        assert world.step(second) == "done"
        return build(*arguments)

    monkeypatch.setattr(load, "make_database", overtaken)
    assert world.step(first) == "again"
    assert world.titles() == ["b.csv"]
    assert world.step(first) == "done"
    assert world.titles() == ["b.csv", "a.csv"]


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("MAX_NODES", "it may have at most 2 nodes"),
        ("MAX_EDGES", "it may have at most 1 edges"),
        ("MAX_BYTES", "MB"),
    ],
)
def test_input_over_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, words: str) -> None:
    monkeypatch.setattr(load, limit, {"MAX_NODES": 2, "MAX_EDGES": 1, "MAX_BYTES": 50}[limit])
    error, _ = _refused({"nodes.csv": NODES, "edges.csv": EDGES})
    assert words in error


def test_labels_types_and_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "MAX_LABELS", 1)
    _, files = _refused({"nodes.csv": NODES})
    assert files["nodes.csv"].problems == ("line 4: label 'Location' is one too many; at most 1 are taken",)
    monkeypatch.undo()
    monkeypatch.setattr(survey, "MAX_ENDS", 1)
    _, files = _refused({"n.csv": NODES, "e.csv": edges("a1,IN,l1", "l1,HAS,a1")})
    assert files["e.csv"].problems == ("line 3: relationships go between more than 1 pairs of labels",)
