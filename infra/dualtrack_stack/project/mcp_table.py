"""The tables ``[mcp.NAME]`` and ``[stage.NAME.mcp.NAME]`` of a project's file: MCP servers, each by its address or by a
command that starts it beside the local stack (docs/mcp.md)."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from dualtrack.tools.mcp.config import parse_entry
from pydantic import AfterValidator, Field

from dualtrack_stack.project.model import WrongTable
from dualtrack_stack.project.stdio_server import StdioServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.tools.mcp.config import McpServer

_OF_COMMANDS: Final = frozenset({"command", "env", "secrets"})
_NOT_OF_COMMANDS: Final = ("url", "auth", "headers", "handshake")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PLACEHOLDER: Final = "http://127.0.0.1/"
"""Stands for the address that a command's server gets when the local stack starts."""
_MOST_WORDS: Final = 100


def _table(table: dict[str, Any]) -> dict[str, Any]:
    """A table whose server has an address or a command. Its other fields are checked with its name."""
    if ("url" in table) == ("command" in table):
        raise ValueError("write either url, the server's address, or command, the words that start it")
    if "name" in table:
        raise ValueError("its name stands in the table's: leave name out")
    if "command" not in table:
        if wrong := sorted(_OF_COMMANDS & table.keys()):
            raise ValueError(f"{wrong[0]} belongs to a server by command: leave it out beside url")
        return table
    if wrong := [name for name in _NOT_OF_COMMANDS if name in table]:
        raise ValueError(f"{wrong[0]} belongs to a server by address: leave it out beside command")
    _check_command(table["command"], table.get("env", {}), table.get("secrets", []))
    return table


def _check_command(words: Any, env: Any, secrets: Any) -> None:
    if not _are_texts(words) or not words or not all(words):
        raise ValueError('command is a list of words, such as ["uvx", "mcp-server-time==2026.10.19"]')
    if len(words) > _MOST_WORDS or any("\0" in word for word in words):
        raise ValueError(f"command has at most {_MOST_WORDS} words, without NUL")
    if not isinstance(env, dict) or not _are_texts([*env.values()]):
        raise ValueError("env is a table of texts")
    if not _are_texts(secrets):
        raise ValueError("secrets is a list of names of variables")
    for name in (*env, *secrets):
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable: write letters, digits and _")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


McpTables = Annotated[dict[str, Annotated[dict[str, Any], AfterValidator(_table)]], Field(max_length=20)]


def by_address(tables: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entries of ``MCP_SERVERS``. Raises `WrongTable`."""
    entries = [{"name": name, **table} for name, table in tables.items() if "url" in table]
    for entry in entries:
        _parsed(entry)
    return entries


def by_command(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[StdioServer]:
    """The servers of the local stack. Raises `WrongTable`."""
    for name, table in tables.items():
        if "command" in table:
            entry = {key: value for key, value in table.items() if key not in _OF_COMMANDS}
            server = _parsed({"name": name, "url": _PLACEHOLDER, "handshake": True, **entry})
            env = MappingProxyType(dict(table.get("env", {})))
            yield StdioServer(server, tuple(table["command"]), env, tuple(table.get("secrets", ())))


def _parsed(entry: Mapping[str, Any]) -> McpServer:
    try:
        return parse_entry(entry)
    except ValueError as wrong:
        raise WrongTable("mcp", (str(entry["name"]),), str(wrong).rstrip(".")) from None
