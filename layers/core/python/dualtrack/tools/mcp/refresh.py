"""Updates the stored catalogue: lists the tools of every server (on schedule and at deployment)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from dualtrack.tools.mcp.catalogue import (
    CatalogueTooLarge,
    Listing,
    load_listings,
    store_listings,
    store_version,
)
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.specs import specs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.cache import CacheStore
    from dualtrack.tools.mcp.config import McpServer
    from dualtrack.tools.mcp.specs import ListedTool

LISTING_TOKEN: Final = "github_pat_listing_only"  # noqa: S105 - no secret: see `listing_token`


class ListsTools(Protocol):
    """The part of `McpClient` that this module uses."""

    def list_tools(self, server: McpServer, token: str | None) -> tuple[ListedTool, ...]:
        """Every tool of a server; raises `McpFailure`."""


def refresh_catalogue(
    cache: CacheStore,
    servers: tuple[McpServer, ...],
    client: ListsTools,
    *,
    secret: Callable[[str], str],
    now: float,
) -> dict[str, str]:
    """Store what the servers offer now. Returns an outcome for each server, for the log and the caller.

    ``listed 23``, or ``failed: <reason>``: then the server keeps its earlier tools until they are stale.
    """
    before = {listing.server: listing for listing in load_listings(cache)}
    outcomes: dict[str, str] = {}
    listings: list[Listing] = []
    for server in servers:
        try:
            specs = specs_of(server, client.list_tools(server, listing_token(server, secret)))
            version = store_version(cache, specs, now)
        except McpFailure as failed:
            outcomes[server.name] = f"failed: {failed.failure.kind}"
            kept = before.get(server.name)
        except CatalogueTooLarge:
            outcomes[server.name] = "failed: too large"
            kept = before.get(server.name)
        else:
            outcomes[server.name] = f"listed {len(specs)}"
            kept = Listing(server.name, version, int(now))
        if kept:
            listings.append(kept)
    store_listings(cache, listings)
    return outcomes


def listing_token(server: McpServer, secret: Callable[[str], str]) -> str | None:
    """The token for listing. GitHub's server lists the same tools for every well-formed token.

    It does not call GitHub to list them (observed with 2.1.0), so a placeholder is enough. A real classic token would
    hide the tools that its own scopes do not allow, and so from every user.
    """
    if server.auth.type == "none":
        return None
    if server.auth.type == "secret":
        return secret(server.auth.secret_id) or None
    return LISTING_TOKEN
