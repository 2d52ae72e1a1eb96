"""Servers that send too much, never end, hang or lie: each costs only its own tools, and little memory."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from dualtrack.frozen import freeze
from dualtrack.storage.cache import CacheStore
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.bounded import CALL, LISTING, Values
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.mcp.client import McpClient, Retries
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.refresh import refresh_catalogue
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table
from tests.servers.hostile_mcp import serve_hostile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.hostile_mcp import HostileServer

NOW = 1_800_000_000.0
FIND = ToolSpec("x_find", "", freeze({"type": "object"}), "mcp", "other", True, "x", "find")
SLACK = 4 * 1024 * 1024
"""What sockets may hold that nobody has read."""
MEGABYTES = 250
"""Of memory for all servers at once; each of the worst took 900 and more before."""

TOO_LARGE = (
    "endless-json", "endless-sse", "endless-events", "endless-error", "endless-redirect", "bomb-json", "bomb-sse",
    "bomb-in-bomb", "blocks-json", "blocks-sse",
)  # fmt: skip
OTHERWISE = {
    "blocks-utf-7": "protocol",
    "says-less": "protocol",
    "says-more": "down",
    "says-more-and-waits": "timeout",
    "hangs": "timeout",
    "hangs-in-a-stream": "timeout",
}
EXPECTED = {**dict.fromkeys(TOO_LARGE, "too_large"), **OTHERWISE}


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileServer]:
    with serve_hostile() as board:
        yield board


def client(seconds: float = 10.0) -> McpClient:
    return McpClient(seconds=seconds, retries=Retries(waits=()))


def server(hostile: HostileServer, path: str) -> McpServer:
    return McpServer("x", hostile.at(path))


def kind(path: str, act: Any) -> str:
    with pytest.raises(McpFailure) as failed:
        act()
    return failed.value.failure.kind


def seconds_for(path: str) -> float:
    """Only a server that hangs uses up its time."""
    return 2.0 if OTHERWISE.get(path) == "timeout" else 120.0


@pytest.mark.parametrize("path", EXPECTED)
def test_a_listing_ends_within_its_bounds(hostile: HostileServer, path: str) -> None:
    hostile.sent.clear()
    listing = client(seconds_for(path))
    assert kind(path, lambda: listing.list_tools(server(hostile, path), None)) == EXPECTED[path]
    if path.startswith("endless"):
        assert hostile.sent[path] < LISTING.bytes + SLACK


@pytest.mark.parametrize("path", EXPECTED)
def test_a_call_ends_within_its_bounds(hostile: HostileServer, path: str) -> None:
    hostile.sent.clear()
    calling = client(seconds_for(path))
    assert kind(path, lambda: calling.call_tool(server(hostile, path), FIND, {}, None)) == EXPECTED[path]
    if path.startswith("endless"):
        assert hostile.sent[path] < CALL.bytes + SLACK


@pytest.mark.parametrize("path", ["honest", "zipped-and-honest"])
def test_an_honest_server_is_heard(hostile: HostileServer, path: str) -> None:
    assert [tool.name for tool in client().list_tools(server(hostile, path), None).tools] == ["find"]
    assert client().call_tool(server(hostile, path), FIND, {}, None).content == "found"


def test_what_is_too_large_is_not_asked_for_again(hostile: HostileServer) -> None:
    hostile.asked.clear()
    with pytest.raises(McpFailure):
        McpClient().call_tool(server(hostile, "blocks-json"), FIND, {}, None)
    assert hostile.asked["blocks-json"] == 1


def test_all_at_once_cost_their_own_tools_alone(hostile: HostileServer) -> None:
    """Two of them hang only when both have been asked: the servers are asked at once."""
    module._DECODED.clear()
    paths = ["honest", "endless-json", "bomb-sse", "blocks-json", "hangs", "meet", "meet2", "says-less"]
    servers = tuple(McpServer(f"s{n}", hostile.at(path)) for n, path in enumerate(paths))
    with aws_in_process():
        dynamodb = boto3.client("dynamodb", "us-east-1")
        make_table(dynamodb, "cache")
        cache = CacheStore(dynamodb, "cache", lambda: NOW)
        done = refresh_catalogue(cache, servers, client(20.0), secret=lambda _: "", now=NOW)
        assert [tool.name for tool in load_catalogue(cache, NOW).tools] == ["s0_find"]
    assert not hostile.meeting.broken
    assert [server.outcome.removeprefix("failed: ") for server in done] == [
        "listed 1", "too_large", "too_large", "too_large", "timeout", "timeout", "timeout", "protocol",
    ]  # fmt: skip


def test_their_memory_is_bounded(hostile: HostileServer) -> None:
    """All servers listed and called in a process of its own, at once; its peak is compared with its start."""
    urls = [hostile.at(path) for path in EXPECTED if seconds_for(path) > 2]
    code = "import sys; from tests.unit.tools.mcp import test_hostile_servers as t; t.use(sys.argv[1])"
    finished = subprocess.run(
        [sys.executable, "-c", code, json.dumps(urls)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        timeout=240,
    )
    assert int(finished.stdout) < MEGABYTES


def use(urls: str) -> None:
    """Prints by how many MB the peak exceeds the memory at the start."""
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import suppress

    def peak() -> int:
        with Path("/proc/self/status").open() as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

    def ask(url: str) -> None:
        peer = McpServer("x", url)
        with suppress(McpFailure):
            client(60.0).list_tools(peer, None)
        with suppress(McpFailure):
            client(60.0).call_tool(peer, FIND, {}, None)

    ask("http://127.0.0.1:9/")
    before = peak()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, json.loads(urls)))
    print(peak() - before)


# ── counting without parsing ──────────────────────────────────────────────────────────────────────


def values_of(value: Any) -> int:
    """What is counted: arrays, objects, and the commas between their members."""
    if not isinstance(value, (dict, list)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(values_of(child) for child in inner)


JSONS = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\{[,\n\ud7ff'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='{",\\'), inner, max_size=4),
    max_leaves=12,
)


@given(JSONS, st.lists(st.integers(0, 200), max_size=4), st.sampled_from([None, 1]))
def test_structure_is_counted_wherever_the_pieces_end(
    value: Any, cuts: list[int], indent: int | None
) -> None:
    raw = json.dumps(value, indent=indent).encode()
    counter, places = Values(), [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    for begin, end in itertools.pairwise(places):
        counter.take(raw[begin:end])
    assert counter.count == values_of(value)


def test_a_comment_of_a_stream_hides_no_structure() -> None:
    counter = Values()
    for piece in (b': "\\', b"\ndata: [[],[]", b'\r: "\rdata: ,[]]\n'):
        counter.take(piece)
    assert counter.count == 6
