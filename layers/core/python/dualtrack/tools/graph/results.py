"""Parts of the tools' results as JSON values: nodes, and pages of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.tools.graph.engine import GraphValue

GraphResult: TypeAlias = dict[str, Any]
"""A tool's result, a JSON object."""

MAX_TEXT: Final = 500
"""Maximum characters of a property's text; ``run_query`` returns it whole."""


def node(value: GraphValue) -> GraphResult:
    """``{"node_id", "label", "name", "properties"}`` of a node from the engine, without empty properties."""
    assert isinstance(value, dict)
    own = {key: entry for key, entry in value.items() if key not in ("_label", "node_id", "name")}
    return {
        "node_id": value["node_id"],
        "label": value["_label"],
        "name": value["name"],
        "properties": {key: _shortened(entry) for key, entry in own.items() if entry is not None},
    }


def page(nodes: Sequence[Mapping[str, Any]], total: int, offset: int) -> GraphResult:
    """A part of a list, with the offset of the next part if there is one."""
    after = offset + len(nodes)
    more = {"next_offset": after} if nodes and after < total else {}
    return {"total_count": total, "offset": offset, "count": len(nodes), **more, "nodes": list(nodes)}


def _shortened(value: GraphValue) -> GraphValue:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[: MAX_TEXT - 1]}…"
    return value
