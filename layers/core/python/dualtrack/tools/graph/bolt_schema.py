"""The schema of a graph in a server, read with queries that are bounded in rows and in the data that they visit.

Counts are the server's own. Properties are those of the first 1,000 nodes of a label or relationships of a type,
and the labels at a type's ends those of its first 100,000 relationships.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from dualtrack.tools.graph.names import quoted
from dualtrack.tools.graph.schema import NAME, NODE_ID, NodeLabel, Property, RelationshipType, StoredSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.tools.graph.bolt import Bolt
    from dualtrack.tools.graph.schema import PropertyType

MAX_LABELS: Final = 50
MAX_TYPES: Final = 100
MAX_PROPERTIES: Final = 100
MAX_PAIRS: Final = 300
"""The same limits as for a loaded graph (docs/graph.md, "Loading")."""

_MAX_NAME: Final = 64
_SAMPLED: Final = 1_000
_FOLLOWED: Final = 100_000

_LABELS: Final = "CALL db.labels() YIELD label RETURN label ORDER BY label"
_TYPES: Final = (
    "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType ORDER BY relationshipType"
)
_NODES: Final = "MATCH (x:{name})"
_RELATIONSHIPS: Final = "MATCH ()-[x:{name}]->()"
_COUNT: Final = " RETURN $n{at} AS owner, count(x) AS count"
_PROPERTIES: Final = (
    f" WITH x LIMIT {_SAMPLED} UNWIND keys(x) AS key WITH key, collect(DISTINCT valueType(x[key])) AS types "
    f"RETURN $n{{at}} AS owner, key, types ORDER BY key LIMIT {MAX_PROPERTIES + 2}"
)
_ENDS: Final = (
    f"MATCH (a)-[:{{name}}]->(b) WITH a, b LIMIT {_FOLLOWED} "
    f"RETURN DISTINCT $n{{at}} AS owner, labels(a)[0] AS one, labels(b)[0] AS other LIMIT {MAX_PAIRS}"
)

_NUMBERS: Final = {"INTEGER", "FLOAT"}


def read_schema(server: Bolt) -> StoredSchema:
    """The graph's schema, for the tools. Raises `GraphError`."""
    labels, types = _names(server, _LABELS, MAX_LABELS), _names(server, _TYPES, MAX_TYPES)
    nodes = dict(_each(server, labels, _NODES + _COUNT, MAX_LABELS))
    relationships = dict(_each(server, types, _RELATIONSHIPS + _COUNT, MAX_TYPES))
    labels, types = (
        [label for label in labels if nodes[label]],
        [name for name in types if relationships[name]],
    )
    own = _properties(server, labels, _NODES)
    of_types = _properties(server, types, _RELATIONSHIPS)
    ends = _ends(server, types, frozenset(labels))
    return StoredSchema(
        tuple(NodeLabel(label, own[label], nodes[label]) for label in labels),
        tuple(
            RelationshipType(name, ends[name], of_types[name], relationships[name])
            for name in types
            if ends[name]
        ),
    )


def _names(server: Bolt, query: str, most: int) -> list[str]:
    """The names that can be written in a query, in order."""
    names = [str(row[0]) for row in server.rows(query, {}, 2 * most).rows]
    return [name for name in names if _is_plain(name)][:most]


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_NAME and name.isprintable() and not set(name) & set("`\\")


def _each(server: Bolt, names: Sequence[str], query: str, most: int) -> Iterable[tuple[Any, ...]]:
    """The rows of a query for every name, as one UNION. Its text has the name as ``{name}`` and the name's index as
    ``{at}``."""
    if not names:
        return ()
    queries = [query.format(name=quoted(name), at=at) for at, name in enumerate(names)]
    parameters = {f"n{at}": name for at, name in enumerate(names)}
    return server.rows(" UNION ALL ".join(queries), parameters, most).rows


def _properties(server: Bolt, names: Sequence[str], match: str) -> dict[str, tuple[Property, ...]]:
    properties: dict[str, list[Property]] = defaultdict(list)
    most = len(names) * (MAX_PROPERTIES + 2)
    for owner, key, types in _each(server, names, match + _PROPERTIES, most):
        if key not in (NODE_ID, NAME) and _is_plain(key) and len(properties[owner]) < MAX_PROPERTIES:
            properties[owner].append(Property(key, _type(types)))
    return {name: tuple(properties[name]) for name in names}


def _type(types: Sequence[str]) -> PropertyType:
    """Our type for the types that the server reports, such as ``INTEGER NOT NULL`` and ``LIST<STRING>``."""
    names = {kind.removesuffix(" NOT NULL") for kind in types}
    if names <= _NUMBERS:
        return "INT64" if names == {"INTEGER"} else "DOUBLE"
    return "BOOL" if names == {"BOOLEAN"} else "STRING"


def _ends(
    server: Bolt, types: Sequence[str], labels: frozenset[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for owner, start, end in _each(server, types, _ENDS, MAX_PAIRS):
        if start in labels and end in labels:
            pairs[owner].append((start, end))
    return {name: tuple(sorted(pairs[name])) for name in types}
