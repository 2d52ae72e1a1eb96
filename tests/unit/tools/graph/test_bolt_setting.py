"""Which engine is chosen, which addresses are valid, and the error if its server is unavailable."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.settings import Settings
from dualtrack.tools.graph import opening
from dualtrack.tools.graph.bolt_library import BoltLibrary
from dualtrack.tools.graph.dialects import NEO4J
from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.names import BadArgumentError, quoted
from dualtrack.tools.graph.settings import checked_address

from tests.drivers import graph
from tests.drivers.corpus_world import CorpusWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger("graph")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which no connection is taken."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"bolt://127.0.0.1:{held.getsockname()[1]}"


def test_a_server_that_cannot_be_reached_is_an_error_result(nobody: str) -> None:
    library = BoltLibrary(nobody, "neo4j", lambda: "password", LOG)
    for tool, arguments in (
        ("get_schema", {}),
        ("find_node", {"name": "x"}),
        ("run_query", {"query": "RETURN 1"}),
    ):
        result = graph.run(library.needs(), tool, **arguments)
        assert result.is_error
        assert (
            result.content
            == "Tool execution failed: the graph's server cannot be reached (ServiceUnavailable)."
        )
    library.close()


def test_the_environment_chooses(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CorpusWorld(corpus="graph").stores().corpora
    embedded = opening.open_graph(Settings(), store, LOG)()
    assert (embedded.problem, embedded.dialect.patterns) == ("", True)
    asked: list[str] = []

    def secret(name: str) -> str:
        asked.append(name)
        return ""

    monkeypatch.setattr(opening, "secret", secret)
    settings = Settings(
        dualtrack_graph_engine="bolt", dualtrack_graph_url=nobody, graph_secret="/dualtrack-local/graph"
    )
    server = opening.open_graph(settings, store, LOG)()
    server.engine.driver.close()  # type: ignore[attr-defined]
    assert server.dialect is NEO4J
    assert server.problem
    assert asked == ["/dualtrack-local/graph"]


PROGRAM = """
import json, logging, sys
from dualtrack.settings import Settings
from dualtrack.tools.graph.opening import open_graph
open_graph(Settings(dualtrack_graph_engine={engine!r}, dualtrack_graph_url="bolt://127.0.0.1:9"), None, logging)
print(json.dumps("neo4j" in sys.modules))
"""


@pytest.mark.parametrize(("engine", "loaded"), [("", False), ("ladybug", False), ("bolt", True)])
def test_the_driver_is_loaded_only_if_it_is_chosen(engine: str, *, loaded: bool) -> None:
    program = [sys.executable, "-c", PROGRAM.format(engine=engine)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is loaded


ON_A_SERVER = Settings(dualtrack_graph_engine="bolt")


@pytest.mark.parametrize(
    "address",
    [
        "neo4j+s://0123.databases.neo4j.io", "bolt+s://graph.example.org:7687", "bolt://localhost:7687",
        "neo4j://127.0.0.1", "bolt://[::1]:7687",
    ],
)  # fmt: skip
def test_an_encrypted_or_local_address_is_accepted(address: str) -> None:
    assert checked_address(address, ON_A_SERVER) == address


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "must be an address such as"),
        ("https://graph.example.org", "must be an address such as"),
        ("bolt+ssc://graph.example.org", "must be an address such as"),  # accepts any certificate
        ("neo4j+s://", "must be an address such as"),
        ("bolt://graph.example.org", "use bolt\\+s://"),
        ("neo4j://127.0.0.1.example.org", "use neo4j\\+s://"),
        ("bolt+s://neo4j:word@graph.example.org", "must not contain a user or a password"),
    ],
)
def test_any_other_address_is_refused(address: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked_address(address, ON_A_SERVER)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("RETURN md5('a')", "there is no function 'md5' here"),
        ("RETURN apoc('a')", "there is no function"),
        ("RETURN 'a' =~ '(a+)+b'", "there is no =~ here"),
        ("MATCH (`a\\u0060) DELETE (n`) RETURN 1", "has a backslash"),
    ],
)
def test_queries_that_the_servers_guard_refuses(query: str, words: str) -> None:
    with pytest.raises(QueryFailed, match=words):
        guarded(query, {}, NEO4J)


def test_names_of_functions_depend_on_the_engine() -> None:
    query = "MATCH (n)-[r]->(m) RETURN type(r), lower(n.name)"
    texts: list[Any] = [guarded(query, {})[0], guarded(query, {}, NEO4J)[0]]
    assert ["label (" in texts[0], "type (" in texts[1], "toLower (" in texts[1]] == [True, True, True]


def test_a_backslash_is_in_no_name_of_a_query() -> None:
    with pytest.raises(BadArgumentError):
        quoted("a\\u0060b")
