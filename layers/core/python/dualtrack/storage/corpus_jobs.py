"""Jobs that change a corpus, in the history table beside the corpus.

pk CORPUS#<corpus>   sk JOB#<job>          the job: its task, progress and result
                     sk JOB#<job>#0001     one of its files: waiting, read, or refused with the reason
                     sk OPEN#<job>         until it has ended: the sweep looks for these items
                     sk CLEAN              when to look for unused objects
pk CORPUS#ACTIVE     sk <corpus>           a corpus of a kind that has many: the sweep looks at those that are listed

A job ends only once; if it publishes a version, in the same transaction. A file's item depends only on the file's
content, so two runs write the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from dualtrack.codec import APART, decode, encode, stored
from dualtrack.storage.corpora import partition
from dualtrack.storage.dynamo import (
    ConditionFailed,
    delete,
    delete_all,
    delete_partition,
    get,
    put,
    put_absent,
    put_all,
    query,
    transact,
    update,
)
from dualtrack.vocabulary import FileState, JobStatus, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action, Item

_CLEAN: Final = "CLEAN"
_ACTIVE: Final = partition("ACTIVE")
_DROPPED: Final = "dropped"
_STATUS: Final = MappingProxyType({"#status": "status"})
CLEAN_AFTER: Final = 600
"""Seconds for which a replaced version and the objects of an ended job are kept: no reader takes that long."""


@stored
@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job. ``reason`` says why it was refused, as the rest of a sentence that begins with its name;
    ``problems`` lists its bad rows, if it has rows; ``title``, ``digest``, ``counts`` and ``facts`` are those of the
    document read from it. ``asked``: the title that its sender gives it; ``replaces``: the title of the document whose
    place it takes."""

    number: Annotated[int, APART]
    name: str
    upload_id: str
    state: FileState = "waiting"
    reason: str = ""
    title: str = ""
    digest: str = ""
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[str, ...] = ()
    asked: str = ""
    replaces: str = ""
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class Job:
    """A change of a corpus: files to add, or to replace the document of the same title; titles to remove. With
    ``reset``, every document that is not among the files is removed.

    ``kind``: of a corpus that is not named after it. ``tries``: the number of executions started for it. ``embedded``
    of ``to_embed`` texts have their vectors. ``outcomes``: of each accepted file, by its number, once the job is done.
    Times are epoch seconds.
    """

    corpus: Annotated[str, APART]
    job_id: Annotated[str, APART]
    by: str
    created: int
    reset: bool = False
    remove: tuple[str, ...] = ()
    status: JobStatus = "queued"
    tries: int = 0
    embedded: int = 0
    to_embed: int = 0
    outcomes: Mapping[str, Outcome] = field(default_factory=lambda: MappingProxyType({}))
    version: str = ""
    error: str = ""
    ended: int = 0
    kind: str = ""

    @property
    def kind_of_corpus(self) -> str:
        """By which its function is found."""
        return self.kind or self.corpus

    @property
    def execution(self) -> str:
        """The name of the execution that works on it now."""
        return f"{self.job_id}-{self.tries}"


@dataclass(frozen=True, slots=True)
class CorpusJobs:
    """The jobs of all corpora."""

    client: DynamoDBClient
    table: str
    clock: Clock

    def create(self, job: Job, files: Sequence[JobFile], also: Sequence[Action] = ()) -> None:
        """Store a job, with ``also``. It becomes visible with the last write. Raises `ConditionFailed` for ``also``."""
        put_all(self.client, self.table, (_file_item(job.corpus, job.job_id, file) for file in files))
        opened = {"pk": partition(job.corpus), "sk": f"OPEN#{job.job_id}"}
        actions = [put_absent("job", self.table, _job_item(job)), put("open", self.table, opened), *also]
        if job.kind:
            actions.append(put("active", self.table, {**_active(job.corpus), "stamp": job.job_id}))
        try:
            transact(self.client, actions)
        except ConditionFailed as lost:
            if set(lost.items) - {"job"}:
                raise
            # lost to its own first delivery: the id is new

    def find(self, corpus: str, job_id: str) -> Job | None:
        """The job, if there is one."""
        item = get(self.client, self.table, _key(corpus, f"JOB#{job_id}"))
        return decode(Job, item, corpus=corpus, job_id=job_id) if item else None

    def files(self, corpus: str, job_id: str) -> tuple[JobFile, ...]:
        """The files of a job in their order."""
        items = query(self.client, self.table, partition(corpus), prefix=f"JOB#{job_id}#")
        return tuple(_file(item) for item in items)

    def record_file(self, job: Job, file: JobFile) -> None:
        """Store the result for a file."""
        transact(self.client, [put("file", self.table, _file_item(job.corpus, job.job_id, file))])

    def progress(self, job: Job, embedded: int, to_embed: int) -> None:
        """Store a job's progress; does nothing if it has ended."""
        values = {":status": "running", ":embedded": embedded, ":to_embed": to_embed}
        change = "SET #status = :status, embedded = :embedded, to_embed = :to_embed"
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [self._change(job, change, values, names=_STATUS)])

    def count_try(self, job: Job, tries: int) -> None:
        """Note that an execution is about to be started. Raises `ConditionFailed` if another run did so, or the job has
        ended."""
        values = {":tries": tries, ":before": job.tries}
        transact(self.client, [self._change(job, "SET tries = :tries", values, " AND tries = :before")])

    def end_actions(self, job: Job) -> list[Action]:
        """The actions that end a job with its own status, for one transaction with what it publishes. Lost with the
        name ``job`` if it has ended before."""
        values = {
            ":status": job.status,
            ":outcomes": encode(job.outcomes),
            ":version": job.version,
            ":error": job.error,
            ":ended": job.ended,
        }
        change = (
            "SET #status = :status, outcomes = :outcomes, version = :version, #error = :error, ended = :ended"
        )
        return [
            self._change(job, change, values, names={**_STATUS, "#error": "error"}),
            delete("open", self.table, _key(job.corpus, f"OPEN#{job.job_id}")),
            put("clean", self.table, {**_key(job.corpus, _CLEAN), "due": job.ended + CLEAN_AFTER}),
        ]

    def end(self, job: Job) -> None:
        """End a job that publishes nothing; does nothing if it has ended."""
        with contextlib.suppress(ConditionFailed):
            transact(self.client, self.end_actions(job))

    def fail(self, job: Job, error: str) -> None:
        """End a job without a new version; the API shows ``error``."""
        self.end(replace(job, status="failed", error=error, ended=int(self.clock())))

    def open_jobs(self, corpus: str) -> list[Job]:
        """The jobs that have not ended, oldest first."""
        items = list(query(self.client, self.table, partition(corpus), prefix="OPEN#"))
        jobs = (self.find(corpus, item["sk"].removeprefix("OPEN#")) for item in items)
        return [job for job in jobs if job is not None]

    def active(self) -> list[tuple[str, str]]:
        """The corpora of kinds that have many which may need the sweep, each with its stamp for `settle`."""
        items = query(self.client, self.table, _ACTIVE)
        return [(item["sk"], item["stamp"]) for item in items]

    def dropped(self, corpus: str, due: int) -> Action:
        """Note that a corpus is gone and that all it leaves is deleted from ``due`` on."""
        return put("active", self.table, {**_active(corpus), "stamp": _DROPPED, "due": due})

    def drop_due(self, corpus: str) -> int | None:
        """When to delete what a dropped corpus leaves; None for one that was not dropped."""
        item = get(self.client, self.table, _active(corpus))
        return int(item["due"]) if item and item["stamp"] == _DROPPED else None

    def forget_corpus(self, corpus: str) -> None:
        """Delete all items of a dropped corpus, and of its versions."""
        delete_partition(self.client, self.table, partition(corpus))

    def settle(self, corpus: str, stamp: str) -> None:
        """The corpus needs the sweep no more, unless a job was created meanwhile."""
        settled = delete("active", self.table, _active(corpus), "stamp = :stamp", {":stamp": stamp})
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [settled])

    def clean_due(self, corpus: str) -> int | None:
        """When to clean up (epoch seconds); None if nothing is due."""
        item = get(self.client, self.table, _key(corpus, _CLEAN))
        return int(item["due"]) if item else None

    def cleaned(self, corpus: str, due: int) -> None:
        """Note that the cleanup due at ``due`` is done; a later one stays noted."""
        done = delete("clean", self.table, _key(corpus, _CLEAN), "due = :due", {":due": due})
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [done])

    def forget(self, corpus: str, before: str) -> None:
        """Delete the items of jobs whose ids are less than ``before``."""
        items = query(self.client, self.table, partition(corpus), prefix="JOB#", before=f"JOB#{before}")
        delete_all(self.client, self.table, [_key(corpus, item["sk"]) for item in items])

    def _change(
        self,
        job: Job,
        change: str,
        values: Mapping[str, Any],
        condition: str = "",
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> Action:
        unended = f"attribute_exists(pk) AND ended = :unended{condition}"
        return update(
            "job",
            self.table,
            _key(job.corpus, f"JOB#{job.job_id}"),
            change,
            unended,
            {**values, ":unended": 0},
            names,
        )


def _active(corpus: str) -> dict[str, str]:
    return {"pk": _ACTIVE, "sk": corpus}


def _key(corpus: str, sort: str) -> dict[str, str]:
    return {"pk": partition(corpus), "sk": sort}


def _job_item(job: Job) -> Item:
    return {**_key(job.corpus, f"JOB#{job.job_id}"), **encode(job)}


def _file_item(corpus: str, job_id: str, file: JobFile) -> Item:
    return {**_key(corpus, f"JOB#{job_id}#{file.number:04d}"), **encode(file)}


def _file(item: Item) -> JobFile:
    return decode(JobFile, item, number=int(item["sk"].rsplit("#", 1)[1]))
