"""What the graph tools need for a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dualtrack.tool_values import Provided
from dualtrack.tools.graph.dialects import LADYBUG

if TYPE_CHECKING:
    from dualtrack.tool_values import Kind
    from dualtrack.tools.graph.dialects import Dialect
    from dualtrack.tools.graph.engine import Engine
    from dualtrack.tools.graph.schema import Schema


@dataclass(frozen=True, slots=True)
class GraphNeeds(Provided):
    """A version of the graph. Before one is loaded the schema is empty and reading raises `NoGraph`.

    ``dialect``: the one that the guard writes. ``problem``: why nothing can be read, for the model; or empty."""

    kind: ClassVar[Kind] = "graph"

    engine: Engine
    schema: Schema
    dialect: Dialect = LADYBUG
    problem: str = ""
