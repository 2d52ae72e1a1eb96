"""Every function serves whole chats with only its own layers, as on AWS (tests/drivers/own_layers.py)."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import httpx
import pytest
from dualtrack_stack import layers
from httpx_sse import connect_sse

from tests.clients.stack_client import PATIENCE
from tests.drivers.crash_matrix import Case, judge
from tests.drivers.crash_world import UNKNOWN
from tests.drivers.faults import Fault, Site
from tests.drivers.own_layers import MODULE, alone, own_path, zygotes_alone
from tests.drivers.worker_world import (
    SCENARIOS,
    Ground,
    WorkerScenario,
    WorkerWorld,
    deployed_environment,
    ground,
)
from tests.drivers.zygote import HANDLERS
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.memory.records import ToolCallDetail
    from dualtrack.storage.chats import Chat

IMPORTS = "import os, sys; sys.path += sys.argv.pop(1).split(os.pathsep); __import__(sys.argv[1])"
NOTHING = Fault(Site("", "", "", ""), "nothing")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def own_ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A deployed stack whose functions have only their own layers."""
    try:
        for function in (*HANDLERS, "stream"):
            own_path(function)
    except layers.NoPackageIndex as problem:
        pytest.skip(f"no package index to build the layers from: {problem}")
    with ground(tmp_path_factory.mktemp("own"), zygotes_alone) as world_ground:
        yield world_ground


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_chats_run_with_only_the_functions_layers(own_ground: Ground, scenario: WorkerScenario) -> None:
    """Documentation search, MCP tools under a GitHub connection, the catalogue's refresh, an in-house tool, summaries,
    abort, sweep, reset: a missing package is detected here, wherever it is imported.
    """
    world = WorkerWorld(scenario, ground=own_ground)
    world.run()
    assert judge(world, Case(scenario, NOTHING)) == []
    failed = {result.tool for chat in world.chats() for result in _errors(world, chat)}
    # a tool that cannot be imported would be an error result, and the chat would continue
    assert failed <= {UNKNOWN.tool}


def _errors(world: WorkerWorld, chat: Chat) -> Iterator[ToolCallDetail]:
    records = world.look().history.query_records(chat.user, chat.conversation_id, chat.query)
    return (record.call for record in records if record.call and record.call.is_error)


def test_the_stream_serves_a_chat_with_only_its_layers(own_ground: Ground) -> None:
    """It is started by the command of ``run.sh``."""
    world = WorkerWorld(SCENARIOS[0], ground=own_ground)
    person = own_ground.root.stack.token("streamed")
    world.user = person.user_id
    world.run()
    (chat,) = world.chats()
    with _stream(own_ground) as url, httpx.Client(trust_env=False, timeout=PATIENCE) as http:
        headers = {"Authorization": f"Bearer {person.token}"}
        with connect_sse(http, "GET", f"{url}/v1/chats/{chat.chat_id}/events", headers=headers) as source:
            kinds = [event.event for event in source.iter_sse()]
    assert kinds[-1] == "done"
    assert len(kinds) > 1


@pytest.mark.parametrize(
    ("function", "module", "finds"),
    [
        ("turn", "jsonschema", True),
        ("turn", "numpy", False),
        ("tool", "jsonschema", False),
        ("abort", "anthropic", False),
        ("api", "boto3", True),
        ("api", "pytest", False),
        ("stream", "pydantic", True),
    ],
)
def test_a_function_imports_only_its_own_packages(
    own_ground: Ground, function: str, module: str, finds: bool
) -> None:
    """Without this the other tests of this module would prove nothing."""
    done = subprocess.run([*alone(function, IMPORTS), module], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is finds, done.stderr
    assert finds or f"No module named '{module}'" in done.stderr


@contextlib.contextmanager
def _stream(own_ground: Ground) -> Iterator[str]:
    """The address of the function `stream`, with its deployed environment and role."""
    root, port = own_ground.root, free_port()
    environment = deployed_environment(root, "stream")
    # the pool's keys are the emulator's
    environment["JWKS_URL"] = (
        f"{root.stack.endpoint_url}/{root.stack.outputs['UserPoolId']}/.well-known/jwks.json"
    )
    server = [
        *alone("stream", MODULE),
        "uvicorn",
        "--factory",
        "app:app",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with subprocess.Popen(server, env=environment) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while not _is_open(port):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
