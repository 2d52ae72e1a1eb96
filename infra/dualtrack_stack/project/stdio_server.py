"""An MCP server that speaks over its standard input and output."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.tools.mcp.config import McpServer

_RUNNERS: Final = MappingProxyType({"uvx": "==", "pipx": "==", "npx": "@", "bunx": "@"})
"""Programs that fetch a package and run it, and the sign before its version."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that speaks over its standard input and output: a process of the local stack. ``entry``: the server as
    the functions know it, but for its address; ``secrets``: variables of our own environment that it is given."""

    entry: McpServer
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    secrets: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The server's name, by which profiles know it."""
        return self.entry.name

    def note(self) -> str:
        """What is worth a word; empty if nothing is."""
        if not (package := _unpinned(self.command)):
            return ""
        return (
            f"the MCP server {self.name} runs whatever version of {package} is newest: write the one that you have tried"
            f" ({package}{_RUNNERS[self.command[0]]}1.2.3)"
        )


def _unpinned(command: tuple[str, ...]) -> str:
    """The package that a runner would fetch in whatever version is newest."""
    if not command or command[0] not in _RUNNERS:
        return ""
    sign, words = _RUNNERS[command[0]], [word for word in command[1:] if word != "run"]
    named = next((word for word in words if not word.startswith("-")), "")
    return "" if sign in named[1:] or "://" in named or named.startswith((".", "/")) else named
