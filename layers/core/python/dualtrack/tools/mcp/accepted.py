"""What is accepted of the tools that a server lists.

A server's first listing is accepted whole: whoever names the server trusts what it lists then. What it says later of a
tool that asks for less caution counts when an administrator has accepted that very tool, by the mark of its name,
description, schema and hints (`dualtrack.tools.approval.mark_of`). Until then the tool is offered as one that is not
believed (`dualtrack.tools.mcp.hints`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.codec import encode
from dualtrack.errors import not_found
from dualtrack.storage.dynamo import until_kept
from dualtrack.tools.mcp.catalogue import content_of, load_listings, store_version
from dualtrack.tools.mcp.hints import compared, marks_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dualtrack.storage.cache import CacheStore
    from dualtrack.tool_values import ToolSpec
    from dualtrack.tools.mcp.catalogue import ServerTools


def as_accepted(cache: CacheStore, server: str, content: ServerTools) -> ServerTools:
    """What a server lists, with what was not accepted marked as changed."""
    accepted = cache.accepted(server)
    if accepted is None:
        first = marks_of(content.tools)
        # kept before the listing is: of two that are first at once, one is compared with the other
        accepted = first if cache.accept_first(server, first) else cache.accepted(server)
    return replace(content, tools=compared(content.tools, accepted or ()))


def accept(cache: CacheStore, server: str, marks: Collection[str], now: float) -> tuple[ToolSpec, ...]:
    """Accept what the server lists now, as far as it has these marks. Returns its tools that are still not accepted:
    those that somebody else has changed meanwhile. Raises a 404."""
    return until_kept(
        lambda: _accepted(cache, server, marks, now), "The server's tools change all the time: try again."
    )


def _accepted(cache: CacheStore, server: str, marks: Collection[str], now: float) -> tuple[ToolSpec, ...]:
    note = next((listing for listing in load_listings(cache) if listing.server == server), None)
    offered = content_of(cache, note.version) if note else None
    if note is None or offered is None:
        raise not_found("There is no such server.")
    # what is offered may lack what the model's service has refused
    listed = content_of(cache, note.listed) if note.listed else None
    known = {*(cache.accepted(server) or ()), *marks}
    kept = tuple(mark for mark in marks_of((listed or offered).tools) if mark in known)
    offered = replace(offered, tools=compared(offered.tools, kept))
    after = replace(note, version=store_version(cache, offered, now))
    if listed:
        content = replace(listed, tools=compared(listed.tools, kept))
        after = replace(after, listed=store_version(cache, content, now))
    cache.accept(server, kept, encode(after), note.version)
    return tuple(spec for spec in offered.tools if spec.is_changed)
