"""What all tools of the graph have in common: numbers that are lowered, and errors that are for the model."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import dumps
from dualtrack.tool_values import ToolResult, failed
from dualtrack.tools.graph.arguments import lowered
from dualtrack.tools.graph.engine import GraphError
from dualtrack.tools.graph.names import BadArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.tools.graph.needs import GraphNeeds
    from dualtrack.tools.graph.results import GraphResult


def answered(answer: Callable[..., GraphResult]) -> Callable[..., ToolResult]:
    """An answer of the graph as a result: JSON, or an error result."""

    @wraps(answer)
    def result(graph: GraphNeeds, **arguments: Any) -> ToolResult:
        if graph.problem:
            return failed(graph.problem)
        try:
            kept, note = lowered(arguments)
            found = answer(graph, **kept)
        except (BadArgumentError, GraphError) as error:
            return failed(str(error))
        return ToolResult(dumps({"note": note, **found} if note else found))

    return result
