"""/v1/admin/corpora: permissions, upload addresses, jobs, listing and removal."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dualtrack.corpora.courses import CoursesKind
from dualtrack.corpora.ingest import Ingest, ingest
from dualtrack.runtime.background_loop import BackgroundLoop

from tests.clients.api_client import Api, make_api
from tests.clients.stack_client import announced

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPUS = "/v1/admin/corpora/courses"
COURSE = b"Course Title: Sailing\n\nLesson 0: Wind\nThe wind fills the sail.\n"
ANNOUNCED = announced("a.txt", b"12345")
UPLOAD = f"up_{'0' * 26}_{ANNOUNCED['sha256']}"
ROUTES = (
    ("GET", CORPUS, None),
    ("POST", f"{CORPUS}/uploads", {"files": [ANNOUNCED]}),
    ("POST", f"{CORPUS}/jobs", {"reset": True}),
    ("GET", f"{CORPUS}/jobs/jb_{'0' * 26}", None),
    ("DELETE", f"{CORPUS}/documents/{'0' * 32}", None),
)


@pytest.fixture(scope="module")
def admin() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api.of("an-admin", ["admin"])


def _upload(admin: Api, name: str, data: bytes) -> dict[str, Any]:
    """The uploaded file as a job names it."""
    body = {"files": [announced(name, data)]}
    (upload,) = admin.call("POST", f"{CORPUS}/uploads", body).json["uploads"]
    key = urlsplit(upload["url"]).path.split("/corpora/", 1)[1]
    settings = admin.module.settings
    admin.world.stores.corpora.s3.put_object(Bucket=settings.bodies_bucket, Key=f"corpora/{key}", Body=data)
    return {"upload_id": upload["upload_id"], "name": name}


def _run(admin: Api, job: Any) -> Any:
    work = Ingest(admin.world.stores, CoursesKind(), None, BackgroundLoop())
    assert ingest(work, job["job_id"], lambda: True) == "done"
    return admin.get(job["url"])


@pytest.mark.parametrize(("method", "target", "body"), ROUTES)
def test_only_an_administrator_sees_or_changes_a_corpus(
    admin: Api, method: str, target: str, body: Any
) -> None:
    refused = admin.of("ann").call(method, target, body)
    assert (refused.status, refused.code) == (403, "forbidden")
    unknown = admin.call(method, target.replace("courses", "nothing"), body)
    assert (unknown.status, unknown.code) == (404, "not_found")


def test_an_address_is_for_one_file_of_this_size_and_type(admin: Api) -> None:
    largest = {"name": "b.pdf", "size": 20_000_000, "sha256": "f" * 64}
    body = {"files": [ANNOUNCED, largest]}
    answer = admin.call("POST", f"{CORPUS}/uploads", body)
    assert answer.status == 201
    first, second = answer.json["uploads"]
    signed = parse_qs(urlsplit(first["url"]).query)
    assert signed["X-Amz-SignedHeaders"] == ["content-length;content-type;host;x-amz-checksum-sha256"]
    assert signed["X-Amz-Expires"] == ["900"]
    assert urlsplit(first["url"]).path != urlsplit(second["url"]).path
    checksum = base64.b64encode(hashlib.sha256(b"12345").digest()).decode()
    assert first["headers"] == {"Content-Type": "application/octet-stream", "x-amz-checksum-sha256": checksum}


@pytest.mark.parametrize(
    ("target", "body", "word"),
    [
        ("uploads", {"files": [ANNOUNCED | {"size": 20_000_001}]}, "files.0.size"),
        ("uploads", {"files": [ANNOUNCED | {"size": 0}]}, "files.0.size"),
        ("uploads", {"files": [{"name": "a.txt", "size": 5}]}, "files.0.sha256"),
        ("uploads", {"files": [ANNOUNCED | {"sha256": "F" * 64}]}, "files.0.sha256"),
        ("uploads", {"files": [ANNOUNCED | {"sha256": "f" * 63}]}, "files.0.sha256"),
        ("uploads", {"files": []}, "files"),
        ("uploads", {"files": [ANNOUNCED] * 201}, "files"),
        ("jobs", {}, "files"),
        ("jobs", {"files": [{"upload_id": "../../x", "name": "a.txt"}]}, "files.0.upload_id"),
        ("jobs", {"files": [{"upload_id": "up_" + "0" * 26, "name": "a"}]}, "files.0.upload_id"),
        ("jobs", {"files": [{"upload_id": UPLOAD, "name": "a"}] * 201}, "files"),
    ],
)
def test_input_beyond_a_limit_is_refused_and_located(admin: Api, target: str, body: Any, word: str) -> None:
    answer = admin.call("POST", f"{CORPUS}/{target}", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.json["error"]["message"].startswith(word)


def test_a_job_from_the_upload_to_the_removal(admin: Api, caplog: pytest.LogCaptureFixture) -> None:
    assert admin.get(CORPUS)["documents"] == []
    files = [_upload(admin, "../a/course.txt", COURSE), _upload(admin, "bad.txt", b"no title")]
    caplog.set_level("INFO")
    accepted = admin.call("POST", f"{CORPUS}/jobs", {"files": files})
    assert (accepted.status, accepted.json["status"]) == (202, "queued")
    assert accepted.headers["Location"] == accepted.json["url"]
    (logged,) = [vars(record) for record in caplog.records if record.message == "Corpus job accepted"]
    assert (logged["by"], logged["files"]) == ("an-admin", ["course.txt", "bad.txt"])
    job = _run(admin, accepted.json)
    assert job["status"] == "done"
    assert [(file["name"], file["state"], file.get("outcome")) for file in job["files"]] == [
        ("course.txt", "read", "added"),
        ("bad.txt", "refused", None),
    ]
    assert "no title" in job["files"][1]["reason"]
    (document,) = admin.get(CORPUS)["documents"]
    assert (document["title"], document["counts"]) == ("Sailing", {"lessons": 1, "chunks": 1})
    target = f"{CORPUS}/documents/{document['document_id']}"
    removal = admin.call("DELETE", target)
    assert (removal.status, removal.json["removes"]) == (202, ["Sailing"])
    assert _run(admin, removal.json)["status"] == "done"
    assert admin.get(CORPUS)["documents"] == []
    assert admin.call("DELETE", target).status == 404


def test_a_job_that_cannot_be_started_is_left_to_the_sweep(
    admin: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.module.step_functions, "start_execution", _away, raising=False)
    answer = admin.call("POST", f"{CORPUS}/jobs", {"reset": True})
    assert answer.status == 202
    assert [job.job_id for job in admin.world.stores.corpus_jobs.open_jobs("courses")] == [
        answer.json["job_id"]
    ]


def _away(**_: object) -> None:
    raise ConnectionError
