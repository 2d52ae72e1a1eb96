"""A corpus job with every fault at each outside call: the old version is served until the new one is published."""

from __future__ import annotations

import pytest

from tests.drivers.corpus_world import CorpusWorld, course
from tests.drivers.faults import Fault, Site, kinds_at

A = course("Sailing", "The wind fills the sail.")
B = course("Baking", "Flour and water become dough.")
B2 = course("Baking", "Sugar and butter become cake.")
REFUSED = b"no title"


def _life(fault: Fault | None, *, beside: bool) -> CorpusWorld:
    """A job on an existing corpus, from the request until its last object is deleted."""
    world = CorpusWorld(fault, beside=beside)
    world.trace.fault = None
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    world.trace.sites.clear()
    world.trace.fault = fault
    ended = world.live({"b.txt": B2, "bad.txt": REFUSED})
    assert (ended.status, dict(ended.outcomes)) == ("done", {"1": "replaced"}), fault
    assert world.files(ended)["bad.txt"].state == "refused"
    assert world.titles() == ["Sailing", "Baking"], fault
    assert len(world.objects()) == 2, (fault, world.objects())
    assert len(world.aws.vector_indexes) == beside, (fault, list(world.aws.vector_indexes))
    return world


def _sites(*, beside: bool) -> list[Site]:
    sites = _life(None, beside=beside).trace.sites
    return [site for site in dict.fromkeys(sites) if site.step != "api"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_job_survives_a_fault_at_every_call(beside: bool) -> None:
    sites = _sites(beside=beside)
    services = {"dynamodb", "s3", "embed"} | ({"s3vectors"} if beside else set())
    assert {site.service for site in sites} == services
    faults = [Fault(site, kind) for site in sites for kind in kinds_at(site)]
    struck = [fault for fault in faults if _life(fault, beside=beside).trace.struck]
    assert len(struck) == len(faults) > 100
