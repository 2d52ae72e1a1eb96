"""The function `stream` behind the real Lambda Web Adapter: run.sh, readiness, the prelude, pieces, a break.

The adapter is crates.io's, built for this machine; on AWS it is the layer's, for ARM. The Runtime API is ours. The
event is a REST API's, with the stage in its context.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.storage.dynamo import get
from dualtrack.streaming.follow_events import HEARTBEAT
from dualtrack_stack.stacks.functions import WEB_ADAPTER_SETTINGS

from tests.clients.sse_reader import whole_events
from tests.clients.stack_client import wait_for
from tests.drivers.documents import ROOT
from tests.drivers.worker_world import deployed_environment
from tests.servers.processes import free_port
from tests.servers.runtime_api import RuntimeApi, serve_runtime_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer

FOLDER = Path(os.environ.get("WEB_ADAPTER_DIR", ROOT / ".build" / "web-adapter"))
ADAPTER = FOLDER / "bin" / "lambda-adapter"
EVENT = json.loads((ROOT / "events" / "stream.json").read_text())

pytestmark = pytest.mark.skipif(not ADAPTER.exists(), reason="no adapter here: sh .ci/install_web_adapter.sh")


@pytest.fixture
def variables(root: Root) -> dict[str, str]:
    """The function's environment as deployed, but for the port and the address of the pool's keys."""
    stack = root.stack
    deployed = deployed_environment(root, "stream")
    assert deployed.items() >= WEB_ADAPTER_SETTINGS.items()
    return {
        **deployed,
        "AWS_LWA_PORT": str(free_port()),
        "JWKS_URL": f"{stack.endpoint_url}/{stack.outputs['UserPoolId']}/.well-known/jwks.json",
        "LAMBDA_TASK_ROOT": str(ROOT / "functions" / "stream"),
        "_HANDLER": "run.sh",
        "AWS_LAMBDA_FUNCTION_NAME": "stream",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
    }


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with serve_runtime_api() as served:
        yield served
        assert served.errors == []


@pytest.fixture
def start(api: RuntimeApi, variables: dict[str, str]) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts ``adapter`` or ``function`` as the platform does; both end with the test."""
    where = {**variables, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}"}
    programs = {
        "adapter": [str(ADAPTER)],
        # the layer's bootstrap runs nothing else
        "function": [f"{variables['LAMBDA_TASK_ROOT']}/{variables['_HANDLER']}"],
    }
    with ExitStack() as running:

        def begin(name: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(programs[name], env=where, cwd="/", start_new_session=True)
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield begin


@pytest.fixture
def served(api: RuntimeApi, start: Callable[[str], subprocess.Popen[bytes]]) -> RuntimeApi:
    start("adapter")
    start("function")
    assert api.ready.wait(60)
    return api


def event(person: Person, chat_id: str, **headers: str) -> dict[str, Any]:
    path = f"/v1/chats/{chat_id}/events"
    context = {**EVENT["requestContext"], "path": f"/live{path}"}
    own = {"Accept": "text/event-stream", "Authorization": person.http.headers["authorization"], **headers}
    many = {name: [value] for name, value in own.items()}
    return {
        **EVENT,
        "path": path,
        "headers": own,
        "multiValueHeaders": many,
        "pathParameters": {"chat_id": chat_id},
        "requestContext": context,
    }


def leases(root: Root, person: Person) -> Mapping[str, Any]:
    key = {"pk": f"LEASE#{person.id}", "sk": "STREAMS"}
    item = get(root.client("dynamodb"), root.settings.cache_table, key)
    return dict(item["leases"]) if item else {}


def test_no_invocation_is_taken_before_the_app_answers(
    api: RuntimeApi, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    start("adapter")
    assert api.registered.wait(60)
    assert not api.ready.is_set()
    start("function")
    assert api.ready.wait(60)


def test_events_are_passed_on_as_they_come(
    served: RuntimeApi, ann: Person, script: Script, tools: ToolServer
) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("The answer.")
    chat_id = ann.start(script.question())["chat_id"]
    answer = served.invoke(event(ann, chat_id))
    begun = answer.until(
        b"event: tool_calls_start"
    )  # the chat waits for its tool, so the answer cannot be whole
    assert b"event: done" not in begun
    tools.gate(script.marker).released.set()
    prelude, body = answer.whole()
    assert prelude["statusCode"] == 200
    assert prelude["headers"]["content-type"] == "text/event-stream; charset=utf-8"
    assert "no-cache" in prelude["headers"]["cache-control"]
    assert body.startswith(HEARTBEAT)
    events = [event for event in whole_events(body) if event.data]
    assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
    assert events[-1].event == "done"


def test_a_reader_resumes_and_refusals_are_json(served: RuntimeApi, ann: Person, script: Script) -> None:
    script.says("The answer.")
    chat_id = ann.ask(script.question())["chat_id"]
    prelude, body = served.invoke(event(ann, chat_id, **{"Last-Event-ID": "2"})).whole()
    assert prelude["statusCode"] == 200
    assert next(int(event.id) for event in whole_events(body) if event.data) == 3
    for number, status, code in ((chat_id, 401, "unauthorized"), ("ch_none", 404, "not_found")):
        token = {"Authorization": "Bearer x"} if status == 401 else {}
        prelude, body = served.invoke(event(ann, number, **token)).whole()
        assert (prelude["statusCode"], json.loads(body)["error"]["code"]) == (status, code)
        assert prelude["headers"]["content-type"] == "application/json"


def test_a_stream_that_the_platform_breaks_off_gives_its_lease_back(
    api: RuntimeApi,
    start: Callable[[str], subprocess.Popen[bytes]],
    root: Root,
    ann: Person,
    script: Script,
    tools: ToolServer,
) -> None:
    """The adapter ends then, and with it the instance; the next one serves the rest."""
    adapter = start("adapter")
    start("function")
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("The answer.")
    chat_id = ann.start(script.question())["chat_id"]
    api.invoke(event(ann, chat_id), hang_up=HEARTBEAT).until(HEARTBEAT)
    wait_for(lambda: not leases(root, ann))
    assert adapter.wait(60) == 1
    start("adapter")
    answer = api.invoke(event(ann, chat_id))
    answer.until(b"event: tool_calls_start")
    assert len(leases(root, ann)) == 1
    tools.gate(script.marker).released.set()
    prelude, body = answer.whole()
    assert prelude["statusCode"] == 200
    assert b"event: done" in body
