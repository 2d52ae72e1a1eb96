"""Our MCP client against third-party software: npm's reference server and MCP's conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dualtrack.frozen import freeze
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.specs import specs_of
from dualtrack_stack.node import node

from tests.clients.stack_client import PATIENCE
from tests.drivers.node import npm_script
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tool_values import ToolResult

ROOT = Path(__file__).parents[2]
START_SECONDS = 30

SCENARIOS = {
    "initialize": "2025-11-25",
    "sse-retry": "2025-11-25",
    "tools_call": "2026-07-28",
    "request-metadata": "2026-07-28",
    "http-standard-headers": "2026-07-28",
    "http-custom-headers": "2026-07-28",
    "http-invalid-tool-headers": "2026-07-28",
    "json-schema-ref-no-deref": "2026-07-28",
    "json-schema-2020-12-preservation": "2026-07-28",
}
"""The client scenarios for a client that lists and calls tools with a fixed token.

Left out: ``auth/*`` (no OAuth flow: tokens come from the connection), elicitation and
``sep-2322-client-request-state`` (a function cannot ask the user).
"""


@pytest.fixture(scope="module")
def everything() -> Iterator[McpServer]:
    script = npm_script("@modelcontextprotocol/server-everything", "dist/index.js")
    port = free_port()
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    process = subprocess.Popen(
        [node(), str(script), "streamableHttp"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/mcp", process)
        yield McpServer("everything", f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except urllib.error.HTTPError as answer:
            answer.close()
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("server-everything did not start")


def called(server: McpServer, tool: str, arguments: dict[str, object]) -> ToolResult:
    client = McpClient(seconds=20)
    specs = {spec.remote_name: spec for spec in specs_of(server, client.list_tools(server, None).tools).tools}
    return client.call_tool(server, specs[tool], freeze(arguments), None)


def test_the_reference_server_lists_and_answers(everything: McpServer) -> None:
    assert called(everything, "echo", {"message": "hello"}).content == "Echo: hello"
    assert "5" in called(everything, "get-sum", {"a": 2, "b": 3}).content


def test_its_images_resources_links_and_structured_content(everything: McpServer) -> None:
    (image,) = called(everything, "get-tiny-image", {}).media
    assert image.media_type == "image/png"
    links = called(everything, "get-resource-links", {"count": 3}).content
    assert links.count("demo://resource/") == 3
    reference = called(everything, "get-resource-reference", {"resourceType": "Text", "resourceId": 1})
    assert "demo://resource/" in reference.content
    structured = called(everything, "get-structured-content", {"location": "Chicago"}).content
    assert structured.count("temperature") == 1


def test_its_errors_are_error_results(everything: McpServer) -> None:
    refused = called(everything, "get-sum", {"a": "two", "b": 3})
    assert refused.is_error


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(scenario: str) -> None:
    script = npm_script("@modelcontextprotocol/conformance", "dist/index.js")
    command = f"{sys.executable} -m tests.clients.conformance_client"
    options = ["--command", command, "--scenario", scenario, "--spec-version", SCENARIOS[scenario]]
    run = subprocess.run(
        [node(), str(script), "client", *options],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT / 'infra'}:{ROOT / 'layers/core/python'}",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
