"""/v1/collections, and the steps of the jobs that read documents."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack.ids import new_job_id
from dualtrack.storage.corpus_jobs import Job

from tests.clients.stack_client import announced, wait_for
from tests.drivers.tour import stop

if TYPE_CHECKING:
    from tests.drivers.tour import Visit

COLLECTIONS = "/v1/collections"
COLLECTION = f"{COLLECTIONS}/{{collection_id}}"
DOCUMENT = f"{COLLECTION}/documents/{{doc_id}}"
HANDBOOK = b"# Handbook\n\n## Varnish\n\nFive coats of varnish protect the planks from water.\n"


def _collection(visit: Visit, name: str = "Yard") -> str:
    """The owner's collection."""
    made = visit.owner.http.post(COLLECTIONS, json={"name": name})
    assert made.status_code == 201, made.text
    return str(made.json()["collection_id"])


def _uploaded(visit: Visit, collection: str, data: bytes = HANDBOOK) -> dict[str, Any]:
    """An uploaded file, as a job names it."""
    where = f"{COLLECTIONS}/{collection}/documents"
    answer = visit.owner.http.post(where, json={"files": [announced("handbook.md", data)]})
    return _put(answer.json()["uploads"][0], data)


def _put(upload: dict[str, Any], data: bytes) -> dict[str, Any]:
    put = httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False)
    assert put.status_code == 200, put.text
    return {"upload_id": upload["upload_id"], "name": upload["name"]}


def _ended(visit: Visit, url: str) -> dict[str, Any]:
    wait_for(lambda: visit.owner.get(url)["status"] in ("done", "failed"))
    job = dict(visit.owner.get(url))
    assert job["status"] == "done", job
    return job


def _read(visit: Visit, collection: str, data: bytes = HANDBOOK) -> dict[str, Any]:
    """A file that has been read; the job."""
    where, files = f"{COLLECTIONS}/{collection}/jobs", [_uploaded(visit, collection, data)]
    return _ended(visit, visit.owner.http.post(where, json={"files": files}).json()["url"])


def _document(visit: Visit, collection: str) -> str:
    return str(_read(visit, collection)["files"][0]["document_id"])


@stop(f"POST {COLLECTIONS}", "name", "description", "shared")
def a_collection(visit: Visit) -> None:
    body = {"name": "Yard", "description": "How we build", "shared": False}
    made = visit.ask(body, status=201).json()
    assert {name: made[name] for name in body} == body
    assert visit.owner.get(f"{COLLECTIONS}/{made['collection_id']}")["name"] == "Yard"


@stop(f"GET {COLLECTIONS}", "cursor", "limit")
def the_collections(visit: Visit) -> None:
    own = {_collection(visit, name) for name in ("Yard", "Harbour")}
    found, cursor = set(), {}
    while True:
        page = visit.ask(query={"limit": 1, **cursor}).json()
        found |= {one["collection_id"] for one in page["collections"]}
        if not page.get("cursor"):
            break
        cursor = {"cursor": page["cursor"]}
    assert own <= found


@stop(f"GET {COLLECTION}")
def one_collection(visit: Visit) -> None:
    assert visit.ask(collection_id=_collection(visit)).json()["name"] == "Yard"


@stop(f"PATCH {COLLECTION}", "name", "description")
def a_collection_is_renamed(visit: Visit) -> None:
    collection = _collection(visit)
    visit.ask({"name": "Shed", "description": "Now here"}, collection_id=collection)
    shown = visit.owner.get(f"{COLLECTIONS}/{collection}")
    assert (shown["name"], shown["description"]) == ("Shed", "Now here")


@stop(f"DELETE {COLLECTION}")
def a_collection_is_deleted(visit: Visit) -> None:
    collection = _collection(visit)
    visit.ask(collection_id=collection, status=204)
    assert visit.owner.http.get(f"{COLLECTIONS}/{collection}").status_code == 404


@stop(
    f"POST {COLLECTION}/documents",
    "files",
    "files[].name",
    "files[].size",
    "files[].sha256",
    "files[].title",
    "files[].replaces",
)
def addresses_for_documents(visit: Visit) -> None:
    collection = _collection(visit)
    document = _document(visit, collection)
    file = {**announced("new.md", HANDBOOK), "title": "Handbook", "replaces": document}
    (upload,) = visit.ask({"files": [file]}, collection_id=collection, status=201).json()["uploads"]
    _put(upload, HANDBOOK)


@stop(
    f"POST {COLLECTION}/jobs",
    "files",
    "files[].upload_id",
    "files[].name",
    "files[].title",
    "files[].replaces",
)
def documents_are_read(visit: Visit) -> None:
    collection = _collection(visit)
    document = _document(visit, collection)
    file = _uploaded(visit, collection, HANDBOOK.replace(b"Five", b"Six"))
    body = {"files": [{**file, "title": "Handbook", "replaces": document}]}
    job = _ended(visit, visit.ask(body, collection_id=collection, status=202).json()["url"])
    (told,) = job["files"]
    assert (told["outcome"], told["document_id"]) == ("replaced", document), told


@stop(f"GET {COLLECTION}/jobs/{{job_id}}")
def a_job(visit: Visit) -> None:
    collection = _collection(visit)
    job = _read(visit, collection)
    shown = visit.ask(collection_id=collection, job_id=job["job_id"]).json()
    assert (shown["status"], shown["files"][0]["title"]) == ("done", "Handbook")


@stop(f"GET {COLLECTION}/documents", "cursor", "limit")
def the_documents(visit: Visit) -> None:
    collection = _collection(visit)
    _read(visit, collection)
    _read(visit, collection, b"# Tides\n\nThe moon pulls the sea.\n")
    first = visit.ask(query={"limit": 1}, collection_id=collection).json()
    rest = visit.ask(query={"limit": 1, "cursor": first["cursor"]}, collection_id=collection).json()
    assert [one["title"] for one in (*first["documents"], *rest["documents"])] == ["Handbook", "Tides"]


@stop(f"GET {DOCUMENT}", "from")
def a_document(visit: Visit) -> None:
    collection = _collection(visit)
    shown = visit.ask(query={"from": 0}, collection_id=collection, doc_id=_document(visit, collection)).json()
    assert "Five coats of varnish" in shown["text"]


@stop(f"DELETE {DOCUMENT}")
def a_document_is_deleted(visit: Visit) -> None:
    collection = _collection(visit)
    removal = visit.ask(collection_id=collection, doc_id=_document(visit, collection), status=202).json()
    _ended(visit, removal["url"])
    assert visit.owner.get(f"{COLLECTIONS}/{collection}/documents")["documents"] == []


@stop("POST /v1/chats", "collections")
def a_conversation_that_may_search_ones_own(visit: Visit) -> None:
    """By a key too, whose chats are its user's."""
    collection = _collection(visit)
    visit.script.says("It is done.")
    body = {"message": visit.script.question(), "collections": [collection]}
    started = visit.ask(body).json()
    assert visit.finish(started["chat_id"])["status"] == "done"
    strangers = visit.person().http.post("/v1/chats", json={"message": "Hello.", "collections": [collection]})
    assert strangers.status_code == 400, strangers.text


def _execution(visit: Visit, job_id: str) -> str:
    client, machine = visit.root.client("stepfunctions"), visit.root.stack.outputs["CorpusMachineArn"]
    listed = client.list_executions(stateMachineArn=machine)["executions"]
    return next(str(one["executionArn"]) for one in listed if job_id in one["executionArn"])


@stop("step corpus Ingest: read_documents")
def a_job_reads_documents(visit: Visit) -> None:
    job = _read(visit, _collection(visit))
    visit.went_through(_execution(visit, job["job_id"]))


@stop("step corpus Fail: read_documents")
def a_job_that_failed(visit: Visit) -> None:
    collection, jobs = _collection(visit), visit.root.stores().corpus_jobs
    job = Job(collection, new_job_id(), visit.owner.id, int(time.time()), kind="documents")
    jobs.create(job, ())
    visit.invoke({"corpus": collection, "job": job.job_id, "error": {"Error": "States.Timeout", "Cause": ""}})
    assert visit.owner.get(f"{COLLECTIONS}/{collection}/jobs/{job.job_id}")["status"] == "failed"
