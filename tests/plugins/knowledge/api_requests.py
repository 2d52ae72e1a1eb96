"""What requests about collections are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.ids import new_upload_id
from dualtrack.plugins.knowledge.bodies import (
    CollectionBody,
    CollectionChange,
    DocumentsBody,
    DocumentsJobBody,
)
from dualtrack.plugins.knowledge.plugin import PLUGIN

if TYPE_CHECKING:
    from tests.clients.api_client import Api

SHA256: Final = "0" * 64

BODIES: Final[dict[type, dict[str, Any]]] = {
    CollectionBody: {"name": "Yard", "description": "How we build"},
    CollectionChange: {"description": "How boats are built"},
    DocumentsBody: {"files": [{"name": "handbook.md", "size": 10, "sha256": SHA256}]},
    DocumentsJobBody: {"files": [{"upload_id": new_upload_id(SHA256), "name": "handbook.md"}]},
}


def _new(api: Api) -> str:
    answer = api.call("POST", "/v1/collections", {"name": "Harbour"})
    assert answer.status == 201, answer
    return str(answer.json["collection_id"])


def made(api: Api) -> dict[str, str]:
    """A collection of the user's."""
    known = [one["collection_id"] for one in api.call("GET", "/v1/collections").json["collections"]]
    collection = next(iter(known), "") or _new(api)
    job = api.call("POST", f"/v1/collections/{collection}/jobs", BODIES[DocumentsJobBody])
    assert job.status == 202, job
    return {
        "collection_id": collection,
        "job_id": job.json["job_id"],
        "doc_id": PLUGIN.ids["doc_id"].example,
    }
