"""A small graph as a database file, with properties of every type and a relationship of two pairs of labels."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

import ladybug

if TYPE_CHECKING:
    from pathlib import Path

_STATEMENTS: Final = (
    """CREATE NODE TABLE Asset(node_id STRING PRIMARY KEY, name STRING, status STRING, size INT64, weight DOUBLE,
    active BOOL)""",
    "CREATE NODE TABLE Location(node_id STRING PRIMARY KEY, name STRING)",
    "CREATE NODE TABLE System(node_id STRING PRIMARY KEY, name STRING)",
    "CREATE REL TABLE LOCATED_IN(FROM Asset TO Location, FROM Location TO Location, since INT64)",
    "CREATE REL TABLE PART_OF(FROM Asset TO System)",
    "CREATE (:Location {node_id: 'l1', name: 'Hall'}), (:Location {node_id: 'l2', name: 'Site'})",
    "CREATE (:System {node_id: 's1', name: 'Water'})",
    """UNWIND range(1, 6) AS n CREATE (:Asset {node_id: 'a' + CAST(n AS STRING), name: 'Pump ' + CAST(n AS STRING),
    status: CASE WHEN n < 4 THEN 'on' ELSE NULL END, size: n, weight: CASE WHEN n = 1 THEN NULL ELSE n * 1.5 END,
    active: n % 2 = 0})""",
    "MATCH (a:Asset), (l:Location {node_id: 'l1'}) CREATE (a)-[:LOCATED_IN {since: 2019 + a.size}]->(l)",
    "MATCH (a:Location {node_id: 'l1'}), (b:Location {node_id: 'l2'}) CREATE (a)-[:LOCATED_IN {since: 1999}]->(b)",
    "MATCH (a:Asset), (s:System) WHERE a.size < 3 CREATE (a)-[:PART_OF]->(s)",
)

ASSETS: Final = 6


def make_database(path: Path) -> Path:
    """The file, closed."""
    with (
        closing(ladybug.Database(str(path), buffer_pool_size=64 << 20, max_db_size=1 << 30)) as database,
        closing(ladybug.Connection(database)) as connection,
    ):
        for statement in _STATEMENTS:
            connection.execute(statement)
        connection.execute("CHECKPOINT")
    return path
