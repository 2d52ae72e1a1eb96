"""/v1/admin: users, and the data that tools search."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack_stack.machines import REFRESH

from tests.clients.stack_client import announced, wait_for
from tests.drivers.tour import stop

if TYPE_CHECKING:
    from tests.clients.stack_client import Person
    from tests.drivers.tour import Visit

USER = "/v1/admin/users/{user_id}"
CORPUS = "/v1/admin/corpora/{corpus}"
COURSES = "/v1/admin/corpora/courses"


@stop(f"PUT {USER}/plan", "plan")
def a_plan(visit: Visit) -> None:
    bob = visit.person()
    visit.ask({"plan": "pro"}, user_id=bob.id)
    assert bob.credits()["plan"] == "pro"


@stop(f"POST {USER}/grants", "credits", "reason", "grant_id")
def a_grant(visit: Visit) -> None:
    bob = visit.person()
    for _ in range(2):
        visit.ask({"credits": 500, "reason": "a pack", "grant_id": "payment-1"}, user_id=bob.id)
    assert bob.credits()["pack"] == {"remaining": 500}
    (entry,) = bob.get("/v1/credits/ledger")["entries"]
    assert (entry["kind"], entry["amount"], entry["reason"]) == ("grant", 500, "a pack")


@stop(f"GET {USER}/credits")
def a_balance(visit: Visit) -> None:
    bob = visit.person()
    assert visit.ask(user_id=bob.id).json() == bob.credits()


@stop(f"GET {USER}/spending", "days")
def a_user_s_spending(visit: Visit) -> None:
    bob = visit.person()
    visit.script.says("Five credits.")
    bob.ask(visit.script.question())
    (day,) = visit.ask(query={"days": 1}, user_id=bob.id).json()["days"]
    assert (day["chats"], day["credits"]) == (1, 5)


@stop(f"DELETE {USER}")
def a_user_is_erased(visit: Visit) -> None:
    bob = visit.person()
    visit.ask(user_id=bob.id, status=202)
    assert bob.http.get("/v1/credits").status_code == 401


@stop("POST /v1/admin/tools/{server}/accept", "marks")
def what_a_server_has_changed_is_accepted(visit: Visit) -> None:
    """A tool that is new and says that it only reads asks for approval, and then does not."""
    refresh = partial(visit.root.invoke, "Mcp", dict(REFRESH))
    name, call = f"more_{visit.script.marker}", {"name": visit.script.marker}
    try:
        with visit.tools.offering(name, "Look again."):
            refresh()
            (changed,) = visit.owner.get("/v1/tools")["changed"]
            assert (changed["server"], changed["name"]) == ("kit", f"kit_{name}")
            waits = visit.paused((changed["name"], call), ("kit_echo", {"text": "old"}), profile="careful")
            assert [one["tool"] for one in waits["pause"]["calls"]] == [changed["name"]]
            assert visit.ask({"marks": [changed["mark"]]}, server="kit").json() == {"changed": []}
            assert visit.owner.get("/v1/tools")["changed"] == []
            visit.script.asks((changed["name"], call))
            assert visit.chat(profile="careful")["status"] == "done"
            assert visit.tools.calls[f"more:{visit.script.marker}"] == 1
    finally:
        refresh()


# ── corpora ───────────────────────────────────────────────────────────────────────────────────────


def course(title: str) -> bytes:
    """A file of one lesson."""
    return f"Course Title: {title}\n\nLesson 1: The bowline\nIt holds the rope of {title}.\n".encode()


def uploaded(admin: Person, name: str, data: bytes, corpus: str = "courses") -> dict[str, str]:
    """An uploaded file, as a job names it."""
    where = f"/v1/admin/corpora/{corpus}/uploads"
    (upload,) = admin.http.post(where, json={"files": [announced(name, data)]}).json()["uploads"]
    put = httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False)
    assert put.status_code == 200, put.text
    return {"upload_id": upload["upload_id"], "name": name}


def ended(admin: Person, url: str) -> dict[str, Any]:
    """A job once it has ended."""
    wait_for(lambda: admin.get(url)["status"] in ("done", "failed"))
    return dict(admin.get(url))


def added(visit: Visit, title: str) -> dict[str, Any]:
    """A course that was added; its document."""
    admin = visit.owner
    files = [uploaded(admin, "knots.txt", course(title))]
    job = admin.http.post(f"{COURSES}/jobs", json={"files": files}).json()
    assert ended(admin, job["url"])["status"] == "done"
    return next(one for one in admin.get(COURSES)["documents"] if one["title"] == title)


def removed(visit: Visit, document: dict[str, Any]) -> None:
    """Take it away again."""
    job = visit.owner.http.delete(f"{COURSES}/documents/{document['document_id']}").json()
    assert ended(visit.owner, job["url"])["status"] == "done"


@stop(f"GET {CORPUS}")
def a_corpus(visit: Visit) -> None:
    assert visit.ask(corpus="courses").json()["documents"]
    assert visit.ask(corpus="graph").json()["schema"]["labels"]


@stop(f"POST {CORPUS}/uploads", "files", "files[].name", "files[].size", "files[].sha256")
def an_address_for_a_file(visit: Visit) -> None:
    data = course("Announced")
    (upload,) = visit.ask({"files": [announced("a.txt", data)]}, corpus="courses", status=201).json()[
        "uploads"
    ]
    assert upload["name"] == "a.txt"
    for content, status in ((data[:-1] + b"?", 400), (data, 200)):
        put = httpx.put(upload["url"], content=content, headers=upload["headers"], trust_env=False)
        assert put.status_code == status


@stop(f"POST {CORPUS}/jobs", "files", "files[].upload_id", "files[].name", "reset")
def a_job(visit: Visit) -> None:
    title = f"Knots {visit.script.marker}"
    files = [uploaded(visit.owner, "knots.txt", course(title))]
    job = visit.ask({"files": files, "reset": False}, corpus="courses", status=202).json()
    assert job["reset"] is False
    (file,) = ended(visit.owner, job["url"])["files"]
    assert (file["name"], file["title"], file["outcome"]) == ("knots.txt", title, "added")
    documents = visit.owner.get(COURSES)["documents"]
    assert len(documents) > 1, "without a reset the others stay"
    removed(visit, next(one for one in documents if one["title"] == title))


@stop(f"GET {CORPUS}/jobs/{{job_id}}")
def a_job_s_progress(visit: Visit) -> None:
    files = [uploaded(visit.owner, "bad.txt", b"no title")]
    job = visit.owner.http.post(f"{COURSES}/jobs", json={"files": files}).json()
    ended(visit.owner, job["url"])
    shown = visit.ask(corpus="courses", job_id=job["job_id"]).json()
    assert [file["state"] for file in shown["files"]] == ["refused"]


@stop(f"DELETE {CORPUS}/documents/{{document_id}}")
def a_document_is_removed(visit: Visit) -> None:
    document = added(visit, f"Gone {visit.script.marker}")
    job = visit.ask(corpus="courses", document_id=document["document_id"], status=202).json()
    assert ended(visit.owner, job["url"])["status"] == "done"
    assert document["title"] not in [one["title"] for one in visit.owner.get(COURSES)["documents"]]
