"""The samples of collections in the API's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from tests.clients.stack_client import announced, wait_for
from tests.drivers.api_samples import Collector

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.stack_client import Person

HANDBOOK = b"# Handbook\n\n## Varnish\n\nFive coats of varnish protect the planks from water.\n"


def samples_of(clean: Callable[[str], str], ann: Person) -> dict[str, Any]:
    """Of a collection: made, a document uploaded, read and deleted."""
    samples = Collector(clean)
    made = {"name": "Yard", "description": "How we build"}
    where = f"/v1/collections/{samples.call(ann, 'POST', '/v1/collections', made).json()['collection_id']}"
    file = announced("handbook.md", HANDBOOK)
    (upload,) = samples.call(ann, "POST", f"{where}/documents", {"files": [file]}).json()["uploads"]
    httpx.put(upload["url"], content=HANDBOOK, headers=upload["headers"], trust_env=False).raise_for_status()
    files = {"files": [{"upload_id": upload["upload_id"], "name": upload["name"]}]}
    job = samples.call(ann, "POST", f"{where}/jobs", files).json()["url"]
    wait_for(lambda: ann.get(job)["status"] in ("done", "failed"))
    assert samples.call(ann, "GET", job).json()["status"] == "done", ann.get(job)
    listed = samples.call(ann, "GET", "/v1/collections").json()["collections"]
    # before it stand the stage's, which other tests of the stack have made
    samples.bodies["Collections"] = {"collections": [one for one in listed if not one["shared"]]}
    samples.call(ann, "PATCH", where, {"description": "How boats are built"})
    (document,) = samples.call(ann, "GET", f"{where}/documents").json()["documents"]
    samples.call(ann, "GET", f"{where}/documents/{document['document_id']}")
    removal = samples.call(ann, "DELETE", f"{where}/documents/{document['document_id']}").json()
    wait_for(lambda: ann.get(removal["url"])["status"] in ("done", "failed"))
    samples.call(ann, "GET", where)
    samples.call(ann, "DELETE", where)
    return {"bodies": samples.collected()["bodies"]}
