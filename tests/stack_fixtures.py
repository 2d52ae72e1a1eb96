"""One deployed stack for all tests: the template that goes to AWS on the emulator, IAM enforced.

Its model is the offline one under a script, its MCP server is ours; both are configured by the settings that an
operator has. Tests share it, each with its own users, conversations and marker.

A pytest plugin, so that `tests/e2e` and `tests/plugins` have the same one. What a fixture needs is imported when it is
asked for: most tests need none of it.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root
    from tests.servers.tool_server import ToolServer
    from tests.servers.voyage import FakeVoyage

SMALL: Final[dict[str, Any]] = {
    "name": "small",
    "max_tokens": 1_000,
    "result_limit": 20_000,
    "context_tokens": 20_000,
    "track_tokens": 4_000,
    "history": {"policy": "dual_track", "summaries": "at_once"},
}


@pytest.fixture(scope="session")
def model() -> Iterator[OfflineModel]:
    """The model of the stack; it answers by its rules if no script matches. With ``DUALTRACK_TEST_PROVIDER=bedrock`` it
    is served as Bedrock's endpoint (docs/aws/bedrock.md).
    """
    from tests.servers.provider import serve_model

    with serve_model() as served:
        yield served


@pytest.fixture(scope="session")
def tools() -> Iterator[ToolServer]:
    """The MCP server whose tools the stack offers as ``kit_…``."""
    from tests.servers.tool_server import serve_tools

    with serve_tools() as served:
        yield served


@dataclass
class Documents:
    """The sample documents, served as by Context7, and a count of requests."""

    url: str = ""
    requests: int = 0


@pytest.fixture(scope="session")
def documents() -> Iterator[Documents]:
    """The documentation that the stack searches."""
    from dualtrack_stack.local.loopback import serve_in_thread
    from dualtrack_stack.local.sample_docs.server import create_app

    counted = Documents()
    app = create_app()

    async def count(scope: Any, receive: Any, send: Any) -> None:
        counted.requests += 1
        await app(scope, receive, send)

    with serve_in_thread(count) as counted.url:
        yield counted


@pytest.fixture(scope="session")
def voyage() -> Iterator[FakeVoyage]:
    """The stack's embeddings service, a strict fake."""
    from tests.clients.stack_client import KEYS
    from tests.servers.voyage import FakeVoyage, serve_voyage

    with serve_voyage(FakeVoyage(api_key=KEYS["VOYAGE_API_KEY"])) as served:
        yield served


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The deployment's own profiles: the assistant, which may write with the tests' tools; ``careful``, which asks
    before it does, and may put questions; ``small``, with small budgets and a call for each summary."""
    from dualtrack_stack.profiles import LIBRARY

    from tests.servers.tool_server import NAME

    careful = json.loads((LIBRARY / "assistant.json").read_text())
    assistant = careful | {"approval": {"allow": [f"{NAME}_*"]}}
    folder = tmp_path_factory.mktemp("profiles")
    careful |= {"name": "careful", "tools": [*careful["tools"], "ask_user"]}
    for profile in (assistant, assistant | SMALL, careful):
        (folder / f"{profile['name']}.json").write_text(json.dumps(profile))
    return folder


@pytest.fixture(scope="session")
def environment(
    model: OfflineModel, tools: ToolServer, documents: Documents, voyage: FakeVoyage, profiles: Path
) -> dict[str, str]:
    """The settings (CONTRACT 2) of the stack under test."""
    from tests.clients.stack_client import KEYS
    from tests.servers.provider import model_settings
    from tests.servers.tool_server import NAME

    servers = [{"name": NAME, "url": tools.url, "price_class": "other"}]
    return {
        **KEYS,
        **model_settings(model),
        "CONTEXT7_BASE_URL": documents.url,
        "VOYAGE_BASE_URL": voyage.url,
        "MCP_SERVERS": json.dumps(servers),
        "ALLOWED_ORIGINS": "https://chat.example.com",
        "DUALTRACK_PROFILES": str(profiles),
        "DUALTRACK_WEBHOOK_LOOPBACK": "on",
    }


@pytest.fixture(scope="session")
def root(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    """The stack, with its account's root credentials."""
    from dualtrack_stack.local.stack import LocalStack

    from tests.clients.stack_client import Root
    from tests.servers.tool_server import NAME

    state_dir = tmp_path_factory.mktemp("stack")
    with LocalStack(state_dir, environment=environment) as stack:
        root = Root(stack, state_dir)
        assert root.invoke("Mcp", {"action": "refresh"}) == {"servers": {NAME: "listed 10"}}
        yield root


@pytest.fixture
def someone(root: Root) -> Iterator[Callable[[], Person]]:
    """Makes new users; their running chats end with the test."""
    from tests.clients.stack_client import Person

    people: list[Person] = []

    def make() -> Person:
        person = Person(root.stack.url, root.stack.token(f"user-{uuid.uuid4().hex[:12]}"))
        people.append(person)
        return person

    yield make
    for person in people:
        person.close()


@pytest.fixture
def ann(someone: Callable[[], Person]) -> Person:
    """One user."""
    return someone()


@pytest.fixture
def script(model: OfflineModel) -> Script:
    """The test's script."""
    from tests.clients.script import Script

    return Script(model, f"marker-{uuid.uuid4().hex[:12]}")
