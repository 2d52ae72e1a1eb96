"""The sample graph in a stack without a graph: built from its files and published once."""

from __future__ import annotations

from dualtrack_stack.local.sample_graph.publish import publish

from tests.drivers.graph_corpus import GraphWorld

IN_BIOFILTER_11 = (
    "MATCH (a:Asset)-[:LOCATED_IN*1..6]->(l:Location {name: 'Biofilter 11'}) RETURN count(DISTINCT a.node_id)"
)


def test_it_is_published_once_and_only_where_there_is_no_graph() -> None:
    world = GraphWorld()
    assert publish(world.stores())
    assert world.ask(IN_BIOFILTER_11) == [[23]]
    assert {label.name for label in world.schema().labels} == {
        "Asset",
        "Category",
        "Context",
        "Location",
        "System",
    }
    assert sum(label.count for label in world.schema().labels) == world.published().counts["nodes"] >= 500
    world.run(world.begin({}, reset=True))
    assert not publish(world.stores())
    assert world.titles() == []


def test_its_files_can_be_replaced_like_any_other() -> None:
    world = GraphWorld()
    publish(world.stores())
    more = b"node_id,label,name\nnew-1,Asset,A new pump\n"
    job = world.run(world.begin({"more.csv": more}))
    assert job.status == "done"
    assert world.titles() == ["nodes.csv", "edges.csv", "more.csv"]
    assert world.ask("MATCH (a:Asset {node_id: 'new-1'}) RETURN a.name") == [["A new pump"]]
