"""The heaviest that the function of collections may have to do in the bench of functions' memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from tests.clients.stack_client import announced, wait_for

if TYPE_CHECKING:
    from tests.clients.stack_client import Person


def load(person: Person) -> None:
    """A document of a megabyte, as a course has it, is read and searched."""
    parts = (
        f"## Part {n}\n\n" + " ".join(f"Sentence {n}.{i} says what it says." for i in range(700))
        for n in range(40)
    )
    data = "\n\n".join(["# Heavy", *parts]).encode()
    made = person.http.post("/v1/collections", json={"name": "Heavy"})
    where = f"/v1/collections/{made.json()['collection_id']}"
    (upload,) = person.http.post(f"{where}/documents", json={"files": [announced("heavy.md", data)]}).json()[
        "uploads"
    ]
    httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False).raise_for_status()
    files = [{"upload_id": upload["upload_id"], "name": upload["name"]}]
    job = person.http.post(f"{where}/jobs", json={"files": files}).json()
    wait_for(lambda: person.get(job["url"])["status"] in ("done", "failed"), 400)
    assert person.get(job["url"])["status"] == "done", person.get(job["url"])
