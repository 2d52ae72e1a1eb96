"""A graph in a server that speaks Bolt (Neo4j), read with our tools' own queries.

Sessions only read (``access_mode`` READ, which the server enforces), and a transaction ends at its time-out
on the server. Our tools' queries are in the embedded engine's dialect and are translated here (`translated`);
the guard writes a model's query in the server's dialect at once (`dialects.NEO4J`).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neo4j import READ_ACCESS, GraphDatabase, Query
from neo4j.exceptions import AuthError, DriverError, Neo4jError
from neo4j.graph import Node, Path, Relationship

from dualtrack.tools.graph.engine import NoGraph, QueryFailed, QueryTimedOut, Rows
from dualtrack.tools.graph.schema import NAME, NODE_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from neo4j import Driver

    from dualtrack.tools.graph.engine import GraphValue

MAX_ROWS: Final = 200
MAX_BYTES: Final = 2_000_000
"""Limit of a query's rows, as JSON."""

SECONDS: Final = 10.0
"""Time-out of a transaction."""

_TIMED_OUT: Final = "Neo.ClientError.Transaction.TransactionTimedOut"
_MEMORY: Final = "OutOfMemory"

_RULES: Final = (
    # a path between two nodes; the embedded engine's SHORTEST returns one for each pair
    (
        re.compile(r"p = (\(a:.*?\}\))-\[\* SHORTEST 1\.\.(\d)\]-(\(b:.*?\}\))"),
        r"p = shortestPath(\1-[*1..\2]-\3)",
    ),
    # all nodes that lead to a node: the queries count DISTINCT ones, so the server visits each node once
    (re.compile(r"\* SHORTEST "), "*"),
    (re.compile(r"\brels\("), "relationships("),
    (re.compile(r"\blabel\(r\)"), "type(r)"),
    (re.compile(r"\blabel\((\w)\)"), r"labels(\1)[0]"),
    (re.compile(r"\blower\("), "toLower("),
)


def open_driver(url: str, user: str, password: str) -> Driver:
    """Connects at the first query. An instance answers one call at a time; the other connections are for abandoned
    calls. A connection that was idle while the instance was frozen is checked before it is used.
    """
    return GraphDatabase.driver(
        url,
        auth=(user, password) if password else None,
        max_connection_pool_size=4,
        connection_timeout=5.0,
        connection_acquisition_timeout=8.0,
        liveness_check_timeout=10.0,
        telemetry_disabled=True,
    )


@dataclass(frozen=True, slots=True)
class Bolt:
    """A server's database. Each node has one label, and a ``node_id`` and a ``name``."""

    driver: Driver
    seconds: float = SECONDS

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """At most ``limit`` rows of a query of our tools, never more than `MAX_ROWS`. Raises `GraphError`."""
        return self.rows(translated(query), parameters, min(limit, MAX_ROWS))

    def read_foreign(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """As `read`, for a query that the guard has rewritten. The server isolates queries from each other."""
        return self.rows(query, parameters, min(limit, MAX_ROWS))

    def rows(self, query: str, parameters: Mapping[str, GraphValue], most: int) -> Rows:
        """At most ``most`` rows of a query in the server's dialect. Raises `GraphError`."""
        try:
            with self.driver.session(default_access_mode=READ_ACCESS, fetch_size=MAX_ROWS + 1) as session:
                result = session.run(Query(query, timeout=self.seconds), dict(parameters))  # type: ignore[bad-argument-type] # tools' own and the model's, read only
                return _taken(result.keys(), result, most)
        except AuthError:
            raise NoGraph("the graph's server refuses our user.") from None
        except Neo4jError as error:
            raise _failure(error) from None
        except DriverError as error:
            raise NoGraph(f"the graph's server cannot be reached ({type(error).__name__}).") from None


def _taken(columns: Iterable[str], results: Iterable[Any], most: int) -> Rows:
    rows: list[tuple[GraphValue, ...]] = []
    left = MAX_BYTES
    for record in results:
        if len(rows) == most:
            return Rows(tuple(columns), tuple(rows), more=True)
        row = tuple(plain(value) for value in record.values())
        left -= len(json.dumps(row))
        if left < 0:
            raise QueryFailed("the rows are too large: return fewer or smaller values.")
        rows.append(row)
    return Rows(tuple(columns), tuple(rows))


def _failure(error: Neo4jError) -> QueryFailed | QueryTimedOut:
    code = str(error.code)
    if code.startswith(_TIMED_OUT):
        return QueryTimedOut("the query took too long: ask for less.")
    if _MEMORY in code:
        return QueryTimedOut("the query took too much memory: ask for less.")
    return QueryFailed(" ".join(str(error.message).split()))


def translated(query: str) -> str:
    """A query of our tools in the server's dialect."""
    for pattern, replacement in _RULES:
        query = pattern.sub(replacement, query)
    return query


def plain(value: Any) -> Any:
    """The value as JSON, in the form that the embedded engine's child writes."""
    if isinstance(value, Node | Relationship | Path):
        return _of_graph(value)
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.iso_format() if hasattr(value, "iso_format") else str(value)


def _of_graph(value: Node | Relationship | Path) -> dict[str, Any]:
    if isinstance(value, Path):
        return {"nodes": plain(list(value.nodes)), "relationships": plain(list(value.relationships))}
    if isinstance(value, Relationship):
        return {"_type": value.type, **_plain(value)}
    # the tools read node_id and name of every node; the server does not enforce that it has them
    return {"_label": min(value.labels, default=""), NODE_ID: "", NAME: "", **_plain(value)}


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain(entry) for key, entry in value.items()}
