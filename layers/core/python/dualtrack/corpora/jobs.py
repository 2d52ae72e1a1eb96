"""How a job begins, and what goes on with it: executions of the state machine ``corpus``, and the sweep."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack.corpora.clean import clean
from dualtrack.ids import execution_arn
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_stepfunctions.client import SFNClient

    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.storage.stores import Stores

GRAPH: Final = "graph"
CORPORA: Final = ("courses", GRAPH)
"""The corpora that there are."""

MAX_TRIES: Final = 3
"""Executions of a job: each retries its steps by itself, so what fails so often fails for good."""

STARTING_SECONDS: Final = 20
"""A job this young may still be about to be started by the request that made it."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CorpusExecutions:
    """Executions of the state machine. One's name is the job's id and the try, so starting twice is once."""

    client: SFNClient
    machine_arn: str

    def start(self, job: Job) -> None:
        """Start the job's execution; one that exists is as good as started."""
        given = json.dumps({"corpus": job.corpus, "job": job.job_id})
        try:
            self.client.start_execution(stateMachineArn=self.machine_arn, name=job.execution, input=given)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise

    def status(self, job: Job) -> str | None:
        """RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED; None if there is no such execution."""
        arn = execution_arn(self.machine_arn, job.execution)
        try:
            return str(self.client.describe_execution(executionArn=arn)["status"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
                raise
            return None


def start_job(stores: Stores, executions: CorpusExecutions, job: Job, files: Sequence[JobFile]) -> None:
    """Write the job down and start it. From the first on it will be done: if the start fails, the sweep starts it."""
    stores.corpus_jobs.create(job, files)
    try:
        executions.start(job)
    except Exception:  # noqa: BLE001 - whatever it is, the sweep tries again
        _log.exception("A corpus job is left to the sweep")


def sweep_corpora(stores: Stores, executions: CorpusExecutions) -> int:
    """Go on with jobs that nobody works on, and clean up where that is due; how many jobs had to be looked after."""
    looked_after = 0
    for corpus in CORPORA:
        for job in stores.corpus_jobs.open_jobs(corpus):
            looked_after += _looked_after(stores, executions, job)
        clean(stores, corpus)
    return looked_after


def _looked_after(stores: Stores, executions: CorpusExecutions, job: Job) -> bool:
    """Start a job that was never started; one whose execution has ended without ending it gets another one."""
    status = executions.status(job)
    if status == "RUNNING" or (status is None and job.created > stores.clock() - STARTING_SECONDS):
        return False
    if status is None:
        executions.start(job)
    elif job.tries + 1 >= MAX_TRIES:
        stores.corpus_jobs.fail(job, "It was begun three times and did not come to its end.")
    else:
        following = replace(job, tries=job.tries + 1)
        try:
            stores.corpus_jobs.count_try(job, following.tries)
        except Lost:
            return False
        executions.start(following)
    return True
