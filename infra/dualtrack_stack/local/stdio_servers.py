"""The MCP servers by command of a project, each behind a bridge (`dualtrack_stack.local.stdio_bridge`)."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.processes import Children
from dualtrack_stack.local.stdio_names import KEY_HEADER, PATH
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.tools.mcp.config import McpServer
    from dualtrack_stack.local.processes import Child
    from dualtrack_stack.project.stdio_server import StdioServer

HOST: Final = "127.0.0.1"
_READY_SECONDS: Final = 130.0
_LISTENS_SECONDS: Final = 30.0
_OF_EVERY_PROGRAM: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")
"""What of our environment a server gets: no key and no setting."""
_OF_BRIDGES: Final = (*_OF_EVERY_PROGRAM, "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Bridged:
    """A server at its address here."""

    server: McpServer
    port: int
    key: str
    bridge: Child

    def problem(self) -> str:
        """Wait until it has begun; why it has not, else nothing."""
        deadline = time.monotonic() + _LISTENS_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionError):
                return self._answer()
            if self.bridge.process.poll() is not None:
                break
            time.sleep(0.05)
        return f"{self.server.name}: its bridge does not answer"

    def _answer(self) -> str:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=_READY_SECONDS)
        try:
            connection.request("GET", "/ready", headers={KEY_HEADER: self.key})
            return str(json.loads(connection.getresponse().read())["problem"])
        except (TimeoutError, http.client.HTTPException, ValueError, KeyError):
            return f"{self.server.name}: its bridge does not answer"
        finally:
            connection.close()


def start_bridges(
    children: Children,
    servers: Sequence[StdioServer],
    port_of: Callable[[str], int],
    environment: Mapping[str, str],
    given: Mapping[str, str],
) -> Iterator[Bridged]:
    """Start a bridge for each. ``environment``: of the bridges; ``given``: where the servers' secrets are."""
    for one in servers:
        name, key = f"mcp-{one.name}", secrets.token_urlsafe(32)
        port = port_of(name)
        bridge = children.start(
            name, "dualtrack_stack.local.stdio_bridge", str(port), environment=environment
        )
        told = {
            "name": one.name,
            "command": one.command,
            "env": {**_bare(environment), **{name: given.get(name, "") for name in one.secrets}, **one.env},
            "cwd": str(project_root()),
            "key": key,
        }
        bridge.send(json.dumps(told).encode())
        headers = MappingProxyType({KEY_HEADER: key})
        server = replace(one.entry, url=f"http://{HOST}:{port}{PATH}", headers=headers)
        yield Bridged(server, port, key, bridge)


@contextlib.contextmanager
def running(
    servers: Sequence[StdioServer], port_of: Callable[[str], int], given: Mapping[str, str]
) -> Iterator[tuple[McpServer, ...]]:
    """The servers, for as long as it takes to ask them; ``given``: the environment. Raises ValueError for one that does
    not begin."""
    if not servers:
        yield ()
        return
    with tempfile.TemporaryDirectory() as folder:
        children = Children(Path(folder))
        environment = {name: given[name] for name in _OF_BRIDGES if name in given} | {"TMPDIR": folder}
        try:
            bridged = [*start_bridges(children, servers, port_of, environment, given)]
            if problems := [problem for one in bridged if (problem := one.problem())]:
                raise ValueError("\n".join(f"The MCP server {problem}." for problem in problems))
            yield tuple(one.server for one in bridged)
        finally:
            children.stop()


def missing_secrets(servers: Sequence[StdioServer], given: Mapping[str, str]) -> Iterator[str]:
    """A line for each that is not set."""
    for one in servers:
        for name in one.secrets:
            if not given.get(name):
                yield f"The secret {name} of the MCP server {one.name} is not set: give it in the environment"


def _bare(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in (*_OF_EVERY_PROGRAM, "TMPDIR") if name in environment}
