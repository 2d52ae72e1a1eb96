"""A collection's jobs with every fault at each outside call: what was there is found until the new version is whole,
and nothing is left of a collection that is deleted meanwhile (docs/faults.md)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.corpora.ingest import Ingest, ingest
from dualtrack.corpora.jobs import sweep_corpora
from dualtrack.corpora.owned import drop, owned_in
from dualtrack.ids import new_job_id, new_upload_id
from dualtrack.plugins.knowledge.index import load
from dualtrack.plugins.knowledge.kind import DocumentsKind
from dualtrack.plugins.knowledge.names import KIND
from dualtrack.storage.corpora import upload_key
from dualtrack.storage.corpus_jobs import CLEAN_AFTER, Job, JobFile
from dualtrack.storage.owned_corpora import OwnedCorpus

from tests.drivers.corpus_world import LOOP, CorpusWorld, WordVectors
from tests.drivers.faults import Died, Fault, Process, Site, kinds_at

if TYPE_CHECKING:
    from dualtrack.corpora.kinds import ParsedFile

OWN: Final = OwnedCorpus("col_1", "user-1", KIND, "Papers", 0)
LEAVE: Final = b"# Leave\n\nEverybody has thirty days."
PRICES: Final = b"# Prices\n\nA bicycle costs 400 euros."
NEW_PRICES: Final = b"# PRICES\n\nA bicycle costs 500 euros."
BROKEN: Final = b"%PDF-1.4\nnothing"


@cache
def _read(name: str, data: bytes, title: str) -> ParsedFile:
    """Each file is read once, in a process of its own, however many lives have it."""
    return DocumentsKind().read(name, data, title)


class KnownFiles(DocumentsKind):
    """Documents, each of which is read once."""

    def read(self, name: str, data: bytes, title: str = "") -> ParsedFile:
        return _read(name, data, title)


@dataclass
class Collections(CorpusWorld):
    """An account with one collection."""

    corpus: str = OWN.corpus

    def begin_in_collection(self, files: dict[str, bytes]) -> Job:
        """The job as a request leaves it that died before it started the execution."""
        listed = []
        for number, (name, data) in enumerate(files.items(), start=1):
            upload_id = new_upload_id(hashlib.sha256(data).hexdigest())
            self.aws.objects[upload_key(self.corpus, upload_id)] = data
            listed.append(JobFile(number, name, upload_id))
        job = Job(self.corpus, new_job_id(), OWN.owner, int(self.clock()), kind=KIND)
        stores = self.stores()
        stores.corpus_jobs.create(job, listed, [owned_in(stores).is_there(OWN)])
        return job

    def step(self, job: Job, has_time: Any = lambda: True) -> str:
        """One call of the function `read_documents`."""
        process = Process(self.trace, "read_documents")
        embedder: Any = WordVectors(process)
        deps = Ingest(self.stores(process), KnownFiles(), embedder, LOOP, named=self.corpus)
        return ingest(deps, job.job_id, has_time)

    def found(self) -> dict[str, str]:
        """The text of each document, in the list and in the index."""
        version = self.published().version
        stores = self.stores()
        index = load(stores.corpora.index(self.corpus, version))
        listed = [document.title for document in stores.corpora.documents(self.corpus, version)]
        assert listed == list(index.titles)
        return {
            title: " ".join(index.chunk(row).text for row in index.rows(at))
            for at, title in enumerate(index.titles)
        }


def _world(fault: Fault | None) -> Collections:
    world = Collections()
    owned_in(world.stores()).create(OWN, 1)
    world.run(world.begin_in_collection({"leave.md": LEAVE, "prices.md": PRICES}))
    world.trace.sites.clear()
    world.trace.fault = fault
    return world


def _replaced(fault: Fault | None) -> Collections:
    """A document that is replaced by another spelling of its title, beside a file that cannot be read."""
    world = _world(fault)
    job = world.begin_in_collection({"new.md": NEW_PRICES, "broken.pdf": BROKEN})
    ended = world.run(job)
    assert (ended.status, dict(ended.outcomes)) == ("done", {"1": "replaced"}), fault
    assert world.files(ended)["broken.pdf"].state == "refused"
    assert world.found().keys() == {"Leave", "PRICES"}, fault
    assert "500" in world.found()["PRICES"]
    world.clock.now += CLEAN_AFTER + 1
    _swept(world)
    assert len(world.objects()) == 2, (fault, world.objects())
    return world


def _dropped(fault: Fault | None) -> Collections:
    """A collection that its user deletes while a job of it reads; the request is sent again if it dies."""
    world = _world(fault)
    job = world.begin_in_collection({"new.md": NEW_PRICES})
    steps = iter([True])
    for _ in range(2):
        try:
            assert world.step(job, lambda: next(steps, False)) in {"again", "done"}
            break
        except Exception:  # noqa: BLE001 - the fault; the workflow's next step has none
            assert world.trace.struck, fault
    for _ in range(2):
        try:
            drop(world.stores(Process(world.trace, "api")), OWN)
            break
        except Exception:  # noqa: BLE001 - the fault; the user asks again
            assert world.trace.struck, fault
    assert owned_in(world.stores()).find(OWN.owner, OWN.corpus) is None, fault
    ended = world.run(job)
    assert ended.status == "failed", fault
    _swept(world)
    world.clock.now += CLEAN_AFTER + 1
    _swept(world)
    assert [key for key in world.aws.objects if OWN.corpus in key] == [], fault
    assert list(world.stores().corpus_jobs.active()) == [], fault
    assert world.stores().corpora.published(OWN.corpus) is None, fault
    return world


def _swept(world: Collections) -> None:
    for _ in range(2):
        try:
            sweep_corpora(world.stores(Process(world.trace, "sweep")), world.executions())
        except (Died, Exception):  # noqa: BLE001 - the fault; the next sweep has none
            assert world.trace.struck


@pytest.mark.parametrize("life", [_replaced, _dropped])
def test_a_collection_survives_a_fault_at_every_call(life: Any) -> None:
    sites: list[Site] = list(dict.fromkeys(life(None).trace.sites))
    assert {"dynamodb", "s3"} <= {site.service for site in sites}
    faults = [Fault(site, kind) for site in sites for kind in kinds_at(site)]
    struck = [fault for fault in faults if life(fault).trace.struck]
    assert len(struck) == len(faults) > 100
