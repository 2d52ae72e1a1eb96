"""A job on the graph whose every outside call goes wrong once, in every way: the old graph serves, then the new one."""

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
    """An account of its own in which a graph was loaded."""
    one = _before()
    return MemoryAws(copy.deepcopy(one.tables), dict(one.objects), dict(one.executions))


def _life(fault: Fault | None) -> GraphWorld:
    """A job on a graph that is there, from the request to the last object that is deleted."""
    world = GraphWorld(fault, aws=_loaded())
    ended = world.live({"nodes.csv": MORE, "edges.csv": NEW_EDGES})
    assert (ended.status, dict(ended.outcomes)) == ("done", {"1": "replaced", "2": "replaced"}), fault
    assert world.titles() == ["nodes.csv", "edges.csv", "other.csv"], fault
    assert [one.count for one in world.schema().labels] == [2, 1], fault
    objects = [key.split("/versions/")[1].split("/", 1) for key in world.objects()]
    assert {version for version, _ in objects} == {world.published().version}, fault
    names = sorted(name for _, name in objects)
    assert names == ["documents", "index", "schema", *(f"sources/000{n}" for n in range(3))], fault
    return world


def _sites() -> list[Site]:
    sites = _life(None).trace.sites
    return [site for site in dict.fromkeys(sites) if site.step != "api"]


def test_every_call_of_a_job_goes_wrong_once() -> None:
    """In every way in the long form; else each call in one, which the seed chooses."""
    sites = _sites()
    assert {site.service for site in sites} == {"dynamodb", "s3"}
    faults = [[Fault(site, kind) for kind in kinds_at(site)] for site in sites]
    assert len(faults) > 20
    wanted = [
        one for some in faults for one in (some if ALL else [random.Random(f"{SEED}{some}").choice(some)])
    ]
    struck = [fault for fault in wanted if _life(fault).trace.struck]
    assert len(struck) == len(wanted)


def test_the_graph_that_is_published_is_the_one_that_was_loaded() -> None:
    world = _life(None)
    found = world.ask("MATCH (a)-[:LOCATED_IN]->(b) RETURN a.name, b.name")
    assert found == [["Valve", "Hall"]]
    assert world.ask("MATCH (n:Asset) RETURN n.name ORDER BY n.name") == [["Rest"], ["Valve"]]
