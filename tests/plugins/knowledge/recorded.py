"""What collections add to the recorded calls of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx

from tests.clients.stack_client import announced, wait_for

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person

READERS: Final = ("ReadDocuments",)
HANDBOOK: Final = b"# Handbook\n\nFive coats of varnish protect the planks from water.\n"


def tell(ann: Person, script: Script) -> None:
    """A collection with a document, which is deleted again, and then the collection."""
    del script
    made = ann.http.post("/v1/collections", json={"name": "Yard"})
    where = f"/v1/collections/{made.json()['collection_id']}"
    announcement = {"files": [announced("handbook.md", HANDBOOK)]}
    (upload,) = ann.http.post(f"{where}/documents", json=announcement).json()["uploads"]
    httpx.put(upload["url"], content=HANDBOOK, headers=upload["headers"], trust_env=False).raise_for_status()
    files = [{"upload_id": upload["upload_id"], "name": upload["name"]}]
    job = _done(ann, ann.http.post(f"{where}/jobs", json={"files": files}))
    _done(ann, ann.http.delete(f"{where}/documents/{job['files'][0]['document_id']}"))
    assert ann.http.delete(where).status_code == 204


def _done(ann: Person, started: httpx.Response) -> dict[str, Any]:
    url = started.json()["url"]
    wait_for(lambda: ann.get(url)["status"] in ("done", "failed"))
    job = dict(ann.get(url))
    assert job["status"] == "done", job
    return job
