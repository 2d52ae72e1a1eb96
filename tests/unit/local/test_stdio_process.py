"""A server over standard input and output that does what servers do: it dies, hangs, floods, chatters."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local import stdio_process
from dualtrack_stack.local.stdio_process import Away, StdioProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SCRIPT = Path(__file__).parents[2] / "servers" / "stdio_mcp.py"
CALL = {"name": "act", "arguments": {}}


def with_server(behaviour: str, act: Callable[[StdioProcess], Awaitable[Any]], **more: Any) -> Any:
    """What a caller finds; the process is ended behind it."""

    async def run() -> Any:
        command = [sys.executable, str(SCRIPT), *behaviour.split()]
        server = StdioProcess(
            "one", more.pop("command", command), {"PATH": os.environ["PATH"]}, str(Path.cwd())
        )
        try:
            return await act(server)
        finally:
            await server.end()

    return asyncio.run(run())


async def added(server: StdioProcess) -> Any:
    answer = await server.ask("tools/call", {"name": "add", "arguments": {"numbers": [1, 2]}})
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("behaviour", ["", "chatters"])
def test_answers_are_found_among_whatever_else_is_written(behaviour: str) -> None:
    async def act(server: StdioProcess) -> Any:
        hello = await server.initialized()
        listed = await server.ask("tools/list", None)
        both = await asyncio.gather(added(server), added(server))
        return hello["serverInfo"]["name"], len(listed["result"]["tools"]), both

    assert with_server(behaviour, act) == ("stdio", 3, ["3", "3"])


def test_an_error_is_passed_on() -> None:
    answer = with_server("", lambda server: server.ask("resources/list", {}))
    assert answer == {"error": {"code": -32601, "message": "no such method"}}


def test_a_server_that_dies_fails_its_calls_at_once_and_is_started_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(stdio_process, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    async def act(server: StdioProcess) -> list[str]:
        found = [await added(server)]
        for seconds in (0, 0, 5):
            clock[0] += seconds
            try:
                await server.ask("tools/call", CALL)
            except Away as away:
                found.append(str(away))
        clock[0] += 60
        return [*found, await added(server)]

    assert with_server("dies", act) == [
        "3",
        "it has ended with code 3",
        "one: it has ended with code 3; it is started again in 1 s",
        "it has ended with code 3",
        "3",
    ]


def test_a_server_that_hangs_is_left_behind_and_answers_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_process, "CALL_SECONDS", 0.2)

    async def act(server: StdioProcess) -> str:
        await server.initialized()
        with pytest.raises(Away, match="did not answer within 0 s"):
            await server.ask("tools/call", CALL)
        return "left"

    assert with_server("hangs", act) == "left"


def test_a_line_without_end_ends_the_server() -> None:
    async def act(server: StdioProcess) -> None:
        with pytest.raises(Away, match="a line of more than 16 MB"):
            await server.ask("tools/call", CALL)

    with_server("writes a line without end", act)


def test_of_what_it_writes_to_its_errors_a_megabyte_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with_server("floods its errors", lambda server: server.ask("tools/call", CALL))
    assert len(capsys.readouterr().err) == stdio_process.MAX_ERRORS


def test_what_it_has_started_ends_with_it() -> None:
    async def act(server: StdioProcess) -> int:
        await server.ask("tools/call", CALL)
        answer = await server.ask("tools/call", {"name": "surroundings", "arguments": {}})
        return int(json.loads(answer["result"]["content"][0]["text"])["pid"])

    pid = with_server("leaves a process", act)
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    assert not [line for line in listed.stdout.splitlines() if line.split()[0] == str(pid)]
    assert not [
        line for line in listed.stdout.splitlines() if line.endswith("sleep 600") and line.split()[1] == "1"
    ]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["no-such-program"], "there is no program no-such-program on this machine"),
        ([sys.executable, str(SCRIPT), "ends", "at", "once"], "it has ended with code 7"),
        (["cat"], "it refuses the handshake|did not answer"),
    ],
)
def test_what_does_not_begin_says_why(
    command: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_process, "START_SECONDS", 1.0)

    async def act(server: StdioProcess) -> None:
        with pytest.raises(Away, match=problem):
            await server.initialized()

    with_server("", act, command=command)
