"""Jobs on a corpus in one process: the API's calls, the workflow's steps with their retries, the sweep.

Every call of a step is a delivery to a `Process` of its own, so that one call of one delivery can go wrong
(tests/drivers/faults.py). Nothing runs in the background: a test decides which step runs when.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from dualtrack.corpora.courses import CoursesKind, put_vectors
from dualtrack.corpora.ingest import Ingest, ingest
from dualtrack.corpora.jobs import start_job, sweep_corpora
from dualtrack.errors import Transient
from dualtrack.ids import new_job_id, new_upload_id
from dualtrack.knowledge.vectors import pack
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.runtime.executions import Executions
from dualtrack.storage.corpora import upload_key
from dualtrack.storage.corpus_jobs import CLEAN_AFTER, Job, JobFile
from dualtrack.storage.stores import build_stores
from dualtrack.storage.vector_indexes import index_name
from dualtrack.tools.courses.index import load

from tests.drivers.faults import Died, Process, Trace
from tests.drivers.memory_aws import MemoryAws
from tests.drivers.world import SETTINGS, FakeClock
from tests.servers.voyage import words_as_vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.storage.corpora import PublishedVersion
    from dualtrack.storage.stores import Stores
    from dualtrack.tools.courses.index import CourseIndex

    from tests.drivers.faults import Fault

CORPUS: Final = "courses"
MACHINE: Final = "arn:aws:states:us-east-1:1:stateMachine:corpus"
ATTEMPTS: Final = 12
LOOP: Final = BackgroundLoop()


def course(title: str, *lessons: str) -> bytes:
    """A document with these lessons' texts, from lesson 0 on."""
    parts = [f"Course Title: {title}", f"Course Link: https://courses.example/{len(title)}", ""]
    for number, text in enumerate(lessons):
        parts += [f"Lesson {number}: Part {number}", text, ""]
    return "\n".join(parts).encode()


def long_course(title: str, sentences: int) -> bytes:
    """A document of many chunks."""
    return course(title, " ".join(f"Sentence {n} of {title} says what it says." for n in range(sentences)))


@dataclass
class WordVectors:
    """Embeddings over the process's edge: bags of words, as the fake Voyage server makes them."""

    process: Process
    model: str = "words"
    away: bool = False

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        """One vector a text."""
        from dualtrack.errors import Degraded

        if self.away:
            raise Degraded("Voyage: away")
        vectors: tuple[bytes, ...] = self.process.call(
            "embed", "invoke", "", lambda: tuple(pack(words_as_vector(text)) for text in texts)
        )
        return vectors

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class CorpusWorld:
    """An account with corpora. ``model``: of the embeddings, empty for none; ``embedder``: in place of bags of words;
    ``beside``: vectors are stored in a vector index.
    """

    fault: Fault | None = None
    model: str = "words"
    away: bool = False
    corpus: str = CORPUS
    beside: bool = False
    aws: MemoryAws = field(default_factory=MemoryAws)
    clock: FakeClock = field(default_factory=FakeClock)
    kind: CoursesKind = field(default_factory=CoursesKind)
    embedder: Any = None

    def __post_init__(self) -> None:
        self.trace = Trace(self.aws, self.fault)
        self.quiet = Trace(self.aws)

    # ── who does what ─────────────────────────────────────────────────────────────────────────────

    def begin(
        self,
        files: Mapping[str, bytes],
        *,
        reset: bool = False,
        remove: Sequence[str] = (),
        started: bool = True,
    ) -> Job:
        """Upload files and begin a job; ``started`` False: the request dies before it starts the execution."""
        listed = []
        for number, (name, data) in enumerate(files.items(), start=1):
            upload_id = new_upload_id(hashlib.sha256(data).hexdigest())
            self.aws.objects[upload_key(self.corpus, upload_id)] = data
            listed.append(JobFile(number, name, upload_id))
        job = Job(self.corpus, new_job_id(), "an-admin", int(self.clock()), reset=reset, remove=tuple(remove))
        stores = self.stores(Process(self.trace, "api"))
        if started:
            start_job(stores, self.executions(), job, listed)
        else:
            stores.corpus_jobs.create(job, listed)
        return job

    def step(self, job: Job, has_time: Callable[[], bool] = lambda: True) -> str:
        """One call of the function `ingest`."""
        process = Process(self.trace, "ingest")
        embedder: Any = self.embedder or (WordVectors(process, self.model, self.away) if self.model else None)
        stores = self.stores(process)
        beside = partial(put_vectors, stores.vector_indexes) if stores.vector_indexes else None
        return ingest(Ingest(stores, self.kind, embedder, LOOP, beside), job.job_id, has_time)

    def run(self, job: Job) -> Job:
        """The execution: steps until the job is over, each retried as the workflow does. Returns the job."""
        following, failures = "again", 0
        while following == "again":
            try:
                following = self.step(job)
            except (Died, Transient, ClientError, BotoCoreError):
                failures += 1
                assert failures < ATTEMPTS
        self.aws.executions[job.execution] = "SUCCEEDED"
        return self.job(job)

    def sweep(self) -> int:
        """The sweep's part."""
        return sweep_corpora(self.stores(Process(self.trace, "sweep")), self.executions())

    def live(self, files: Mapping[str, bytes]) -> Job:
        """A job whose request dies before its start, until its last object is deleted; one step meets the fault."""
        job = self.begin(files, started=False)
        self.run(job)
        self.clock.now += CLEAN_AFTER + 1
        for _ in range(2):
            try:
                self.sweep()
            except Exception:  # noqa: BLE001 - the fault; the next sweep has none
                assert self.trace.struck
        return self.job(job)

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def stores(self, process: Process | None = None) -> Stores:
        """Stores over a process's edge."""
        edge = process or Process(self.quiet, "look")
        settings = replace(SETTINGS, course_vectors="vectors" if self.beside else "")
        return build_stores(settings, edge.dynamodb, edge.s3, self.clock, edge.s3_vectors)

    def executions(self) -> Executions:
        return Executions(Process(self.quiet, "states").step_functions, MACHINE)

    def job(self, job: Job) -> Job:
        """The job as stored now."""
        stored = self.stores().corpus_jobs.find(self.corpus, job.job_id)
        assert stored is not None
        return stored

    def files(self, job: Job) -> dict[str, JobFile]:
        """Its files by name."""
        return {file.name: file for file in self.stores().corpus_jobs.files(self.corpus, job.job_id)}

    def published(self) -> PublishedVersion:
        version = self.stores().corpora.published(self.corpus)
        assert version is not None
        return version

    def index(self) -> CourseIndex:
        """The published index."""
        return load(self.stores().corpora.index(self.corpus, self.published().version))

    def titles(self) -> list[str]:
        """The published titles. The list, the index and the vector index (if any) must agree."""
        documents = self.stores().corpora.documents(self.corpus, self.published().version)
        index = self.index()
        assert [document.title for document in documents] == [document.title for document in index.catalogue]
        assert self.published().counts.get("chunks", 0) == len(index)
        if self.published().head:
            beside = self.aws.vector_indexes[index_name(CORPUS, self.published().version)]
            assert sorted(map(int, beside.vectors)) == list(range(len(index)))
        return [document.title for document in documents]

    def objects(self) -> list[str]:
        """The keys of versions and parts."""
        return [key for key in self.aws.objects if not key.startswith("corpora/uploads/")]


def limited(calls: int) -> Callable[[], bool]:
    """A time budget of this many steps."""
    remaining = iter(range(calls))
    lock = threading.Lock()

    def has_time() -> bool:
        with lock:
            return next(remaining, None) is not None

    return has_time


def texts_of(index: CourseIndex) -> Iterator[str]:
    """Every chunk's text."""
    return (index.chunk(row).text for row in range(len(index)))
