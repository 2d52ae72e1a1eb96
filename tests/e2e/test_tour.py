"""The tour: every door of the deployed stack, each field with its effect, by token and by key, through the front and
the gateway, under the function's own role. tests/unit/test_tour.py says what it lacks; `tests.drivers.tour` how it is
made.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.plugin import id_forms
from dualtrack_stack.doors import DOORS

from tests.clients.stack_client import PATIENCE, Person
from tests.drivers import tour_stops  # noqa: F401 - it declares the stops
from tests.drivers.tour import STOPS, Stop, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack_stack.doors import Door

    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.drivers.tour import By
    from tests.servers.tool_server import ToolServer

DENIED = ("AccessDenied", "is not authorized to perform")
HTTP = [door for door in DOORS if door.is_http]
SCOPES = ("chat", "read", "decide", "hooks", "erase")


@pytest.fixture(scope="module", autouse=True)
def _nobody_is_denied(root: Root) -> Iterator[None]:
    """No role lacked anything meanwhile, whatever the callers were told: by the logs of functions and processes."""
    began, sizes = time.time(), {path: path.stat().st_size for path in _logs(root)}
    yield
    said = {
        path.name: path.read_bytes()[sizes.get(path, 0) :].decode("utf-8", "replace") for path in _logs(root)
    }
    logs = root.client("logs")
    for page in logs.get_paginator("describe_log_groups").paginate():
        for group in page["logGroups"]:
            events = logs.filter_log_events(logGroupName=group["logGroupName"], startTime=int(began * 1000))
            said[group["logGroupName"]] = "\n".join(str(event["message"]) for event in events["events"])
    denied = [
        (where, line)
        for where, text in said.items()
        for line in text.splitlines()
        if any(word in line for word in DENIED)
    ]
    assert denied == []


def _logs(root: Root) -> list[Any]:
    return sorted((root.state_dir / "logs").glob("*"))


@pytest.mark.parametrize(
    ("stop", "by"),
    [pytest.param(stop, by, id=f"{stop.name} by {by}") for stop in STOPS for by in stop.ways],
)
def test_a_stop(root: Root, tools: ToolServer, script: Script, stop: Stop, by: By) -> None:
    visit = Visit(root, script, tools, stop.door, by)
    try:
        stop.visit(visit)
        assert visit.asked, "the stop has not asked its door"
        assert visit.lacks(stop) == [], "it declares more than it sends"
    finally:
        visit.close()


@pytest.fixture(scope="module")
def keyring(root: Root) -> Iterator[Callable[..., httpx.Client]]:
    """Clients with keys of administrators, made once for each kind."""
    owners: list[Person] = []
    clients: dict[Any, httpx.Client] = {}

    def client(*scopes: str, **more: Any) -> httpx.Client:
        name = (scopes, tuple(more.items()))
        if name not in clients:
            # a user of its own, since each may have 20 keys
            identity = root.stack.token(f"tour-keys-{len(owners)}", admin=True)
            owners.append(Person(root.stack.url, identity))
            made = owners[-1].http.post("/v1/keys", json={"name": "tour", "scopes": [*scopes], **more})
            headers = {"Authorization": f"Bearer {made.json()['key']}"}
            clients[name] = httpx.Client(
                base_url=root.stack.url, headers=headers, timeout=PATIENCE, trust_env=False
            )
        return clients[name]

    yield client
    for one in (*clients.values(), *owners):
        one.close()


def _path(door: Door) -> str:
    """Of something that is not there."""
    examples = {name: form.example for name, form in id_forms().items()}
    named = {
        "corpus": "nothing",
        "server": "nothing",
        "name": "nobody",
        "tool": "nothing",
        "response_id": "resp_" + "0" * 26,
        "model": "none",
    }
    return door.path.format(**{**examples, **named})


def _code(answer: httpx.Response) -> tuple[int, str]:
    error = answer.json().get("error", {})
    return answer.status_code, str(error.get("scope", ""))


@pytest.mark.parametrize("door", HTTP, ids=lambda door: door.name)
def test_who_may_pass(root: Root, keyring: Callable[..., httpx.Client], door: Door) -> None:
    """Nobody without a credential; no key without a scope of the door, and each of its scopes alone is enough. Of an
    administrator's door nobody else."""
    ask = (door.method, _path(door))
    with httpx.Client(base_url=root.stack.url, timeout=PATIENCE, trust_env=False) as nobody:
        assert (nobody.request(*ask).status_code == 200) == (door.passes == "anyone")
        if door.passes == "anyone":
            return
        assert nobody.request(*ask).status_code == 401
        if door.passes == "admin":
            ann = root.stack.token("tour-ann").token
            assert nobody.request(*ask, headers={"Authorization": f"Bearer {ann}"}).status_code == 403
    others = [scope for scope in SCOPES if scope not in door.scopes]
    refused = _code(keyring(*others).request(*ask, json={}))
    assert refused[0] == 403 if door.scopes else refused[0] in (403, 404)
    assert not door.scopes or refused[1] == door.scopes[-1]
    for scope in door.scopes:
        passed = _code(keyring(scope).request(*ask, json={}))
        assert passed[0] in (200, 201, 400, 404), (scope, passed)
    if door.scopes and door.passes == "user":
        service = keyring(*door.scopes, acts_for="any")
        unnamed = service.request(*ask, json={})
        assert door.for_owner or "X-Dualtrack-User" in unnamed.text
        named = service.request(*ask, json={}, headers={"X-Dualtrack-User": "kim"})
        assert named.status_code in (200, 201, 400, 404)
        assert "X-Dualtrack-User" not in named.text
