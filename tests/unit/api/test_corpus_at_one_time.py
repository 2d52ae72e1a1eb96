"""GET /v1/admin/corpora/{corpus} while another version is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.api_client import make_api
from tests.unit.api.test_corpora import CORPUS, COURSE, _run, _upload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.api_client import Api


@pytest.fixture
def admin() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api.of("an-admin", ["admin"])


def test_counts_and_documents_are_of_the_same_version(admin: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the version is replaced between two reads, counts and documents still come from the same version."""
    job = admin.call(
        "POST", f"{CORPUS}/jobs", {"files": [_upload(admin, "a.txt", COURSE)], "reset": True}
    ).json
    _run(admin, job)
    store = type(admin.world.stores.corpora)
    read, late = store.documents, [b"Course Title: Rowing\n\nLesson 0: Oars\nTwo oars.\n"]

    def documents(self: Any, corpus: str, version: str) -> Any:
        if late:
            files = [_upload(admin, "late.txt", late.pop())]
            _run(admin, admin.call("POST", f"{CORPUS}/jobs", {"files": files, "reset": True}).json)
            self.delete([key for key in self.objects(corpus) if version in key])
        return read(self, corpus, version)

    monkeypatch.setattr(store, "documents", documents)
    shown = admin.get(CORPUS)
    assert [document["title"] for document in shown["documents"]] == ["Rowing"]
    published = admin.world.stores.corpora.published("courses")
    assert published is not None
    assert shown["version"] == published.version
