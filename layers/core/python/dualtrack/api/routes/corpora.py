"""/v1/admin/corpora: the data that tools search, changed only by administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Logger

from dualtrack.api import models
from dualtrack.api.corpora import (
    corpus_json,
    current_documents,
    document_id,
    job_json,
    must_be_corpus,
    upload_json,
)
from dualtrack.api.route import Accepted, Created, Ok, Route
from dualtrack.corpora.jobs import start_job
from dualtrack.errors import invalid_request, not_found
from dualtrack.ids import new_job_id
from dualtrack.message_files import clean_name
from dualtrack.storage.corpus_jobs import Job, JobFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.api.request import Request

CORPUS: Final = "/v1/admin/corpora/{corpus}"

_logger: Final = Logger(child=True)


@Route(
    "get",
    CORPUS,
    "Read the published version",
    access="admin",
    scopes=("admin:read",),
    description="Its documents; for the graph, also its schema.",
)
def get_corpus(request: Request, corpus: str) -> Ok[answers.Corpus]:
    return Ok(corpus_json(request.stores.corpora, must_be_corpus(corpus)))


@Route(
    "post",
    f"{CORPUS}/uploads",
    "Get addresses for uploading files",
    models.UploadsBody,
    access="admin",
    description="Each accepts the announced bytes alone, up to 20 MB, for 15 minutes. Then start a job.",
)
def post_uploads(request: Request, corpus: str) -> Created[answers.Uploads]:
    must_be_corpus(corpus)
    services, now = request.services.corpora, request.stores.clock()
    files = request.body(models.UploadsBody).files
    body: answers.Uploads = {"uploads": [upload_json(services, corpus, file, now) for file in files]}
    return Created(body)


@Route(
    "post",
    f"{CORPUS}/jobs",
    "Add uploaded files by a job; the published version stays in use until it is done",
    models.JobBody,
    access="admin",
    description="A file that cannot be read is refused with a reason and does not stop the others.",
)
def post_job(request: Request, corpus: str) -> Accepted[answers.CorpusJob]:
    must_be_corpus(corpus)
    body = request.body(models.JobBody)
    if not body.files and not body.reset:
        raise invalid_request("files: name at least one file, or reset the corpus.")
    files = [
        JobFile(number, clean_name(file.name) or f"file {number}", file.upload_id)
        for number, file in enumerate(body.files, start=1)
    ]
    return _started(request, corpus, files, reset=body.reset)


@Route(
    "get",
    f"{CORPUS}/jobs/{{job_id}}",
    "Read a job's progress",
    access="admin",
    scopes=("admin:read",),
    description="Its status, and the outcome for each file.",
)
def get_job(request: Request, corpus: str, job_id: str) -> Ok[answers.CorpusJob]:
    jobs = request.stores.corpus_jobs
    job = jobs.find(must_be_corpus(corpus), job_id)
    if job is None:
        raise not_found("There is no such job.")
    return Ok(job_json(job, jobs.files(corpus, job_id)))


@Route(
    "delete",
    f"{CORPUS}/documents/{{document_id}}",
    "Remove a document, by a job",
    access="admin",
    description="The published version stays in use until the job is done.",
)
def delete_document(request: Request, corpus: str, document_id: str) -> Accepted[answers.CorpusJob]:
    return _started(request, corpus, (), remove=_title(request, must_be_corpus(corpus), document_id))


def _title(request: Request, corpus: str, wanted: str) -> str:
    for document in current_documents(request.stores.corpora, corpus):
        if document_id(document.title) == wanted:
            return document.title
    raise not_found("There is no such document.")


def _started(
    request: Request, corpus: str, files: Sequence[JobFile], *, reset: bool = False, remove: str = ""
) -> Accepted[answers.CorpusJob]:
    """Start a job, and log who started it."""
    stores = request.stores
    job = Job(
        corpus,
        new_job_id(),
        request.user,
        int(stores.clock()),
        reset=reset,
        remove=(remove,) if remove else (),
    )
    start_job(stores, request.services.corpora.executions, job, files)
    _logger.info(
        "Corpus job accepted",
        corpus=corpus,
        job=job.job_id,
        by=job.by,
        files=[file.name for file in files],
        reset=reset,
        removes=list(job.remove),
    )
    shown = job_json(job, files)
    return Accepted(shown, {"Location": shown["url"]})
