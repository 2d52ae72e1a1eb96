"""Starting and continuing jobs: executions of the state machine ``corpus``, and the sweep."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.corpora.clean import clean
from dualtrack.corpora.owned import end_jobs
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import CorpusStores, IndexStores

GRAPH: Final = "graph"
CORPORA: Final = ("courses", GRAPH)
"""The corpora that are the only ones of their kind, which is named alike."""

MAX_TRIES: Final = 3
"""Maximum executions of a job; each retries its steps."""

STARTING_SECONDS: Final = 20
"""The request that created a job this young may still be about to start it."""

_OUR_SIDE: Final = "Something went wrong on our side. The published version is unchanged. Try again."
_NOT_EMBEDDED: Final = (
    "The embeddings could not be created. The published version is unchanged. Try again later."
)

_log: Final = logging.getLogger(__name__)


def start_job(
    stores: CorpusStores,
    executions: Executions,
    job: Job,
    files: Sequence[JobFile],
    also: Sequence[Action] = (),
) -> None:
    """Store the job, with ``also``, and start it. If the start fails, the sweep starts it."""
    stores.corpus_jobs.create(job, files, also)
    try:
        _start(executions, job)
    except Exception:  # noqa: BLE001 - the sweep retries
        _log.exception("The sweep will start a corpus job")


def fail_job(stores: CorpusStores, corpus: str, job_id: str, error: Mapping[str, Any]) -> None:
    """End a job whose execution has failed with ``error``, ``{"Error", "Cause"}``; the fault is on our side."""
    job = stores.corpus_jobs.find(corpus, job_id)
    if job:
        message = _NOT_EMBEDDED if "NotEmbedded" in str(error) else _OUR_SIDE
        stores.corpus_jobs.fail(job, message)


def sweep_corpora(stores: IndexStores, executions: Executions) -> int:
    """Continue jobs without an execution, and clean up what is due; returns how many jobs needed the sweep."""
    continued = 0
    for corpus in CORPORA:
        continued += _looked_after(stores, executions, corpus)
    for corpus, stamp in stores.corpus_jobs.active():
        if (due := stores.corpus_jobs.drop_due(corpus)) is not None:
            _delete_dropped(stores, corpus, stamp, due)
            continue
        continued += _looked_after(stores, executions, corpus)
        if not stores.corpus_jobs.open_jobs(corpus) and stores.corpus_jobs.clean_due(corpus) is None:
            stores.corpus_jobs.settle(corpus, stamp)
    return continued


def _delete_dropped(stores: IndexStores, corpus: str, stamp: str, due: int) -> None:
    """Its objects and items, once no step of a job can still write."""
    end_jobs(stores, corpus)
    if stores.clock() < due:
        return
    stores.corpora.delete(stores.corpora.objects(corpus))
    stores.corpora.delete(stores.corpora.uploaded(corpus))
    stores.corpus_jobs.forget_corpus(corpus)
    stores.corpus_jobs.settle(corpus, stamp)


def _looked_after(stores: IndexStores, executions: Executions, corpus: str) -> int:
    continued = sum(_continued(stores, executions, job) for job in stores.corpus_jobs.open_jobs(corpus))
    clean(stores, corpus)
    return continued


def _continued(stores: CorpusStores, executions: Executions, job: Job) -> bool:
    """Start a job that was never started, or start a new execution if the last one did not end the job."""
    status = executions.status(job.execution)
    if status == "RUNNING" or (status is None and job.created > stores.clock() - STARTING_SECONDS):
        return False
    if status is None:
        _start(executions, job)
    elif job.tries + 1 >= MAX_TRIES:
        stores.corpus_jobs.fail(job, "The job failed three times.")
    else:
        following = replace(job, tries=job.tries + 1)
        try:
            stores.corpus_jobs.count_try(job, following.tries)
        except ConditionFailed:
            return False
        _start(executions, following)
    return True


def _start(executions: Executions, job: Job) -> None:
    """Each try has its own execution name, so starting a try twice has no effect."""
    executions.start(job.execution, {"corpus": job.corpus, "kind": job.kind_of_corpus, "job": job.job_id})
