"""The stored catalogue of MCP tools: written by the github function, read by ``turn`` and ``api``.

Two kinds of items, both under pk ``mcp#catalogue`` of the cache table:

- ``v#<version>``: the tools of one server as they were listed. The version is the hash of the
  content, so the item never changes and a chat can pin it for all its turns.
- ``current``: which version each server has now and until when that may be believed.

A server that cannot be listed keeps its last version until that is stale; a stale or missing one
means that its tools are not offered, never a failure (DESIGN 5).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, freeze
from dualtrack.storage.dynamo import get, put, transact
from dualtrack.tool import MCP, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

CATALOGUE: Final = "mcp#catalogue"
CURRENT: Final = "current"
STALE_AFTER: Final = 6 * 3600
"""Seconds for which a listing may be believed; the schedule renews it every hour."""

KEEP_VERSION: Final = 7 * 86_400
"""Seconds for which a version outlives its last listing; a chat that pinned it lives 15 minutes."""

MAX_STORED: Final = 350_000
"""Bytes of one version, compressed: an item of DynamoDB holds 400 KB in all."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools on offer. ``version`` names exactly these (``""`` for none) and can be pinned."""

    version: str = ""
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """One server's version and when it was listed, in epoch seconds."""

    server: str
    version: str
    listed_at: int


class CatalogueTooLarge(ValueError):  # noqa: N818 - says what is wrong
    """A server lists more than one item can hold; the configuration must name fewer tools."""


def load_catalogue(
    client: DynamoDBClient, table: str, now: float, *, version: str | None = None
) -> Catalogue:
    """The tools on offer now, or those of a pinned ``version``.

    One read of the pointer and, once per process and version, one read per server.
    """
    versions = tuple(filter(None, version.split("+"))) if version is not None else _fresh(client, table, now)
    found = [(one, tools) for one in versions if (tools := _tools_of(client, table, one)) is not None]
    tools = tuple(tool for _, tools in found for tool in tools)
    return Catalogue("+".join(one for one, _ in found), tools)


def load_listings(client: DynamoDBClient, table: str) -> tuple[Listing, ...]:
    """What the pointer says about each server, stale or not."""
    item = get(client, table, {"pk": CATALOGUE, "sk": CURRENT}, consistent=False)
    return tuple(Listing(**entry) for entry in item["servers"]) if item else ()


def store_version(client: DynamoDBClient, table: str, tools: Sequence[ToolSpec], now: float) -> str:
    """Store the tools of one server under the hash of their content; returns the version."""
    content = dumps([_plain(tool) for tool in tools]).encode()
    version = hashlib.sha256(content).hexdigest()[:32]
    body = zlib.compress(content, 9)
    if len(body) > MAX_STORED:
        raise CatalogueTooLarge(f"{len(tools)} tools take {len(body)} bytes, at most {MAX_STORED} fit.")
    item = {"pk": CATALOGUE, "sk": f"v#{version}", "tools": body, "ttl": int(now) + KEEP_VERSION}
    transact(client, [put("version", table, item)])
    return version


def store_listings(client: DynamoDBClient, table: str, listings: Sequence[Listing]) -> None:
    """Make these the current ones."""
    servers = [{"server": one.server, "version": one.version, "listed_at": one.listed_at} for one in listings]
    transact(client, [put("current", table, {"pk": CATALOGUE, "sk": CURRENT, "servers": servers})])


def is_fresh(listing: Listing, now: float) -> bool:
    """Whether a listing may still be believed."""
    return now - listing.listed_at < STALE_AFTER


def find_tool(catalogue: Catalogue, name: str) -> ToolSpec | None:
    """The tool that is offered under this name, or None."""
    return next((tool for tool in catalogue.tools if tool.name == name), None)


def _fresh(client: DynamoDBClient, table: str, now: float) -> tuple[str, ...]:
    return tuple(one.version for one in load_listings(client, table) if is_fresh(one, now))


# Content-addressed, so an entry can never be wrong; bounded, because a process may live for hours.
_DECODED: Final[dict[str, tuple[ToolSpec, ...]]] = {}
_MAX_DECODED: Final = 32


def _tools_of(client: DynamoDBClient, table: str, version: str) -> tuple[ToolSpec, ...] | None:
    if version not in _DECODED:
        item = get(client, table, {"pk": CATALOGUE, "sk": f"v#{version}"})
        if item is None:
            return None
        if len(_DECODED) >= _MAX_DECODED:
            _DECODED.clear()
        _DECODED[version] = tuple(_spec(entry) for entry in json.loads(zlib.decompress(item["tools"])))
    return _DECODED[version]


def _plain(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "price_class": tool.price_class,
        "repeatable": tool.repeatable,
        "server": tool.server,
        "remote_name": tool.remote_name,
    }


def _spec(entry: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(**{**entry, "input_schema": freeze(entry["input_schema"])}, kind=MCP)
