"""The stored catalogue of MCP tools: written by the function mcp, read by ``turn`` and ``api``.

It has two parts (storage/cache.py):

- versions: the tools of a server as they were listed, and those that were left out. A version is the hash of its
  content, so it never changes, and a chat can pin it for all its turns.
- listings: each server's current version, and when it was listed. Each is written by itself, so that neither a refresh
  of another server nor a second refresh is lost.

A server that cannot be listed keeps its last version until that expires; then its tools are not offered, which is never
an error (DESIGN 5). A tool that the model's service refuses is left out by a new version; it stays out while the server
lists the same (`leave_out`).
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from dualtrack.codec import APART, decode, dump, encode, load, stored
from dualtrack.requests import KEPT_FOR_PAUSES
from dualtrack.tool_values import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.storage.cache import CacheStore

STALE_AFTER: Final = 6 * 3600
"""Seconds for which a listing is valid; the schedule renews it every hour."""

KEEP_VERSION: Final = KEPT_FOR_PAUSES
"""Seconds for which a version is kept after its last listing, and after the last pause of a chat that pinned it."""


@stored
@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that cannot be offered, by the server's own name, and why."""

    server: str
    name: str
    reason: str


@stored
@dataclass(frozen=True, slots=True)
class ServerTools:
    """What is offered of a server, and what cannot be. ``handshake``: its calls begin with one, as the listing has
    learnt: a call without one may be carried out and answered in a form that counts as a failure."""

    tools: tuple[ToolSpec, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    handshake: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools on offer. ``version`` identifies them (``""`` for none) and can be pinned."""

    version: str = ""
    tools: tuple[ToolSpec, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    handshakes: frozenset[str] = frozenset()
    """The servers whose calls begin with a handshake."""

    def named(self) -> Mapping[str, ToolSpec]:
        """The tools by name; of tools with the same name the first.

        The one answer to which tool a name means: for what the model is shown, and for the server that is called.
        """
        named: dict[str, ToolSpec] = {}
        for tool in self.tools:
            named.setdefault(tool.name, tool)
        return named


@stored
@dataclass(frozen=True, slots=True)
class Listing:
    """A server's version and when it was listed, in epoch seconds.

    ``listed``: the version as the server listed it; ``version`` may be another, without what the model's service
    refused.
    """

    server: Annotated[str, APART]
    version: str
    listed_at: int
    listed: str = ""


def load_catalogue(cache: CacheStore, now: float, *, version: str | None = None) -> Catalogue:
    """The tools on offer now, or those of a pinned ``version``.

    Reads the pointer and, once per process, the version of each server.
    """
    versions = tuple(filter(None, version.split("+"))) if version is not None else _fresh(cache, now)
    readable = [
        (server_version, content)
        for server_version in versions
        if (content := content_of(cache, server_version)) is not None
    ]
    return Catalogue(
        "+".join(server_version for server_version, _ in readable),
        tuple(tool for _, content in readable for tool in content.tools),
        tuple(left_out for _, content in readable for left_out in content.left_out),
        frozenset(tool.server for _, content in readable if content.handshake for tool in content.tools),
    )


def load_listings(cache: CacheStore) -> tuple[Listing, ...]:
    """Each server's listing, stale or not, by the server's name."""
    stored = cache.listings()
    return tuple(decode(Listing, stored[server], server=server) for server in sorted(stored))


def store_version(cache: CacheStore, content: ServerTools, now: float) -> str:
    """Store the tools of a server under the hash of their content. Returns the version."""
    text = dump(content).encode()
    version = hashlib.sha256(text).hexdigest()[:32]
    cache.save_tools(version, zlib.compress(text, 9), int(now) + KEEP_VERSION)
    return version


def store_listing(cache: CacheStore, server: str, content: ServerTools, now: float) -> bool:
    """Make this the server's current listing. Returns whether it differs from the one before.

    If the server lists the same as before, what the model's service refused stays out.
    """
    listed = store_version(cache, content, now)
    before = next((listing for listing in load_listings(cache) if listing.server == server), None)
    if before and before.listed == listed and _renewed(cache, before, now):
        return False
    cache.save_listing(server, encode(Listing(server, listed, int(now), listed)))
    return True


def _renewed(cache: CacheStore, listing: Listing, now: float) -> bool:
    return cache.keep_tools(listing.version, int(now) + KEEP_VERSION) and cache.renew_listing(
        listing.server, listing.listed, int(now)
    )


def keep_pinned(cache: CacheStore, pinned: str, now: float) -> None:
    """Keep the versions that a chat has pinned until its pause is over."""
    for version in filter(None, pinned.split("+")):
        cache.keep_tools(version, int(now) + KEEP_VERSION)


def leave_out(
    cache: CacheStore, pinned: str, tool: ToolSpec, reason: str, now: float, *, all_of: bool
) -> str:
    """The pinned version without a tool that the model's service refuses, or without ``all_of`` its server's tools.

    It becomes the server's current version too, if the pinned one still is.
    """
    versions = pinned.split("+")
    for place, version in enumerate(versions):
        content = content_of(cache, version)
        # by its name: what is offered has the effect that the profile gives it
        named = [each for each in content.tools if each.name == tool.name] if content else []
        if content and named:
            versions[place] = store_version(cache, _without(content, named[0], reason, all_of=all_of), now)
            cache.replace_version(tool.server, version, versions[place])
    return "+".join(versions)


def _without(content: ServerTools, tool: ToolSpec, reason: str, *, all_of: bool) -> ServerTools:
    gone = content.tools if all_of else (tool,)
    left_out = tuple(LeftOut(each.server, each.remote_name[:100], reason) for each in gone)
    kept = tuple(each for each in content.tools if each not in gone)
    return ServerTools(kept, (*content.left_out, *left_out), content.handshake)


def is_fresh(listing: Listing, now: float) -> bool:
    """Whether a listing is still valid."""
    return now - listing.listed_at < STALE_AFTER


def _fresh(cache: CacheStore, now: float) -> tuple[str, ...]:
    return tuple(listing.version for listing in load_listings(cache) if is_fresh(listing, now))


# Content-addressed, so an entry can never be wrong; bounded, because a process may live for hours.
_DECODED: Final[dict[str, ServerTools]] = {}
_MAX_DECODED: Final = 32


def content_of(cache: CacheStore, version: str) -> ServerTools | None:
    """A version of a server's tools; None if it is no longer kept."""
    if version not in _DECODED:
        body = cache.tools(version)
        if body is None:
            return None
        if len(_DECODED) >= _MAX_DECODED:
            _DECODED.clear()
        _DECODED[version] = load(ServerTools, zlib.decompress(body))
    return _DECODED[version]
