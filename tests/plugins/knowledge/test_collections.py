"""/v1/collections: who sees and changes what, jobs from the upload to the removal, and what happens between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.corpora.ingest import ingest
from dualtrack.corpora.jobs import sweep_corpora
from dualtrack.corpora.owned import drop_all
from dualtrack.plugins.knowledge import manage
from dualtrack.storage.corpus_jobs import CLEAN_AFTER

from tests.clients.api_client import Api, make_api
from tests.plugins.knowledge.collection_world import (
    HANDBOOK,
    PRICES,
    added,
    finished,
    made,
    started,
    titles,
    uploaded,
    work_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ann() -> Iterator[Api]:
    with make_api() as api:
        yield api.of("ann")


class Executions:
    """None runs, and none can be started."""

    def status(self, name: str) -> str | None:
        return "FAILED"

    def start(self, name: str, data: Any) -> None:
        raise AssertionError(name)


def test_a_document_is_added_replaced_skipped_read_and_deleted(ann: Api) -> None:
    path = made(ann)
    job = added(ann, path, ("../x/handbook.md", HANDBOOK), ("empty.txt", b"  "))
    assert job["status"] == "done"
    read, refused = job["files"]
    assert (read["name"], read["state"], read["title"], read["outcome"]) == (
        "handbook.md",
        "read",
        "Handbook",
        "added",
    )
    assert (refused["state"], refused["reason"]) == ("refused", "is empty")
    (listed,) = ann.get(f"{path}/documents")["documents"]
    assert (listed["title"], listed["name"], listed["kind"]) == ("Handbook", "handbook.md", "markdown")
    assert listed["counts"]["bytes"] == len(HANDBOOK)
    shown = ann.get(f"{path}/documents/{listed['document_id']}")
    assert "30 days of holiday" in shown["text"]
    assert "## Handbook › Sickness" in shown["text"]
    assert (shown["begin"], shown["following"]) == (0, None)
    again = added(ann, path, ("other.md", HANDBOOK))
    assert again["files"][0]["outcome"] == "skipped"
    changed = added(
        ann, path, ("h.md", HANDBOOK.replace(b"30", b"25").replace(b"# Handbook", b"# HAND\xc2\xa0BOOK", 1))
    )
    assert changed["files"][0]["outcome"] == "added", "another word is another title"
    folded = added(
        ann, path, ("h.md", HANDBOOK.replace(b"30", b"28").replace(b"# Handbook", b"#  HANDBOOK ", 1))
    )
    assert folded["files"][0]["outcome"] == "replaced"
    assert titles(ann, path) == ["HANDBOOK", "HAND BOOK"]
    assert "28 days" in ann.get(f"{path}/documents/{listed['document_id']}")["text"]
    removal = ann.call("DELETE", f"{path}/documents/{listed['document_id']}")
    assert (removal.status, removal.json["removes"]) == (202, ["HANDBOOK"])
    assert finished(ann, path, removal.json)["status"] == "done"
    assert titles(ann, path) == ["HAND BOOK"]
    assert ann.call("GET", f"{path}/documents/{listed['document_id']}").status == 404


def test_a_given_title_wins_and_a_replaced_document_gives_its_place(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK, {"title": "House  rules"}), ("b.md", PRICES))
    assert titles(ann, path) == ["House rules", "Prices"]
    rules = ann.get(f"{path}/documents")["documents"][0]["document_id"]
    added(ann, path, ("new.txt", b"Be kind to each other.", {"replaces": rules}))
    assert titles(ann, path) == ["House rules", "Prices"]
    assert "kind" in ann.get(f"{path}/documents/{rules}")["text"]
    added(ann, path, ("new.txt", b"Be kind.", {"replaces": rules, "title": "Prices"}))
    assert titles(ann, path) == ["Prices"]
    body = {"files": [uploaded(ann, path, "c.txt", b"Text.", replaces=rules)]}
    refused = ann.call("POST", f"{path}/jobs", body)
    assert (refused.status, refused.json["error"]["message"].split(":")[0]) == (400, "files.0.replaces")


def test_a_replacement_that_is_refused_loses_nothing(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK))
    rules = ann.get(f"{path}/documents")["documents"][0]["document_id"]
    added(ann, path, ("new.txt", b" ", {"replaces": rules, "title": "Other"}))
    assert titles(ann, path) == ["Handbook"]


def test_two_uploads_of_one_title_at_once_end_with_one_document(ann: Api) -> None:
    path = made(ann)
    first, second = (
        started(ann, path, ("a.md", HANDBOOK)),
        started(ann, path, ("b.md", HANDBOOK + b"\nMore.\n")),
    )
    ingest(work_of(ann, path), first["job_id"], lambda: False)
    assert finished(ann, path, second)["files"][0]["outcome"] == "added"
    assert finished(ann, path, first)["files"][0]["outcome"] == "replaced"
    assert titles(ann, path) == ["Handbook"]
    same = added(ann, path, ("a.md", HANDBOOK), ("b.md", HANDBOOK + b"\nMore.\n"))
    assert [file["state"] for file in same["files"]] == ["read", "refused"]


def test_a_document_that_is_deleted_while_it_is_read_anew_is_there_again(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK))
    (document,) = ann.get(f"{path}/documents")["documents"]
    newer = started(ann, path, ("b.md", HANDBOOK.replace(b"30", b"31")))
    ingest(work_of(ann, path), newer["job_id"], lambda: False)
    removal = ann.call("DELETE", f"{path}/documents/{document['document_id']}").json
    assert finished(ann, path, removal)["status"] == "done"
    assert finished(ann, path, newer)["files"][0]["outcome"] == "added"
    assert titles(ann, path) == ["Handbook"]


def test_a_collection_takes_as_many_documents_as_it_may(ann: Api) -> None:
    path = made(ann)
    job = added(ann, path, ("a.md", HANDBOOK), ("b.md", PRICES), most_documents=1)
    assert [file["state"] for file in job["files"]] == ["read", "refused"]
    assert job["files"][1]["reason"].endswith("it may have at most 1 documents")


def test_nobody_sees_or_changes_what_is_somebody_elses(ann: Api) -> None:
    path = made(ann)
    job = added(ann, path, ("a.md", HANDBOOK))
    (document,) = ann.get(f"{path}/documents")["documents"]
    bob = ann.of("bob")
    assert bob.get("/v1/collections")["collections"] == []
    calls = [
        ("GET", path, None),
        ("PATCH", path, {"name": "Mine"}),
        ("DELETE", path, None),
        ("POST", f"{path}/documents", {"files": [{"name": "a", "size": 1, "sha256": "0" * 64}]}),
        ("POST", f"{path}/jobs", {"files": [{"upload_id": f"up_{'0' * 26}_{'0' * 64}", "name": "a"}]}),
        ("GET", job["url"], None),
        ("GET", f"{path}/documents", None),
        ("GET", f"{path}/documents/{document['document_id']}", None),
        ("DELETE", f"{path}/documents/{document['document_id']}", None),
    ]
    for method, target, body in calls:
        assert bob.call(method, target, body).status == 404, (method, target)
    assert titles(ann, path) == ["Handbook"]


def test_the_stages_are_read_by_all_and_changed_by_administrators(ann: Api) -> None:
    assert ann.call("POST", "/v1/collections", {"name": "Handbook", "shared": True}).status == 403
    admin = ann.of("root", ["admin"])
    path = made(admin, "Handbook", shared=True)
    added(admin, path, ("a.md", HANDBOOK))
    assert titles(ann, path) == ["Handbook"]
    assert ann.get("/v1/collections")["collections"][0]["shared"]
    assert ann.call("PATCH", path, {"name": "Mine"}).status == 403
    assert ann.call("DELETE", path).status == 403
    assert ann.call("POST", f"{path}/jobs", {"files": [uploaded(admin, path, "b.md", PRICES)]}).status == 403


def test_a_name_is_unique_among_ones_own(ann: Api) -> None:
    path = made(ann, "Papers")
    assert ann.call("POST", "/v1/collections", {"name": " ＰＡＰＥＲＳ "}).code == "name_taken"
    other = made(ann, "Letters")
    assert ann.call("PATCH", other, {"name": "papers"}).status == 409
    made(ann.of("bob"), "Papers")
    assert ann.call("PATCH", path, {"name": "PAPERS", "description": "All"}).json["name"] == "PAPERS"
    assert ann.call("DELETE", other).status == 204
    made(ann, "Letters")


def test_a_user_has_at_most_twenty(ann: Api) -> None:
    paths = [made(ann, f"C{number}") for number in range(20)]
    assert ann.call("POST", "/v1/collections", {"name": "One more"}).status == 400
    ann.call("DELETE", paths[0])
    made(ann, "One more")
    page = ann.get("/v1/collections?limit=15")
    rest = ann.get(f"/v1/collections?limit=15&cursor={page['cursor']}")
    assert len(page["collections"]) + len(rest["collections"]) == 20
    assert "cursor" not in rest


def test_more_than_a_users_bytes_is_refused_before_the_upload(
    ann: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manage, "USER_BYTES", len(HANDBOOK) + 10)
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK))
    body = {"files": [{"name": "b.md", "size": 11, "sha256": "0" * 64}]}
    refused = ann.call("POST", f"{path}/documents", body)
    assert refused.status == 400
    assert "delete documents first" in refused.json["error"]["message"]


def test_what_is_deleted_while_a_job_runs_does_not_come_back(ann: Api) -> None:
    path, stores = made(ann), ann.world.stores
    added(ann, path, ("a.md", HANDBOOK))
    job = started(ann, path, ("b.md", PRICES))
    assert ingest(work_of(ann, path), job["job_id"], lambda: False) == "again"
    assert ann.call("DELETE", path).status == 204
    assert ann.call("DELETE", path).status == 404
    assert ingest(work_of(ann, path), job["job_id"], lambda: True) == "done"
    corpus = path.rpartition("/")[2]
    assert stores.corpora.objects(corpus)
    sweep_corpora(stores, Executions())  # type: ignore[arg-type]
    assert stores.corpora.objects(corpus), "a step may still write"
    ann.world.clock.now += CLEAN_AFTER + 1
    sweep_corpora(stores, Executions())  # type: ignore[arg-type]
    assert stores.corpora.objects(corpus) == stores.corpora.uploaded(corpus) == []
    assert stores.corpora.published(corpus) is None
    assert stores.corpus_jobs.find(corpus, job["job_id"]) is None
    assert stores.corpus_jobs.active() == []


def test_the_sweep_forgets_a_collection_at_rest_and_its_old_versions(ann: Api) -> None:
    path, stores = made(ann), ann.world.stores
    added(ann, path, ("a.md", HANDBOOK))
    added(ann, path, ("b.md", PRICES))
    corpus = path.rpartition("/")[2]
    assert [name for name, _ in stores.corpus_jobs.active()] == [corpus]
    ann.world.clock.now += 2 * CLEAN_AFTER
    sweep_corpora(stores, Executions())  # type: ignore[arg-type]
    assert stores.corpus_jobs.active() == []
    assert len(stores.corpora.objects(corpus)) == 2
    assert titles(ann, path) == ["Handbook", "Prices"]


def test_an_erasure_leaves_nothing_of_ones_own(ann: Api) -> None:
    path, stores = made(ann), ann.world.stores
    added(ann, path, ("a.md", HANDBOOK))
    theirs = made(ann.of("bob"))
    assert drop_all(stores, "ann")
    assert not drop_all(stores, "ann")
    ann.world.clock.now += CLEAN_AFTER + 1
    sweep_corpora(stores, Executions())  # type: ignore[arg-type]
    assert stores.corpora.objects(path.rpartition("/")[2]) == []
    assert ann.of("bob").call("GET", theirs).status == 200
