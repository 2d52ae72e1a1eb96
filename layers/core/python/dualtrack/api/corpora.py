"""Corpora as administrators see and change them (CONTRACT 4): upload addresses, jobs, the published version."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.config import Config

from dualtrack.clock import iso
from dualtrack.corpora.jobs import CORPORA, GRAPH
from dualtrack.errors import Gone, not_found
from dualtrack.ids import new_upload_id
from dualtrack.storage.corpora import upload_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3.client import S3Client

    from dualtrack import answers
    from dualtrack.api.models import UploadFile
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.corpora import CorpusStore, PublishedVersion, StoredDocument
    from dualtrack.storage.corpus_jobs import Job, JobFile

UPLOAD_SECONDS: Final = 900
"""How long an upload URL is valid."""

UPLOAD_TYPE: Final = "application/octet-stream"
"""The content type of every upload: a file's real type follows from its name and bytes."""

UPLOAD_CLIENT: Final = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
"""The bucket is part of the host name; if the endpoint is an IP address, part of the path."""


@dataclass(frozen=True, slots=True)
class CorpusServices:
    """What the corpora routes need besides the stores. ``signer`` signs URLs locally, without a request."""

    executions: Executions
    signer: S3Client
    bucket: str


def must_be_corpus(name: str) -> str:
    """The name; 404 if there is no such corpus."""
    if name not in CORPORA:
        raise not_found("There is no such corpus.")
    return name


def upload_json(services: CorpusServices, corpus: str, file: UploadFile, now: float) -> answers.Upload:
    """A URL for uploading exactly this file: size, checksum, type and key are signed."""
    upload_id = new_upload_id(file.sha256)
    url, headers = signed_put(services, upload_key(corpus, upload_id), file.size, file.sha256, UPLOAD_SECONDS)
    return {
        "upload_id": upload_id,
        "name": file.name,
        "method": "PUT",
        "url": url,
        "headers": headers,
        "expires_at": iso(now + UPLOAD_SECONDS),
    }


def signed_put(
    services: CorpusServices, key: str, size: int, sha256: str, seconds: int
) -> tuple[str, dict[str, str]]:
    """The address that takes an object of this size (and with this checksum, if there is one), and the headers that the
    request has to have."""
    headers, params = {"Content-Type": UPLOAD_TYPE}, {"ContentType": UPLOAD_TYPE}
    if sha256:
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        headers["x-amz-checksum-sha256"] = params["ChecksumSHA256"] = checksum
    url = services.signer.generate_presigned_url(
        "put_object",
        Params={"Bucket": services.bucket, "Key": key, "ContentLength": size, **params},
        ExpiresIn=seconds,
    )
    return url, headers


def job_json(job: Job, files: Sequence[JobFile]) -> answers.CorpusJob:
    """A job with its files."""
    shown: answers.CorpusJob = {
        "job_id": job.job_id,
        "status": "running" if job.status == "queued" and _is_begun(files) else job.status,
        "created_at": iso(job.created),
        "ended_at": iso(job.ended) if job.ended else None,
        "reset": job.reset,
        "removes": list(job.remove),
        "embedded": job.embedded,
        "to_embed": job.to_embed,
        "files": [_file_json(job, file) for file in files],
        "url": f"/v1/admin/corpora/{job.corpus}/jobs/{job.job_id}",
    }
    if job.error:
        shown["error"] = job.error
    return shown


def _is_begun(files: Sequence[JobFile]) -> bool:
    return any(file.state != "waiting" for file in files)


def _file_json(job: Job, file: JobFile) -> answers.JobFile:
    shown: answers.JobFile = {"name": file.name, "state": file.state}
    if file.reason:
        shown["reason"] = file.reason
    if file.problems:
        shown["problems"] = list(file.problems)
    if file.title:
        shown["title"] = file.title
        shown["counts"] = file.counts
    if outcome := job.outcomes.get(str(file.number)):
        shown["outcome"] = outcome
    return shown


def corpus_json(corpora: CorpusStore, corpus: str) -> answers.Corpus:
    """The published version."""
    published, documents = _current(corpora, corpus)
    shown: answers.Corpus = {
        "corpus": corpus,
        "version": published.version if published else None,
        "model": published.model if published else "",
        "counts": dict(published.counts) if published else {},
        "updated_at": iso(published.at) if published else None,
        "documents": [_document_json(document) for document in documents],
    }
    if corpus == GRAPH:
        shown["schema"] = _schema_json(corpora, published)
    return shown


def _schema_json(corpora: CorpusStore, published: PublishedVersion | None) -> answers.GraphSchema | None:
    """Labels and types of the current graph; None before the first, or if the version was just replaced."""
    if published is None:
        return None
    try:
        schema: answers.GraphSchema = json.loads(corpora.schema(GRAPH, published.version))
    except Gone:
        return None
    return schema


def current_documents(corpora: CorpusStore, corpus: str) -> tuple[StoredDocument, ...]:
    """The documents of the current version."""
    return _current(corpora, corpus)[1]


def _current(corpora: CorpusStore, corpus: str) -> tuple[PublishedVersion | None, tuple[StoredDocument, ...]]:
    """The current version and its documents; if it is replaced meanwhile, the new version's."""
    for _ in range(3):
        published = corpora.published(corpus)
        if published is None:
            return None, ()
        try:
            return published, corpora.documents(corpus, published.version)
        except Gone:
            continue
    raise Gone(corpus)


def document_id(title: str) -> str:
    """The id of a document in URLs."""
    return hashlib.sha256(title.encode()).hexdigest()[:32]


def _document_json(document: StoredDocument) -> answers.CorpusDocument:
    return {
        "document_id": document_id(document.title),
        "title": document.title,
        "name": document.name,
        "counts": dict(document.counts),
        "updated_at": iso(document.at),
    }
