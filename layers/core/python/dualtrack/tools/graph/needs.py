"""What the graph tools need for a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dualtrack.tool_values import Injected
from dualtrack.tools.graph.dialects import LADYBUG

if TYPE_CHECKING:
    from dualtrack.tool_values import ToolKind
    from dualtrack.tools.graph.dialects import Dialect
    from dualtrack.tools.graph.engine import Engine
    from dualtrack.tools.graph.schema import StoredSchema


@dataclass(frozen=True, slots=True)
class GraphNeeds(Injected):
    """A version of the graph. Before one is loaded the schema is empty and reading raises `NoGraph`.

    ``dialect``: the one that the guard writes. ``problem``: why nothing can be read, for the model; or empty."""

    kind: ClassVar[ToolKind] = "graph"

    engine: Engine
    schema: StoredSchema
    dialect: Dialect = LADYBUG
    problem: str = ""
