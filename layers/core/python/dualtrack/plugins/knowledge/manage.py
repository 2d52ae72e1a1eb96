"""Making, finding, changing and filling collections (CONTRACT 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.api.corpora import current_documents, upload_json
from dualtrack.clock import iso
from dualtrack.corpora.jobs import start_job
from dualtrack.corpora.owned import drop, owned_in
from dualtrack.errors import ApiError, invalid_request, not_found
from dualtrack.ids import new_job_id, sortable
from dualtrack.message_files import clean_name
from dualtrack.plugins.knowledge.limits import COLLECTIONS, DOCUMENTS, SHARED, USER_BYTES
from dualtrack.plugins.knowledge.names import KIND, document_id, shown_title
from dualtrack.storage.corpus_jobs import Job, JobFile
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.owned_corpora import OwnedCorpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.api.request import Request
    from dualtrack.plugins.knowledge import types
    from dualtrack.plugins.knowledge.bodies import (
        CollectionBody,
        CollectionChange,
        DocumentFile,
        DocumentsJobBody,
    )
    from dualtrack.storage.corpora import StoredDocument
    from dualtrack.storage.stores import ApiStores

STAGE: Final = ""
"""The owner of the stage's collections."""


def make(request: Request, body: CollectionBody) -> types.Collection:
    """A new collection. Raises 400, 403, 409; 401 if the user is erased meanwhile."""
    stores = request.stores
    if body.shared:
        _must_be_admin(request)
    owner, most = (STAGE, SHARED) if body.shared else (request.user, COLLECTIONS)
    name = _name(body.name)
    new = OwnedCorpus(
        f"col_{sortable()}", owner, KIND, name, int(stores.clock()), shown_title(body.description)
    )
    also = [] if body.shared else [stores.deletions.not_refused(owner)]
    try:
        owned_in(stores).create(new, most, also)
    except ConditionFailed as lost:
        raise ApiError("unauthorized", "This user was erased.") from lost
    return collection_json(stores, new)


def visible(request: Request) -> list[OwnedCorpus]:
    """The stage's, and the user's own."""
    owned = owned_in(request.stores)
    return [*owned.of(STAGE, KIND), *owned.of(request.user, KIND)]


def find(request: Request, collection_id: str, *, to_change: bool = False) -> OwnedCorpus:
    """The stage's or the user's own collection. Raises 404; 403 for one who may not change the stage's."""
    owned = owned_in(request.stores)
    found = owned.find(request.user, collection_id) or owned.find(STAGE, collection_id)
    if found is None or found.kind != KIND:
        raise not_found("There is no such collection.")
    if to_change and found.owner == STAGE:
        _must_be_admin(request)
    return found


def change(request: Request, collection_id: str, body: CollectionChange) -> types.Collection:
    """Another name or description. Raises 404, 409."""
    before = find(request, collection_id, to_change=True)
    name = before.name if body.name is None else _name(body.name)
    about = before.description if body.description is None else shown_title(body.description)
    after = replace(before, name=name, description=about)
    owned_in(request.stores).change(before, after)
    return collection_json(request.stores, after)


def remove(request: Request, collection_id: str) -> None:
    """At once it is found by nobody; its jobs end, and the sweep deletes its objects."""
    if not drop(request.stores, find(request, collection_id, to_change=True)):
        raise not_found("There is no such collection.")


def announce(request: Request, collection: OwnedCorpus, files: Sequence[DocumentFile]) -> answers.Uploads:
    """An address for each file. Raises 400 for more than the collection or the user may have."""
    stores, services = request.stores, request.services.corpora
    documents = current_documents(stores.corpora, collection.corpus)
    if len(documents) + len(files) > DOCUMENTS + sum(file.replaces is not None for file in files):
        raise invalid_request(
            f"files: a collection has at most {DOCUMENTS:,} documents. Make another one for these."
        )
    if collection.owner != STAGE:
        taken = sum(_bytes(stores, own) for own in owned_in(stores).of(collection.owner, KIND))
        if taken + sum(file.size for file in files) > USER_BYTES:
            left = max(0, USER_BYTES - taken) / 1e6
            raise invalid_request(
                f"files: your collections may have {USER_BYTES / 1e9:.0f} GB, and {left:,.0f} MB are left: delete"
                " documents first."
            )
    now = stores.clock()
    return {"uploads": [upload_json(services, collection.corpus, file, now) for file in files]}


def start(request: Request, collection: OwnedCorpus, body: DocumentsJobBody) -> types.CollectionJob:
    """Read uploaded files. Raises 400 for a document that one is to replace and that is not there."""
    by_id = {
        document_id(collection.corpus, found.title): found.title
        for found in current_documents(request.stores.corpora, collection.corpus)
    }
    files = []
    for number, file in enumerate(body.files, start=1):
        if file.replaces and file.replaces not in by_id:
            raise invalid_request(
                f"files.{number - 1}.replaces: there is no such document in the collection."
            )
        replaces = by_id[file.replaces] if file.replaces else ""
        asked = shown_title(file.title or "") or replaces
        name = clean_name(file.name) or f"file {number}"
        files.append(JobFile(number, name, file.upload_id, asked=asked, replaces=replaces))
    return _started(request, collection, files)


def delete_document(request: Request, collection: OwnedCorpus, wanted: str) -> types.CollectionJob:
    """Remove a document, by a job. Raises 404."""
    return _started(request, collection, (), document_of(request.stores, collection, wanted).title)


def document_of(stores: ApiStores, collection: OwnedCorpus, wanted: str) -> StoredDocument:
    """The document of this id. Raises 404."""
    for document in current_documents(stores.corpora, collection.corpus):
        if document_id(collection.corpus, document.title) == wanted:
            return document
    raise not_found("There is no such document.")


def _started(
    request: Request, collection: OwnedCorpus, files: Sequence[JobFile], removed: str = ""
) -> types.CollectionJob:
    stores = request.stores
    job = Job(
        collection.corpus,
        new_job_id(),
        request.user,
        int(stores.clock()),
        remove=(removed,) if removed else (),
        kind=KIND,
    )
    try:
        start_job(
            stores,
            request.services.corpora.executions,
            job,
            files,
            [owned_in(stores).is_there(collection)],
        )
    except ConditionFailed as lost:
        raise not_found("There is no such collection.") from lost
    return job_json(job, files)


def collection_json(stores: ApiStores, owned: OwnedCorpus) -> types.Collection:
    """As its users see it."""
    published = stores.corpora.published(owned.corpus)
    return {
        "collection_id": owned.corpus,
        "name": owned.name,
        "description": owned.description,
        "shared": owned.owner == STAGE,
        "created_at": iso(owned.created_at),
        "updated_at": iso(published.at) if published else None,
        "counts": published.counts if published else {"documents": 0},
    }


def document_json(collection: OwnedCorpus, document: StoredDocument) -> types.CollectedDocument:
    """As its users see it."""
    return {
        "document_id": document_id(collection.corpus, document.title),
        "title": document.title,
        "name": document.name,
        "kind": document.facts.get("kind", ""),
        "counts": document.counts,
        "left_out": document.facts.get("left_out", ""),
        "updated_at": iso(document.at),
    }


def job_json(job: Job, files: Sequence[JobFile]) -> types.CollectionJob:
    """A job with its files."""
    is_begun = job.status == "queued" and any(file.state != "waiting" for file in files)
    shown: types.CollectionJob = {
        "job_id": job.job_id,
        "status": "running" if is_begun else job.status,
        "created_at": iso(job.created),
        "ended_at": iso(job.ended) if job.ended else None,
        "removes": job.remove,
        "embedded": job.embedded,
        "to_embed": job.to_embed,
        "files": [_file_json(job, file) for file in files],
        "url": f"/v1/collections/{job.corpus}/jobs/{job.job_id}",
    }
    if job.error:
        shown["error"] = job.error
    return shown


def _file_json(job: Job, file: JobFile) -> types.CollectionFile:
    shown: types.CollectionFile = {"name": file.name, "state": file.state}
    if file.reason:
        shown["reason"] = file.reason
    if file.title:
        shown["title"] = file.title
        shown["document_id"] = document_id(job.corpus, file.title)
        shown["counts"] = file.counts
    if left_out := file.facts.get("left_out"):
        shown["left_out"] = left_out
    if outcome := job.outcomes.get(str(file.number)):
        shown["outcome"] = outcome
    return shown


def _bytes(stores: ApiStores, owned: OwnedCorpus) -> int:
    published = stores.corpora.published(owned.corpus)
    return published.counts.get("bytes", 0) if published else 0


def _name(text: str) -> str:
    name = shown_title(text)
    if not name:
        raise invalid_request("name: has no visible character.")
    return name


def _must_be_admin(request: Request) -> None:
    if not request.is_admin:
        raise ApiError("forbidden", "The stage's collections are changed by administrators.")
