"""The samples in the OpenAPI document and in docs/api.md are what the stack sends.

``DUALTRACK_WRITE_SAMPLES=1 uv run --group test pytest -n0 tests/e2e/test_api_samples.py`` rewrites them.
"""

from __future__ import annotations

import base64
import os
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack.event_data import EVENTS
from dualtrack_stack.local.offline_model.classifier import MAGIC
from dualtrack_stack.machines import REFRESH

from tests.clients.stack_client import Person, announced, wait_for
from tests.drivers import api_samples
from tests.drivers.api_samples import Collector
from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

SECRET = re.compile(r"\b(dt_[0-9A-Za-z]{4})[0-9A-Za-z]{50}\b")
SIGNING = re.compile(r"\b(whsec_[0-9A-Za-z+/]{4})[0-9A-Za-z+/]{39}=")
SIGNED = re.compile(r"http://\S+X-Amz-Signature=\w+")
COURSE = (
    b"Course Title: Knots\nCourse Link: https://courses.example/knots\n\nLesson 1: The bowline\nIt holds.\n"
)


def _ask(
    samples: Collector, person: Person, script: Script, text: str, chat: dict[str, Any]
) -> dict[str, Any]:
    """One chat with two tools; the chat object."""
    script.asks(
        ("retrieve_documentation", {"query": "OAuth 1.0a for the X Ads API"}),
        ("search_conversation", {"query": "OAuth"}),
        text="Let me look that up.",
        thought="The documentation has it, and it may have been said before.",
    )
    script.says("Sign each request with OAuth 1.0a: a consumer key and an access token.")
    body = {"message": script.question(text), **chat}
    started = samples.call(person, "POST", "/v1/chats", body).json()
    samples.take(person.events(started["chat_id"]))
    shown: dict[str, Any] = samples.call(person, "GET", started["url"]).json()
    return shown


def _story_of_ann(samples: Collector, ann: Person, script: Script) -> None:
    """Three chats in one conversation, until the credits are gone."""
    large = {"media_type": "text/csv", "bytes": 6_000_000, "name": "all-keys.csv"}
    samples.call(ann, "POST", "/v1/uploads", large)
    picture = base64.b64encode(b"key,value\nconsumer,abc\n").decode()
    file = {"media_type": "text/csv", "name": "keys.csv", "data": picture}
    chat = _ask(samples, ann, script, "How do I set up OAuth for Twitter ads?", {"attachments": [file]})
    where = f"/v1/conversations/{chat['conversation_id']}"
    samples.call(ann, "GET", f"/v1/chats/{chat['chat_id']}/receipt")
    samples.call(ann, "GET", f"{where}?track=summarised")
    samples.call(ann, "GET", f"{where}/records/q1-t1")
    for text in ("And in Python?", "And in JavaScript?"):
        _ask(samples, ann, script, text, {"conversation_id": chat["conversation_id"]})
    assert samples.call(ann, "POST", "/v1/chats", {"message": "And now?"}).status_code == 402
    samples.call(ann, "PATCH", where, {"title": "OAuth for Twitter ads"})
    samples.call(ann, "POST", f"{where}/fork", {"before": "q2"})
    for path in ("/v1/conversations", "/v1/credits", "/v1/credits/ledger", "/v1/tools", "/health"):
        samples.call(ann, "GET", path)
    samples.call(ann, "PUT", "/v1/connections/github", {"token": "github_pat_" + "a" * 40})
    samples.call(ann, "POST", "/v1/conversations", {"title": "Plans", "profile": "assistant"})


def _keys_of_ann(samples: Collector, ann: Person) -> None:
    """A key, made, changed, rotated and revoked; it calls the stack at the front's own address."""
    made = {"name": "nightly report", "scopes": ["chat", "read"], "caps": {"credits_day": 50}}
    body = samples.call(ann, "POST", "/v1/keys", made).json()
    by_key = {"Authorization": f"Bearer {body['key']}"}
    assert ann.http.get("/v1/credits", headers=by_key).status_code == 200
    where = f"/v1/keys/{body['key_id']}"
    samples.call(ann, "PATCH", where, {"name": "report", "caps": {"dollars_total": 2.5}})
    samples.call(ann, "POST", f"{where}/rotate", {"overlap": 3600})
    samples.call(ann, "GET", "/v1/keys")
    assert samples.call(ann, "DELETE", where).status_code == 204
    assert ann.http.get("/v1/credits", headers=by_key).status_code == 401


def _decisions(samples: Collector, eve: Person, script: Script) -> None:
    """Two calls that need approval: one is approved with another input, the other declined."""
    script.asks(("kit_write", {"name": "notes"}), ("kit_write", {"name": "plan"}), text="I shall write both.")
    script.says("Done: the notes are written, and the plan is not.")
    body = {"message": script.question("Write the notes and the plan."), "profile": "careful"}
    started = eve.http.post("/v1/chats", json=body).json()
    samples.take(eve.until(started["chat_id"], lambda event: event.kind == "paused"))
    (paused,) = samples.call(eve, "GET", "/v1/pauses").json()["pauses"]
    again = {"message": "Are you there?", "conversation_id": started["conversation_id"]}
    assert samples.call(eve, "POST", "/v1/chats", again).status_code == 409
    first, second = (call["id"] for call in paused["calls"])
    decisions = [
        {"id": first, "input": {"name": "my notes"}},
        {"id": second, "approve": False, "reason": "Not yet."},
    ]
    where = f"{started['url']}/decisions"
    samples.call(eve, "POST", where, {"decisions": decisions})
    samples.take(eve.events(started["chat_id"]))
    samples.call(eve, "POST", where, {"decisions": [{"id": first, "approve": True}]})
    samples.call(eve, "POST", where, {"decisions": [{"id": "q9-t9", "approve": True}]})


def _noted(samples: Collector, eve: Person, script: Script, tools: ToolServer) -> None:
    """A chat whose answer brings notes."""
    tools.pages[script.marker] = "What the page says. " * 3_000
    script.asks(("kit_page", {"name": script.marker}))
    script.says("The page says it.", notes=True)
    body = {"message": script.question("What does the page say?"), "profile": "careful"}
    samples.take(eve.events(eve.http.post("/v1/chats", json=body).json()["chat_id"]))


def _declined(samples: Collector, bob: Person, script: Script) -> None:
    """A chat that goes on without what the model's service declines."""
    for said in ("Hm.", f"An answer with {MAGIC}.", "It works again."):
        script.says(said)
    asked = bob.ask(script.question("One."))
    for question in ("Two.", "Three.", "Four."):
        asked = bob.ask(script.question(question), asked["conversation_id"])
    samples.take(bob.events(asked["chat_id"]))


def _refusals(samples: Collector, bob: Person, script: Script, tools: ToolServer) -> None:
    """A chat that fails, and requests refused while another chat runs."""
    script.model.script.add({"match": script.key, "status": 429, "retry_after": 1})
    script.refuses(400)
    samples.take(bob.events(bob.start(script.question("Fail."))["chat_id"]))
    _declined(samples, bob, script)
    script.asks(("kit_hold", {"name": script.marker}))
    running = bob.start(script.question("Wait."))
    assert tools.gate(script.marker).arrived.wait(30)
    again = {"message": "Are you there?", "conversation_id": running["conversation_id"]}
    assert samples.call(bob, "POST", "/v1/chats", again).status_code == 409
    with ExitStack() as streams:
        for _ in range(5):
            opened = streams.enter_context(bob.http.stream("GET", running["events_url"]))
            pieces = opened.iter_raw()
            next(pieces)
            streams.callback(pieces.close)  # type: ignore[attr-defined]
        assert samples.call(bob, "GET", running["events_url"]).status_code == 429
    bob.cancel(running["chat_id"])
    tools.gate(script.marker).released.set()
    samples.call(bob, "GET", "/v1/credits", headers={"Authorization": "Bearer x"})
    samples.call(bob, "GET", f"/v1/admin/users/{bob.id}/credits")
    samples.call(bob, "GET", "/v1/chats/ch_01jd8m3v5q0000000000000000")
    samples.call(bob, "POST", "/v1/chats", {"message": ""})
    key, fork = {"Idempotency-Key": script.marker}, f"/v1/conversations/{running['conversation_id']}/fork"
    for before in ("q1", "q2"):
        samples.call(bob, "POST", fork, {"before": before}, headers=key)
    part = base64.b64encode(b"x" * 880_000).decode()  # a request that is taken, its files are not
    files = [{"media_type": "text/plain", "data": part} for _ in range(5)]
    samples.call(bob, "POST", "/v1/chats", {"message": "Read.", "attachments": files})


def _administration(samples: Collector, admin: Person, bob: Person) -> None:
    user = f"/v1/admin/users/{bob.id}"
    samples.call(admin, "PUT", f"{user}/plan", {"plan": "pro"})
    samples.call(admin, "POST", f"{user}/grants", {"credits": 500, "reason": "pack", "grant_id": "payment-1"})
    samples.call(admin, "GET", f"{user}/spending")
    corpus = "/v1/admin/corpora/courses"
    (upload,) = samples.call(
        admin, "POST", f"{corpus}/uploads", {"files": [announced("knots.txt", COURSE)]}
    ).json()["uploads"]
    put = httpx.put(upload["url"], content=COURSE, headers=upload["headers"], trust_env=False)
    assert put.status_code == 200
    files = [{"upload_id": upload["upload_id"], "name": upload["name"]}]
    job = admin.http.post(f"{corpus}/jobs", json={"files": files}).json()
    samples.bodies["JobBody"] = {"files": files}
    wait_for(lambda: admin.get(job["url"])["status"] in ("done", "failed"))
    samples.call(admin, "GET", job["url"])
    documents = samples.call(admin, "GET", corpus).json()["documents"]
    added = next(document for document in documents if document["title"] == "Knots")
    removal = admin.http.delete(f"{corpus}/documents/{added['document_id']}").json()
    wait_for(lambda: admin.get(removal["url"])["status"] in ("done", "failed"))
    samples.call(admin, "DELETE", user)


def _acceptance(samples: Collector, admin: Person, root: Root, tools: ToolServer) -> None:
    """Of two tools that are new at a server one is accepted."""
    with tools.offering("peek", "Looks at one page."), tools.offering("scan", "Looks at all pages."):
        root.invoke("Mcp", dict(REFRESH))
        changed = admin.get("/v1/tools")["changed"]
        marks = [tool["mark"] for tool in changed if tool["name"] == "kit_peek"]
        left = samples.call(admin, "POST", "/v1/admin/tools/kit/accept", {"marks": marks}).json()["changed"]
        assert [tool["name"] for tool in left] == ["kit_scan"]
    root.invoke("Mcp", dict(REFRESH))


def test_the_samples_are_what_the_stack_sends(
    root: Root, tools: ToolServer, someone: Callable[[], Person], script: Script
) -> None:
    def clean(text: str) -> str:
        for name in ("ann", "eve", "zoe", "bob"):
            text = text.replace(f"{script.branch(name).key} ", "").replace(
                script.branch(name).marker, "key-1"
            )
        text = SECRET.sub(r"\1…", text)
        text = SIGNING.sub(r"\1…", text)
        text = SIGNED.sub("http://127.0.0.1:8000/…?X-Amz-Signature=…", text)
        return text.replace(root.stack.url, "http://127.0.0.1:8000").replace("kit_", "example_")

    samples = Collector(clean)
    admin = Person(root.stack.url, root.stack.token(f"admin-{script.marker}", admin=True))
    bob = someone()
    ann = someone()
    _story_of_ann(samples, ann, script.branch("ann"))
    _keys_of_ann(samples, ann)
    of_plugins = {part.__name__.split(".")[-2]: part.samples_of(clean, ann) for part in parts("api_samples")}
    _decisions(samples, someone(), script.branch("eve"))
    _noted(samples, someone(), script.branch("zoe"), tools)
    _refusals(samples, bob, script.branch("bob"), tools)
    _administration(samples, admin, bob)
    _acceptance(samples, admin, root, tools)
    admin.close()
    collected = samples.collected()
    if os.environ.get("DUALTRACK_WRITE_SAMPLES"):
        api_samples.write(collected, of_plugins)
        return
    for own in of_plugins.values():
        collected["bodies"] |= own["bodies"]
    assert {name.partition("-")[0] for name in collected["events"]} == set(EVENTS)
    kept = api_samples.stored()
    for part in ("events", "bodies", "errors"):
        assert {name: api_samples.shape(sample) for name, sample in collected[part].items()} == {
            name: api_samples.shape(sample) for name, sample in kept[part].items()
        }
