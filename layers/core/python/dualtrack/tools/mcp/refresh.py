"""Updates the stored catalogue: lists the tools of every server (on schedule and at deployment).

All servers are asked at once, and each listing is stored as it comes: a server that hangs, fails or sends too much
costs its own tools alone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from dualtrack.errors import TookTooLong
from dualtrack.runtime.time_limit import within
from dualtrack.tools.mcp.accepted import as_accepted
from dualtrack.tools.mcp.catalogue import load_listings, store_listing
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.specs import specs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.cache import CacheStore
    from dualtrack.tools.mcp.catalogue import LeftOut, ServerTools
    from dualtrack.tools.mcp.config import McpServer
    from dualtrack.tools.mcp.specs import ServerListing

LISTING_TOKEN: Final = "github_pat_listing_only"  # noqa: S105 - no secret: see `_listing_token`
SERVER_SECONDS: Final = 25.0
"""For a server's listing and the check of what it lists; the requests alone have less (`client.LISTING_SECONDS`)."""


class ListsTools(Protocol):
    """The part of `McpClient` that this module uses."""

    def list_tools(self, server: McpServer, token: str | None) -> ServerListing:
        """Every tool that the server lists, and what that has taught; raises `McpFailure`."""


@dataclass(frozen=True, slots=True)
class RefreshOutcome:
    """How a server's refresh went: ``listed 23``, or ``failed: <reason>``, with which it keeps its earlier tools until
    they are stale. ``left_out``: tools that cannot be offered; ``changed``: those that ask until they are accepted, by
    name; ``is_new``: its listing has changed.
    """

    server: str
    outcome: str
    left_out: tuple[LeftOut, ...] = ()
    changed: tuple[str, ...] = ()
    is_new: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether there is no listing."""
        return self.outcome.startswith("failed")


def refresh_catalogue(
    cache: CacheStore,
    servers: tuple[McpServer, ...],
    client: ListsTools,
    *,
    secret: Callable[[str], str],
    now: float,
) -> tuple[RefreshOutcome, ...]:
    """Store what the servers offer now, and forget servers that are no longer configured."""
    for gone in {listing.server for listing in load_listings(cache)} - {server.name for server in servers}:
        cache.forget_listing(gone)
    refresh = partial(_refreshed, cache, client, secret, now)
    with ThreadPoolExecutor(max(len(servers), 1)) as pool:
        return tuple(pool.map(refresh, servers))


def _refreshed(
    cache: CacheStore, client: ListsTools, secret: Callable[[str], str], now: float, server: McpServer
) -> RefreshOutcome:
    try:
        content = within(SERVER_SECONDS, lambda: server_tools(client, server, secret), f"list-{server.name}")
    except McpFailure as failed:
        return RefreshOutcome(server.name, f"failed: {failed.failure.kind}")
    except TookTooLong:
        return RefreshOutcome(server.name, "failed: timeout")
    except Exception as error:  # noqa: BLE001 - one server never takes away the tools of the others
        return RefreshOutcome(server.name, f"failed: {type(error).__name__}")
    content = as_accepted(cache, server.name, content)
    is_new = store_listing(cache, server.name, content, now)
    changed = tuple(spec.name for spec in content.tools if spec.is_changed)
    return RefreshOutcome(server.name, f"listed {len(content.tools)}", content.left_out, changed, is_new)


def server_tools(client: ListsTools, server: McpServer, secret: Callable[[str], str]) -> ServerTools:
    """What a server lists, as it can be offered. Raises `McpFailure`."""
    listing = client.list_tools(server, _listing_token(server, secret))
    return specs_of(server, listing.tools, handshake=listing.handshake)


def _listing_token(server: McpServer, secret: Callable[[str], str]) -> str | None:
    """The token for listing. GitHub's server lists the same tools for every well-formed token.

    It does not call GitHub to list them (observed with 2.1.0), so a placeholder is enough. A real classic token would
    hide the tools that its own scopes do not allow, and so from every user.
    """
    if server.auth.type == "none":
        return None
    if server.auth.type == "secret":
        return secret(server.auth.secret_id) or None
    return LISTING_TOKEN
