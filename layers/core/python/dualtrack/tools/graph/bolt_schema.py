"""The schema of a graph in a server, read from the server: bounded in rows, and in what is looked at.

Counts are the server's own. Properties are those of the first 1,000 nodes or relationships of a kind, and the
labels at a type's ends those of its first 100,000 relationships.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from dualtrack.tools.graph.names import quoted
from dualtrack.tools.graph.schema import NAME, NODE_ID, Label, Property, RelationshipType, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.tools.graph.bolt import Bolt
    from dualtrack.tools.graph.schema import PropertyType

MAX_LABELS: Final = 50
MAX_TYPES: Final = 100
MAX_PROPERTIES: Final = 100
MAX_PAIRS: Final = 300
"""As a loaded graph has them at most (docs/graph.md, "Loading")."""

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


def read_schema(server: Bolt) -> Schema:
    """What the tools are told of the graph. Raises `GraphError`."""
    labels, types = _names(server, _LABELS, MAX_LABELS), _names(server, _TYPES, MAX_TYPES)
    nodes = dict(_each(server, labels, _NODES + _COUNT, MAX_LABELS))
    relationships = dict(_each(server, types, _RELATIONSHIPS + _COUNT, MAX_TYPES))
    labels, types = [one for one in labels if nodes[one]], [one for one in types if relationships[one]]
    own = _properties(server, labels, _NODES)
    of_types = _properties(server, types, _RELATIONSHIPS)
    ends = _ends(server, types, frozenset(labels))
    return Schema(
        tuple(Label(one, own[one], nodes[one]) for one in labels),
        tuple(
            RelationshipType(one, ends[one], of_types[one], relationships[one]) for one in types if ends[one]
        ),
    )


def _names(server: Bolt, query: str, most: int) -> list[str]:
    """Those that a query of the tools may have, in order."""
    names = [str(row[0]) for row in server.rows(query, {}, 2 * most).rows]
    return [one for one in names if _is_plain(one)][:most]


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_NAME and name.isprintable() and not set(name) & set("`\\")


def _each(server: Bolt, names: Sequence[str], query: str, most: int) -> Iterable[tuple[Any, ...]]:
    """The rows of a query of each name in one: its text has the name as ``{name}``, and the name's number as
    ``{at}``."""
    if not names:
        return ()
    asked = [query.format(name=quoted(one), at=at) for at, one in enumerate(names)]
    return server.rows(" UNION ALL ".join(asked), {f"n{at}": one for at, one in enumerate(names)}, most).rows


def _properties(server: Bolt, names: Sequence[str], match: str) -> dict[str, tuple[Property, ...]]:
    found: dict[str, list[Property]] = defaultdict(list)
    most = len(names) * (MAX_PROPERTIES + 2)
    for owner, key, types in _each(server, names, match + _PROPERTIES, most):
        if key not in (NODE_ID, NAME) and _is_plain(key) and len(found[owner]) < MAX_PROPERTIES:
            found[owner].append(Property(key, _type(types)))
    return {one: tuple(found[one]) for one in names}


def _type(types: Sequence[str]) -> PropertyType:
    """Of the server's types of a property's values: ``INTEGER NOT NULL``, ``LIST<STRING NOT NULL> NOT NULL``."""
    names = {one.removesuffix(" NOT NULL") for one in types}
    if names <= _NUMBERS:
        return "INT64" if names == {"INTEGER"} else "DOUBLE"
    return "BOOL" if names == {"BOOLEAN"} else "STRING"


def _ends(
    server: Bolt, types: Sequence[str], labels: frozenset[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for owner, start, end in _each(server, types, _ENDS, MAX_PAIRS):
        if start in labels and end in labels:
            found[owner].append((start, end))
    return {one: tuple(sorted(found[one])) for one in types}
