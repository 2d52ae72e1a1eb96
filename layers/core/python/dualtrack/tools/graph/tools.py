"""The fifteen tools by name (PROFILES 4), and the runner of their calls."""

from __future__ import annotations

from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, thaw
from dualtrack.tool_values import ToolResult, failed
from dualtrack.tools.graph.arguments import lowered
from dualtrack.tools.graph.engine import GraphError
from dualtrack.tools.graph.groups import count_breakdown, count_by_category, list_categories
from dualtrack.tools.graph.names import BadArgumentError
from dualtrack.tools.graph.nodes import (
    count_by_label,
    count_nodes,
    find_node,
    get_node_connections,
    list_nodes,
)
from dualtrack.tools.graph.paths import find_path
from dualtrack.tools.graph.queries import get_schema, run_query
from dualtrack.tools.graph.relations import (
    count_related,
    count_related_by_name,
    list_related,
    list_related_by_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.tools.graph.needs import GraphNeeds
    from dualtrack.tools.running import Running

TOOLS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = MappingProxyType(
    {
        tool.__name__: tool
        for tool in (
            find_node,
            count_nodes,
            count_by_label,
            list_nodes,
            list_categories,
            get_node_connections,
            count_by_category,
            count_related,
            count_related_by_name,
            list_related,
            list_related_by_name,
            count_breakdown,
            find_path,
            get_schema,
            run_query,
        )
    }
)
"""The model sees each function's name, docstring and arguments as a tool (`spec`)."""


def run(running: Running, needs: GraphNeeds) -> ToolResult:
    """Run a call: its result as JSON, or an error result."""
    if needs.problem:
        return failed(needs.problem)
    try:
        given = {name: value for name, value in thaw(running.call.input).items() if value is not None}
        arguments, note = lowered(given)
        result = TOOLS[running.call.tool](
            needs, **{parameter_of(name): value for name, value in arguments.items()}
        )
    except (BadArgumentError, GraphError) as error:
        return failed(str(error))
    return ToolResult(dumps({"note": note, **result} if note else result))


def parameter_of(argument: str) -> str:
    """The function's parameter for an argument: ``from`` is a keyword in Python."""
    return f"{argument}_" if iskeyword(argument) else argument
