"""The search function: its environment, its secrets, its one tool."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from dualtrack.frozen import freeze
from dualtrack.models.receipt_data import SideCalls, ToolSideCalls
from dualtrack.models.turn import Usage
from dualtrack.tool_values import ToolResult
from dualtrack.tools.documentation.dependencies import dependencies_for, kept_dependencies
from dualtrack.tools.running import Running
from moto import mock_aws
from starlette.responses import Response

from tests.drivers.documentation_world import QUESTION, World, documentation_world

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDLER = Path(__file__).parents[4] / "functions" / "search" / "handler.py"


@pytest.fixture
def world() -> Iterator[World]:
    with documentation_world() as new_world:
        yield new_world


@pytest.fixture
def function(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The handler's module as Lambda loads it, with the world's addresses in its environment."""
    environment = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "POWERTOOLS_SERVICE_NAME": "search",
        "STAGE": "prod",
        "CACHE_TABLE": "cache",
        "CONTEXT7_BASE_URL": world.context7.url,
        "CONTEXT7_SECRET": "context7",
        "VOYAGE_BASE_URL": world.voyage.url,
        "VOYAGE_SECRET": "voyage",
        "ANTHROPIC_BASE_URL": world.claude.url,
        "ANTHROPIC_SECRET": "anthropic",
        "DUALTRACK_EMBEDDING_MODEL": "voyage-test-model",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        secrets = boto3.client("secretsmanager", "us-east-1")
        for name, value in (("context7", "none"), ("voyage", "pa-test"), ("anthropic", "sk-test")):
            secrets.create_secret(Name=name, SecretString=value)
        clear_caches()  # type: ignore[no-untyped-call]
        kept_dependencies.cache_clear()
        spec = importlib.util.spec_from_file_location("search_handler", HANDLER)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        if kept_dependencies.cache_info().currsize:
            dependencies_for(module._needs()).close()
        clear_caches()  # type: ignore[no-untyped-call]


def running(tool: str) -> Running:
    of: Any = SimpleNamespace(chat_id="ch_1", tool=tool, input=freeze({"query": QUESTION}), spec={})
    return Running("ann", "cv_1", of, of)


def test_a_call_is_searched_with_the_clients_of_the_environment(function: Any, world: World) -> None:
    first = function.execute(running("retrieve_documentation"))
    function.execute(running("retrieve_documentation"))

    assert "oauth.setup()" in first.content
    assert {body["model"] for body in world.voyage.requests} == {"voyage-test-model"}
    assert kept_dependencies.cache_info().misses == 1


def written(text: str) -> list[tuple[str, dict[str, str], float]]:
    """The metrics among log lines: name, dimensions, value."""
    metrics = []
    for line in text.splitlines():
        entry = json.loads(line) if line.startswith('{"_aws"') else {}
        for directive in entry.get("_aws", {}).get("CloudWatchMetrics", []):
            (names,) = directive["Dimensions"]
            dimensions = {name: entry[name] for name in names}
            metrics += [
                (metric["Name"], dimensions, entry[metric["Name"]][0]) for metric in directive["Metrics"]
            ]
    return metrics


def test_missing_parts_are_counted_with_the_dollars(
    function: Any, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.voyage.always = Response(status_code=500)
    result = function.execute(running("retrieve_documentation"))
    function._count(
        result, [ToolSideCalls("embedding", SideCalls("", "voyage-3-large", 0.1, 1, 1, Usage(1_000_000)))]
    )
    counted = {"service": "search", "stage": "prod"}
    assert written(capsys.readouterr().out) == [
        ("DegradedSearches", {**counted, "part": "meaning"}, 1),
        ("DegradedSearches", counted, 1),
        ("ModelDollars", counted, pytest.approx(0.18)),
    ]
    function._count(ToolResult("All of it."), [])
    assert written(capsys.readouterr().out) == []


def test_another_tool_is_unknown(function: Any) -> None:
    assert function.execute(running("retrieve_everything")).content == "Unknown tool: retrieve_everything"
