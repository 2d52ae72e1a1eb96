"""A corpus on the deployed account: files are uploaded, a job adds them, and the next search finds them."""

from __future__ import annotations

import base64
import os
import signal
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.clients.stack_client import Person, announced, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.script import Script
    from tests.clients.stack_client import Root

CORPUS = "/v1/admin/corpora/courses"
GRAPH = "/v1/admin/corpora/graph"
SAILING = b"""Course Title: Sailing
Course Link: https://courses.example/sailing

Lesson 0: Wind
The wind fills the sail.

Lesson 1: Knots
A bowline holds the rope.
"""


@pytest.fixture
def admin(root: Root) -> Iterator[Person]:
    person = Person(root.stack.url, root.stack.token("corpus-admin", admin=True))
    yield person
    person.close()


def _upload(admin: Person, name: str, data: bytes, corpus: str = CORPUS) -> dict[str, str]:
    body = {"files": [announced(name, data)]}
    (upload,) = admin.http.post(f"{corpus}/uploads", json=body).json()["uploads"]
    answer = httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False)
    assert answer.status_code == 200, answer.text
    return {"upload_id": upload["upload_id"], "name": name}


def _begin(admin: Person, files: list[dict[str, str]], corpus: str = CORPUS) -> dict[str, Any]:
    response = admin.http.post(f"{corpus}/jobs", json={"files": files})
    assert response.status_code == 202, response.text
    return dict(response.json())


def _ended(admin: Person, job: dict[str, Any]) -> dict[str, Any]:
    wait_for(lambda: admin.get(job["url"])["status"] in ("done", "failed"))
    return dict(admin.get(job["url"]))


def _titles(admin: Person) -> list[str]:
    return [document["title"] for document in admin.get(CORPUS)["documents"]]


def test_an_upload_is_added_and_found(
    root: Root, admin: Person, someone: Callable[[], Person], script: Script
) -> None:
    before = _titles(admin)
    assert "Building Towards Computer Use" in before, "the samples are loaded from the start"
    files = [_upload(admin, "sailing.txt", SAILING), _upload(admin, "bad.txt", b"no title")]
    job = _ended(admin, _begin(admin, files))
    assert job["status"] == "done", job
    assert [(file["state"], file.get("outcome")) for file in job["files"]] == [
        ("read", "added"),
        ("refused", None),
    ]
    assert _titles(admin) == [*before, "Sailing"]
    script.asks(("search_course_content", {"query": "bowline rope", "course_name": "Sailing"}))
    script.says("Lesson 1.")
    ann = someone()
    started = ann.http.post("/v1/chats", json={"message": script.question(), "profile": "courses"}).json()
    chat = ann.finish(started["chat_id"])
    assert chat["sources"][0] == {
        "title": "Sailing - Lesson 1",
        "url": "https://courses.example/sailing",
        "record_id": "q1-t1",
    }
    document = next(entry for entry in admin.get(CORPUS)["documents"] if entry["title"] == "Sailing")
    removal = admin.http.delete(f"{CORPUS}/documents/{document['document_id']}").json()
    assert _ended(admin, removal)["status"] == "done"
    assert _titles(admin) == before


def test_an_upload_address_refuses_other_bytes_and_another_type(admin: Person) -> None:
    body = {"files": [announced("a.txt", b"12345")]}
    (upload,) = admin.http.post(f"{CORPUS}/uploads", json=body).json()["uploads"]
    given = upload["headers"]
    others = announced("a.txt", b"54321")["sha256"]
    checksum = base64.b64encode(bytes.fromhex(others)).decode()
    for data, headers, status in (
        (b"1234567", given, 403),
        (b"12345", given | {"Content-Type": "text/html"}, 403),
        (b"54321", given, 400),
        (b"54321", given | {"x-amz-checksum-sha256": checksum}, 403),
        (b"54321", {"Content-Type": given["Content-Type"]}, 403),
    ):
        refused = httpx.put(upload["url"], content=data, headers=headers, trust_env=False)
        assert refused.status_code == status, headers


def test_the_page_puts_files_to_its_own_origin(root: Root, admin: Person) -> None:
    """The emulator refuses pages; the front port forwards the uploads of its own page only."""
    body = {"files": [announced("a.txt", b"12345")]}
    (upload,) = admin.http.post(f"{CORPUS}/uploads", json=body).json()["uploads"]
    address = root.stack.url + httpx.URL(upload["url"]).raw_path.decode()
    for origin, status in (("https://elsewhere.example", 403), (root.stack.url, 200)):
        headers = {**upload["headers"], "Origin": origin}
        assert httpx.put(address, content=b"12345", headers=headers, trust_env=False).status_code == status


def test_a_worker_that_is_killed_loses_nothing(root: Root, admin: Person) -> None:
    before = _titles(admin)
    text = " ".join(f"Sentence {number} says what it says." for number in range(9_000))
    course = f"Course Title: Killed\n\nLesson 0: Long\n{text}\n".encode()
    job = _begin(admin, [_upload(admin, "killed.txt", course)])
    wait_for(lambda: admin.get(job["url"])["files"][0]["state"] == "read")
    for pid in root.workers("Ingest"):
        os.kill(pid, signal.SIGKILL)
    assert set(_titles(admin)) >= set(before)
    assert _ended(admin, job)["status"] == "done"
    document = next(entry for entry in admin.get(CORPUS)["documents"] if entry["title"] == "Killed")
    assert document["counts"]["chunks"] > 300
    removal = admin.http.delete(f"{CORPUS}/documents/{document['document_id']}").json()
    assert _ended(admin, removal)["status"] == "done"


def test_files_of_a_graph_are_loaded_all_or_nothing_and_removed_again(root: Root, admin: Person) -> None:
    before = admin.get(GRAPH)
    assert {"Asset", "Location"} <= {label["name"] for label in before["schema"]["labels"]}, (
        "the sample is loaded"
    )
    nodes = _upload(admin, "probe-nodes.csv", b"node_id,label,name,depth\nprobe-1,Probe,One,7\n", GRAPH)
    bad = _upload(admin, "probe-edges.csv", b"from,type,to\nprobe-1,PROBES,probe-2\n", GRAPH)
    job = _ended(admin, _begin(admin, [nodes, bad], GRAPH))
    assert (job["status"], job["files"][1]["problems"]) == ("failed", ["line 2: there is no node 'probe-2'"])
    assert admin.get(GRAPH)["version"] == before["version"]
    job = _ended(admin, _begin(admin, [nodes], GRAPH))
    assert (job["status"], job["files"][0]["outcome"]) == ("done", "added"), job
    (probe,) = [label for label in admin.get(GRAPH)["schema"]["labels"] if label["name"] == "Probe"]
    assert probe == {"name": "Probe", "properties": [{"name": "depth", "type": "INT64"}], "count": 1}
    document = next(entry for entry in admin.get(GRAPH)["documents"] if entry["name"] == "probe-nodes.csv")
    removal = admin.http.delete(f"{GRAPH}/documents/{document['document_id']}").json()
    assert _ended(admin, removal)["status"] == "done"
    assert admin.get(GRAPH)["schema"] == before["schema"]
