"""GitHub's MCP server in a stage: deployed only if its image is set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.drivers.templates import WITH_MCP, Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def with_server(assembly: Callable[..., Path]) -> Stage:
    return Stage("prod", assembly("prod", WITH_MCP))


def test_the_github_function_alone_moves_into_the_network(with_server: Stage) -> None:
    functions = with_server.resources("Chat", "AWS::Lambda::Function")
    inside = {key for key, function in functions.items() if "VpcConfig" in function}
    assert {key[: len("Mcp")] for key in inside} == {"Mcp"}
    assert len(inside) == 1


def test_only_what_calls_servers_gets_their_address(with_server: Stage) -> None:
    functions = with_server.resources("Chat", "AWS::Lambda::Function")
    servers = {
        key.split("Function")[0]: json.loads(function["Environment"]["Variables"]["MCP_SERVERS"])
        for key, function in functions.items()
        if "MCP_SERVERS" in function["Environment"]["Variables"]
    }
    assert set(servers) == {"Mcp"}
    assert all(listed[0]["name"] == "github" for listed in servers.values())


def test_cdk_nag_finds_nothing_in_the_app(with_server: Stage) -> None:
    report = json.loads((with_server.folder / "validation-report.json").read_text())
    assert {plugin["conclusion"] for plugin in report["pluginReports"]} == {"success"}


def test_without_an_image_there_is_no_network(prod: Stage) -> None:
    assert not (prod.folder / "Mcp.template.json").exists()
    assert not any("VpcConfig" in f for f in prod.resources("Chat", "AWS::Lambda::Function").values())
