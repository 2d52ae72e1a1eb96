"""Tools for questions that no other tool answers: the schema, and read-only Cypher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack import tool
from dualtrack.tools.graph.answered import answered
from dualtrack.tools.graph.arguments import MAX_LIMIT, Parameters, Query
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.names import labels_of
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.results import GraphResult

if TYPE_CHECKING:
    from dualtrack.tools.graph.schema import Property


@tool(effect="reads")
@answered
def get_schema(graph: GraphNeeds) -> GraphResult:
    """Shows the graph's labels, relationship types with the labels they lead from and to, and properties, with counts.
    Call it before run_query, and for questions about what the graph contains.
    """
    labels_of(graph.schema)
    return {
        "labels": [
            {"label": label.name, "count": label.count, "properties": _properties(label.properties)}
            for label in graph.schema.labels[:MAX_LIMIT]
        ],
        "relationship_types": [
            {
                "type": kind.name,
                "count": kind.count,
                "from_to": [list(pair) for pair in kind.ends[:MAX_LIMIT]],
                "properties": _properties(kind.properties),
            }
            for kind in graph.schema.types[:MAX_LIMIT]
        ],
        "note": "Every node also has node_id and name.",
    }


@tool(effect="reads")
@answered
def run_query(graph: GraphNeeds, query: Query, parameters: Parameters | None = None) -> GraphResult:
    """Runs one read-only Cypher query (MATCH, OPTIONAL MATCH, UNWIND, WITH, RETURN) and returns at most 200 rows. Use
    it only if no other tool can answer, and after get_schema.
    """
    labels_of(graph.schema)
    text, values = guarded(query, parameters or {}, graph.dialect, graph.schema)
    answer = graph.engine.read_foreign(text, values, MAX_LIMIT)
    more = {"more": "There are more rows: narrow the query, or use SKIP and LIMIT."} if answer.more else {}
    return {
        "columns": list(answer.columns),
        "row_count": len(answer.rows),
        **more,
        "rows": [list(row) for row in answer.rows],
    }


def _properties(own: tuple[Property, ...]) -> dict[str, str]:
    return {column.name: column.type for column in own[:MAX_LIMIT]}
