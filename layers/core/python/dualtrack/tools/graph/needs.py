"""What the graph's tools are given for a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualtrack.tools.graph.engine import Engine
    from dualtrack.tools.graph.schema import Schema


@dataclass(frozen=True, slots=True)
class GraphNeeds:
    """One version of the graph: what reads it, and what is in it. Before a graph is loaded the schema is empty and
    reading raises `NoGraph`."""

    engine: Engine
    schema: Schema
