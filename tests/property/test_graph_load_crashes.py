"""A graph job with a fault at each of its outside calls: the old graph is served until the new one is published."""

from __future__ import annotations

import copy
import os
import random
from functools import cache
from typing import Final

from tests.drivers.faults import Fault, Site, kinds_at
from tests.drivers.graph_corpus import GraphWorld, edges, nodes
from tests.drivers.memory_aws import MemoryAws
from tests.long_forms import LONG

SEED: Final = os.environ.get("DUALTRACK_CRASH_SEED", "20261122")
ALL: Final = LONG
NODES = nodes("a1,Asset,Pump", "l1,Location,Hall")
EDGES = edges("a1,LOCATED_IN,l1")
MORE = nodes("a2,Asset,Valve", "l1,Location,Hall")
NEW_EDGES = edges("a2,LOCATED_IN,l1")


@cache
def _before() -> MemoryAws:
    world = GraphWorld()
    world.run(world.begin({"nodes.csv": NODES, "edges.csv": EDGES, "other.csv": nodes("x,Asset,Rest")}))
    return world.aws


def _loaded() -> MemoryAws:
    """A fresh copy of an account with a loaded graph."""
    before = _before()
    return MemoryAws(copy.deepcopy(before.tables), dict(before.objects), dict(before.executions))


def _life(fault: Fault | None) -> GraphWorld:
    """A job on an existing graph, from the request until its last object is deleted."""
    world = GraphWorld(fault, aws=_loaded())
    ended = world.live({"nodes.csv": MORE, "edges.csv": NEW_EDGES})
    assert (ended.status, dict(ended.outcomes)) == ("done", {"1": "replaced", "2": "replaced"}), fault
    assert world.titles() == ["nodes.csv", "edges.csv", "other.csv"], fault
    assert [label.count for label in world.schema().labels] == [2, 1], fault
    objects = [key.split("/versions/")[1].split("/", 1) for key in world.objects()]
    assert {version for version, _ in objects} == {world.published().version}, fault
    names = sorted(name for _, name in objects)
    assert names == ["documents", "index", "schema", *(f"sources/000{n}" for n in range(3))], fault
    return world


def _sites() -> list[Site]:
    sites = _life(None).trace.sites
    return [site for site in dict.fromkeys(sites) if site.step != "api"]


def test_a_job_survives_a_fault_at_every_call() -> None:
    """In the long form with every fault; otherwise each call with one, chosen by the seed."""
    sites = _sites()
    assert {site.service for site in sites} == {"dynamodb", "s3"}
    faults = [[Fault(site, kind) for kind in kinds_at(site)] for site in sites]
    assert len(faults) > 20
    wanted = [
        fault for some in faults for fault in (some if ALL else [random.Random(f"{SEED}{some}").choice(some)])
    ]
    struck = [fault for fault in wanted if _life(fault).trace.struck]
    assert len(struck) == len(wanted)


def test_the_published_graph_is_the_loaded_one() -> None:
    world = _life(None)
    rows = world.ask("MATCH (a)-[:LOCATED_IN]->(b) RETURN a.name, b.name")
    assert rows == [["Valve", "Hall"]]
    assert world.ask("MATCH (n:Asset) RETURN n.name ORDER BY n.name") == [["Rest"], ["Valve"]]
