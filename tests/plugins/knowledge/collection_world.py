"""Collections for tests: the API's, filled by the job's own steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dualtrack.corpora.ingest import Ingest, ingest
from dualtrack.plugins.knowledge.kind import DocumentsKind
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.storage.corpora import upload_key

from tests.clients.stack_client import announced

if TYPE_CHECKING:
    from dualtrack.knowledge.embedder import Embedder

    from tests.clients.api_client import Api

HANDBOOK = b"# Handbook\n\n## Leave\n\nEverybody has 30 days of holiday.\n\n## Sickness\n\nCall the office before nine.\n"
PRICES = b"# Prices\n\nA bicycle costs 400 euros. A helmet costs 60 euros.\n"


def made(api: Api, name: str = "Papers", **more: Any) -> str:
    """A new collection's path."""
    answer = api.call("POST", "/v1/collections", {"name": name, **more})
    assert answer.status == 201, answer.json
    return f"/v1/collections/{answer.json['collection_id']}"


def uploaded(api: Api, path: str, name: str, data: bytes, **more: Any) -> dict[str, Any]:
    """The uploaded file as a job names it."""
    body = {"files": [{**announced(name, data), **more}]}
    answer = api.call("POST", f"{path}/documents", body)
    assert answer.status == 201, answer.json
    (upload,) = answer.json["uploads"]
    key = upload_key(path.rpartition("/")[2], upload["upload_id"])
    assert urlsplit(upload["url"]).path.endswith(key)
    put(api, key, data)
    return {"upload_id": upload["upload_id"], "name": name, **more}


def put(api: Api, key: str, data: bytes) -> None:
    """As the upload address does it."""
    bucket = api.module.settings.bodies_bucket
    api.world.stores.corpora.s3.put_object(Bucket=bucket, Key=key, Body=data)


def started(api: Api, path: str, *files: tuple[str, bytes] | tuple[str, bytes, dict[str, Any]]) -> Any:
    """A job that was accepted."""
    listed = [uploaded(api, path, file[0], file[1], **(file[2] if len(file) > 2 else {})) for file in files]
    answer = api.call("POST", f"{path}/jobs", {"files": listed})
    assert answer.status == 202, answer.json
    return answer.json


def work_of(api: Api, path: str, embedder: Embedder | None = None, **kind: int) -> Ingest:
    """What the function has."""
    documents = replace(DocumentsKind(), **kind)
    return Ingest(api.world.stores, documents, embedder, BackgroundLoop(), named=path.rpartition("/")[2])


def finished(api: Api, path: str, job: Any, **more: Any) -> Any:
    """The job after its execution."""
    assert ingest(work_of(api, path, **more), job["job_id"], lambda: True) == "done"
    return api.get(job["url"])


def added(
    api: Api, path: str, *files: tuple[str, bytes] | tuple[str, bytes, dict[str, Any]], **more: Any
) -> Any:
    """The job that has added these files."""
    return finished(api, path, started(api, path, *files), **more)


def titles(api: Api, path: str) -> list[str]:
    """Of the documents."""
    return [document["title"] for document in api.get(f"{path}/documents")["documents"]]
