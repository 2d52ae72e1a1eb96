"""Reads more rows than fit in one result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.tools.graph.arguments import MAX_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.tools.graph.engine import Engine, GraphValue


def all_rows(
    engine: Engine, query: str, parameters: Mapping[str, GraphValue], most: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """At most ``most`` rows of a query with a total order, and whether there are more."""
    rows: list[tuple[Any, ...]] = []
    while len(rows) < most:
        room = min(MAX_LIMIT, most - len(rows))
        page = engine.read(f"{query} SKIP {len(rows)} LIMIT {room + 1}", parameters, room)
        rows += page.rows
        if not page.more:
            return rows, False
    return rows, True
