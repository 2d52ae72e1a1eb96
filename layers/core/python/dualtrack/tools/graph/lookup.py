"""Nodes by id and by name, and names similar to one that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.knowledge.folding import folded
from dualtrack.knowledge.words import asked
from dualtrack.text import clean, one_line
from dualtrack.tools.graph.arguments import MAX_LIMIT, MAX_NAME
from dualtrack.tools.graph.names import labels_of, quoted
from dualtrack.tools.graph.results import node

if TYPE_CHECKING:
    from dualtrack.tools.graph.needs import GraphNeeds
    from dualtrack.tools.graph.results import GraphResult

MAX_SIMILAR: Final = 5
MAX_CANDIDATES: Final = 100
MAX_FRAGMENTS: Final = 8
FRAGMENT: Final = 3
"""Letters of a word that a similar name must have."""


def plain(text: str) -> str:
    """A name in the form in which it is searched."""
    return one_line(clean(text))[:MAX_NAME]


def by_id(graph: GraphNeeds, node_id: str) -> GraphResult | None:
    """The node with this id. Each label has its own index of ids; there is none across labels."""
    parameters = {"id": clean(node_id)}
    of_labels = [f"MATCH (n:{quoted(label)} {{node_id: $id}}) RETURN " for label in labels_of(graph.schema)]
    labels = graph.engine.read(
        " UNION ALL ".join(f"{match}label(n) AS label" for match in of_labels), parameters, 1
    )
    if not labels.rows:
        return None
    label = quoted(str(labels.rows[0][0]))
    nodes = graph.engine.read(f"MATCH (n:{label} {{node_id: $id}}) RETURN n", parameters, 1)
    return node(nodes.rows[0][0])


def by_name(graph: GraphNeeds, name: str, label: str | None = None) -> tuple[tuple[GraphResult, ...], bool]:
    """The nodes of exactly this name, in any case, at most 200 ordered by id, and whether there are more."""
    nodes = graph.engine.read(
        f"MATCH (n{of(label)}) WHERE lower(n.name) = lower($name) RETURN n ORDER BY n.node_id LIMIT {MAX_LIMIT + 1}",
        {"name": plain(name)},
        MAX_LIMIT,
    )
    return tuple(node(row[0]) for row in nodes.rows), nodes.more


def of(label: str | None) -> str:
    """The label in a node pattern; empty for any label."""
    return f":{quoted(label)}" if label else ""


def not_found(graph: GraphNeeds, name: str, label: str | None = None) -> GraphResult:
    """``found: false`` with the most similar names."""
    return {"found": False, "name": plain(name), "similar_names": similar(graph, name, label)}


def similar(graph: GraphNeeds, name: str, label: str | None = None) -> list[str]:
    """At most five similar names, best first.

    The engine scans the names once and returns at most 100 that share the most beginnings of words; these are compared
    by their groups of three letters.
    """
    fragments = _fragments(plain(name))
    if not fragments:
        return []
    parameters: dict[str, Any] = {f"part{at}": part for at, part in enumerate(fragments)}
    hits = " + ".join(f"CASE WHEN lower(n.name) CONTAINS ${part} THEN 1 ELSE 0 END" for part in parameters)
    candidates = graph.engine.read(
        f"MATCH (n{of(label)}) WITH n.name AS name, {hits} AS hits WHERE hits > 0 "
        f"RETURN DISTINCT name, hits ORDER BY hits DESC, size(name), name LIMIT {MAX_CANDIDATES}",
        parameters,
        MAX_CANDIDATES,
    )
    wanted = _groups(plain(name))
    likeness = {str(row[0]): _likeness(wanted, _groups(str(row[0]))) for row in candidates.rows}
    return sorted(likeness, key=lambda candidate: (-likeness[candidate], candidate))[:MAX_SIMILAR]


def _fragments(name: str) -> list[str]:
    """The beginnings of its words, the end of the longest and what is in between, in lower case, the beginnings also
    without accents: the engine compares letters as they are. Of a script without blanks what a search asks for."""
    words = sorted(dict.fromkeys(asked(name.lower(), parts=False)), key=len, reverse=True)[
        : MAX_FRAGMENTS - 1
    ]
    longest = words[0] if words else ""
    ends = [longest[-FRAGMENT:]] if len(longest) > FRAGMENT else []
    starts = [word[:FRAGMENT] for word in words]
    between = [longest[at : at + FRAGMENT] for at in range(FRAGMENT, len(longest) - FRAGMENT, FRAGMENT)]
    return list(dict.fromkeys([*starts, *ends, *map(folded, starts), *between]))[:MAX_FRAGMENTS]


def _groups(text: str) -> frozenset[str]:
    marked = f" {folded(text[:MAX_NAME])} "
    return frozenset(marked[at : at + 3] for at in range(len(marked) - 2))


def _likeness(wanted: frozenset[str], groups: frozenset[str]) -> float:
    return len(wanted & groups) / (len(wanted | groups) or 1)
