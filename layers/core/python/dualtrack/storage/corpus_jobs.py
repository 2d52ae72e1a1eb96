"""Jobs that change a corpus, in the history table beside the corpus.

pk CORPUS#<corpus>   sk JOB#<job>          the job: what it is to do, how far it is, how it ended
                     sk JOB#<job>#0001     one file of it: waiting, read, or refused with the reason
                     sk OPEN#<job>         while it has not ended: what the sweep looks at
                     sk CLEAN              when to look for objects that nobody needs any more

A job ends once, in the transaction that publishes its version if there is one. A file's item is written with what the
file says, which is the same whoever reads it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.storage.corpora import partition
from dualtrack.storage.dynamo import (
    Lost,
    delete,
    delete_all,
    get,
    put,
    put_absent,
    put_all,
    query,
    transact,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action, Item

Status = Literal["queued", "running", "done", "failed"]
FileState = Literal["waiting", "read", "refused"]
Outcome = Literal["added", "replaced", "skipped"]

_CLEAN: Final = "CLEAN"
_STATUS: Final = MappingProxyType({"#status": "status"})
CLEAN_AFTER: Final = 600
"""Seconds for which a version that was replaced, and what a job has left, stay: no reader takes that long."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job. ``reason`` says why it was refused, as the part of a sentence behind its name, and ``problems``
    which of its rows are bad, if it has rows; ``title``, ``digest``
    and ``counts`` are those of the document that was read."""

    place: int
    name: str
    upload_id: str
    state: FileState = "waiting"
    reason: str = ""
    title: str = ""
    digest: str = ""
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A change of a corpus: files that are added, or replace what has their title; titles that are removed; or, with
    ``reset``, all that is not among the files.

    ``tries``: executions that were started for it. ``embedded`` of ``to_embed`` texts have their vectors.
    ``outcomes``: of each file that was taken, by its place, once the job is done. Times are epoch seconds.
    """

    corpus: str
    job_id: str
    by: str
    created: int
    reset: bool = False
    remove: tuple[str, ...] = ()
    status: Status = "queued"
    tries: int = 0
    embedded: int = 0
    to_embed: int = 0
    outcomes: Mapping[str, Outcome] = field(default_factory=lambda: MappingProxyType({}))
    version: str = ""
    error: str = ""
    ended: int = 0

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

    def create(self, job: Job, files: Sequence[JobFile]) -> None:
        """Write a job down. Until the last write nobody knows of it."""
        put_all(self.client, self.table, (_file_item(job.corpus, job.job_id, one) for one in files))
        opened = {"pk": partition(job.corpus), "sk": f"OPEN#{job.job_id}"}
        actions = [put_absent("job", self.table, _job_item(job)), put("open", self.table, opened)]
        with contextlib.suppress(Lost):  # to its own first delivery: the id was drawn for it
            transact(self.client, actions)

    def find(self, corpus: str, job_id: str) -> Job | None:
        """The job, if there is one."""
        item = get(self.client, self.table, _key(corpus, f"JOB#{job_id}"))
        return _job(item) if item else None

    def files(self, corpus: str, job_id: str) -> tuple[JobFile, ...]:
        """The files of a job in their order."""
        items = query(self.client, self.table, partition(corpus), prefix=f"JOB#{job_id}#")
        return tuple(_file(item) for item in items)

    def record_file(self, job: Job, one: JobFile) -> None:
        """Say what became of a file."""
        transact(self.client, [put("file", self.table, _file_item(job.corpus, job.job_id, one))])

    def progress(self, job: Job, embedded: int, to_embed: int) -> None:
        """Say how far a job is; of one that has ended nothing changes."""
        values = {":status": "running", ":embedded": embedded, ":to_embed": to_embed}
        change = "SET #status = :status, embedded = :embedded, to_embed = :to_embed"
        with contextlib.suppress(Lost):
            transact(self.client, [self._change(job, change, values, names=_STATUS)])

    def count_try(self, job: Job, tries: int) -> None:
        """Say that an execution is about to be started. Raises `Lost` if another has done so, or the job has ended."""
        values = {":tries": tries, ":before": job.tries}
        transact(self.client, [self._change(job, "SET tries = :tries", values, " AND tries = :before")])

    def end_actions(self, job: Job) -> list[Action]:
        """What ends a job, as it says itself: in one transaction, with what it publishes. Lost as ``job`` if it has
        ended before."""
        values = {
            ":status": job.status,
            ":outcomes": dict(job.outcomes),
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
        """End a job that publishes nothing; one that has ended stays as it is."""
        with contextlib.suppress(Lost):
            transact(self.client, self.end_actions(job))

    def fail(self, job: Job, error: str) -> None:
        """End a job without a new version; ``error`` is told to whoever asks."""
        self.end(replace(job, status="failed", error=error, ended=int(self.clock())))

    def open_jobs(self, corpus: str) -> list[Job]:
        """Those that have not ended, oldest first."""
        items = list(query(self.client, self.table, partition(corpus), prefix="OPEN#"))
        found = (self.find(corpus, item["sk"].removeprefix("OPEN#")) for item in items)
        return [job for job in found if job is not None]

    def clean_due(self, corpus: str) -> int | None:
        """When to clean up, if something was left; epoch seconds."""
        item = get(self.client, self.table, _key(corpus, _CLEAN))
        return int(item["due"]) if item else None

    def cleaned(self, corpus: str, due: int) -> None:
        """That has been done; what was left since then stays noted."""
        done = delete("clean", self.table, _key(corpus, _CLEAN), "due = :due", {":due": due})
        with contextlib.suppress(Lost):
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


def _key(corpus: str, sort: str) -> dict[str, str]:
    return {"pk": partition(corpus), "sk": sort}


def _job_item(job: Job) -> Item:
    return {
        **_key(job.corpus, f"JOB#{job.job_id}"),
        "by": job.by,
        "created": job.created,
        "reset": job.reset,
        "remove": list(job.remove),
        "status": job.status,
        "tries": job.tries,
        "embedded": job.embedded,
        "to_embed": job.to_embed,
        "outcomes": dict(job.outcomes),
        "version": job.version,
        "error": job.error,
        "ended": job.ended,
    }


def _job(item: Item) -> Job:
    return Job(
        corpus=item["pk"].removeprefix("CORPUS#"),
        job_id=item["sk"].removeprefix("JOB#"),
        by=item["by"],
        created=item["created"],
        reset=item["reset"],
        remove=tuple(item["remove"]),
        status=item["status"],
        tries=item["tries"],
        embedded=item["embedded"],
        to_embed=item["to_embed"],
        outcomes=MappingProxyType(item["outcomes"]),
        version=item["version"],
        error=item["error"],
        ended=item["ended"],
    )


def _file_item(corpus: str, job_id: str, one: JobFile) -> Item:
    return {
        **_key(corpus, f"JOB#{job_id}#{one.place:04d}"),
        "name": one.name,
        "upload_id": one.upload_id,
        "state": one.state,
        "reason": one.reason,
        "title": one.title,
        "digest": one.digest,
        "counts": dict(one.counts),
        **({"problems": list(one.problems)} if one.problems else {}),
    }


def _file(item: Item) -> JobFile:
    return JobFile(
        place=int(item["sk"].rsplit("#", 1)[1]),
        name=item["name"],
        upload_id=item["upload_id"],
        state=item["state"],
        reason=item["reason"],
        title=item["title"],
        digest=item["digest"],
        counts=MappingProxyType(item["counts"]),
        problems=tuple(item.get("problems", ())),
    )
