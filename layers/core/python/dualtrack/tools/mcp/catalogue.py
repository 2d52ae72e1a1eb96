"""The stored catalogue of MCP tools: written by the github function, read by ``turn`` and ``api``.

It has two parts (storage/cache.py):

- versions: the tools of a server as they were listed. A version is the hash of its content, so it never changes, and a
  chat can pin it for all its turns.
- listings: each server's current version, and when it was listed.

A server that cannot be listed keeps its last version until that expires; then its tools are not offered, which is never
an error (DESIGN 5).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, freeze
from dualtrack.tool import MCP, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.storage.cache import CacheStore

STALE_AFTER: Final = 6 * 3600
"""Seconds for which a listing is valid; the schedule renews it every hour."""

KEEP_VERSION: Final = 7 * 86_400
"""Seconds for which a version is kept after its last listing; a chat that pinned it lives 15 minutes."""

MAX_STORED: Final = 350_000
"""Maximum compressed bytes of a version; a DynamoDB item has at most 400 KB."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools on offer. ``version`` identifies them (``""`` for none) and can be pinned."""

    version: str = ""
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's version and when it was listed, in epoch seconds."""

    server: str
    version: str
    listed_at: int


class CatalogueTooLarge(ValueError):
    """A server lists more than fits in an item; the configuration must name fewer tools."""


def load_catalogue(cache: CacheStore, now: float, *, version: str | None = None) -> Catalogue:
    """The tools on offer now, or those of a pinned ``version``.

    Reads the pointer and, once per process, the version of each server.
    """
    versions = tuple(filter(None, version.split("+"))) if version is not None else _fresh(cache, now)
    readable = [
        (server_version, tools)
        for server_version in versions
        if (tools := _tools_of(cache, server_version)) is not None
    ]
    tools = tuple(tool for _, tools in readable for tool in tools)
    return Catalogue("+".join(server_version for server_version, _ in readable), tools)


def load_listings(cache: CacheStore) -> tuple[Listing, ...]:
    """Each server's listing from the pointer, stale or not."""
    return tuple(Listing(**entry) for entry in cache.listings())


def store_version(cache: CacheStore, tools: Sequence[ToolSpec], now: float) -> str:
    """Store the tools of a server under the hash of their content. Returns the version."""
    content = dumps([_plain(tool) for tool in tools]).encode()
    version = hashlib.sha256(content).hexdigest()[:32]
    body = zlib.compress(content, 9)
    if len(body) > MAX_STORED:
        raise CatalogueTooLarge(f"{len(tools)} tools take {len(body)} bytes, at most {MAX_STORED} fit.")
    cache.save_tools(version, body, int(now) + KEEP_VERSION)
    return version


def store_listings(cache: CacheStore, listings: Sequence[Listing]) -> None:
    """Make these the current ones."""
    cache.save_listings([asdict(listing) for listing in listings])


def is_fresh(listing: Listing, now: float) -> bool:
    """Whether a listing is still valid."""
    return now - listing.listed_at < STALE_AFTER


def find_tool(catalogue: Catalogue, name: str) -> ToolSpec | None:
    """The tool with this name, or None."""
    return next((tool for tool in catalogue.tools if tool.name == name), None)


def _fresh(cache: CacheStore, now: float) -> tuple[str, ...]:
    return tuple(listing.version for listing in load_listings(cache) if is_fresh(listing, now))


# Content-addressed, so an entry can never be wrong; bounded, because a process may live for hours.
_DECODED: Final[dict[str, tuple[ToolSpec, ...]]] = {}
_MAX_DECODED: Final = 32


def _tools_of(cache: CacheStore, version: str) -> tuple[ToolSpec, ...] | None:
    if version not in _DECODED:
        body = cache.tools(version)
        if body is None:
            return None
        if len(_DECODED) >= _MAX_DECODED:
            _DECODED.clear()
        _DECODED[version] = tuple(_spec(entry) for entry in json.loads(zlib.decompress(body)))
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
