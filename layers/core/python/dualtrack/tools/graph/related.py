"""The nodes that are related to a node: those in it, nested ones included, and those that it leads to.

A node is in another if a chain of at most six relationships leads from the first to the second, each of a type that
can end at the second's label: an asset LOCATED_IN a room LOCATED_IN a hall is in the hall, and an asset IN_CATEGORY of
a category SUBCATEGORY_OF another is in both. Nodes of labels that cannot be in a node are related to it if it has a
relationship to them. So what surrounds a location is not in it. Each node counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.tools.graph.arguments import MAX_DEPTH
from dualtrack.tools.graph.names import BadArgumentError, either, inward, quoted
from dualtrack.tools.graph.reading import all_rows
from dualtrack.tools.graph.results import node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.tools.graph.engine import Engine, GraphValue
    from dualtrack.tools.graph.needs import GraphNeeds
    from dualtrack.tools.graph.results import GraphResult
    from dualtrack.tools.graph.schema import StoredSchema

MAX_ROWS: Final = 10_000
"""Maximum counts that are read: one for each start node and label."""

MAX_JOINED: Final = 5_000
"""Maximum ids that are read to count distinct nodes: what is related to start nodes of several labels may overlap."""


@dataclass(frozen=True, slots=True)
class RelatedPart:
    """Nodes that are related to the start nodes (of one label) in one way: ``(n:label)hop(m:targets)``."""

    label: str
    starts: tuple[str, ...]
    hop: str
    targets: tuple[str, ...]

    def match(self, target: str | None = None) -> str:
        """The beginning of a query: each start node `n` with each related `m`, of one label or of all."""
        targets = quoted(target) if target else either(self.targets)
        return (
            f"MATCH (n:{quoted(self.label)}){self.hop}(m:{targets}) "
            "WHERE n.node_id IN $roots AND m.node_id <> n.node_id "
        )

    @property
    def parameters(self) -> dict[str, GraphValue]:
        """The parameters of `match`."""
        return {"roots": list(self.starts)}


def parts(
    schema: StoredSchema, label: str, starts: Sequence[str], target: str | None, types: Sequence[str]
) -> tuple[RelatedPart, ...]:
    """How nodes of the target label (None: any label) are related to the start nodes over these types: at most two
    parts, which share no label."""
    leading = leading_types(schema, label, types)
    within = _labels_within(schema, label, leading)
    outward = [
        (kind.name, end)
        for kind in schema.types
        if kind.name in types
        for start, end in kind.ends
        if start == label
    ]
    beyond = tuple(
        dict.fromkeys(end for _, end in outward if end not in within and end in (target or end, end))
    )
    ways = []
    if wanted := _wanted(within, target):
        ways.append(RelatedPart(label, tuple(starts), inward(leading), wanted))
    if wanted := _wanted(beyond, target):
        over = tuple(dict.fromkeys(name for name, end in outward if end in wanted))
        ways.append(RelatedPart(label, tuple(starts), f"-[:{either(over)}]->", wanted))
    return tuple(ways)


def leading_types(schema: StoredSchema, label: str, types: Sequence[str]) -> tuple[str, ...]:
    """Those of the types that lead to the label."""
    return tuple(
        kind.name for kind in schema.types if kind.name in types and any(end == label for _, end in kind.ends)
    )


def _wanted(labels: Sequence[str], target: str | None) -> tuple[str, ...]:
    return tuple(label for label in labels if target in (None, label))


def _labels_within(schema: StoredSchema, label: str, types: Sequence[str]) -> tuple[str, ...]:
    """The labels from which a chain of these types leads to the label."""
    ends = [pair for kind in schema.types if kind.name in types for pair in kind.ends]
    reached, edge = dict[str, None](), {label}
    for _ in range(MAX_DEPTH):
        edge = {start for start, end in ends if end in edge and start not in reached}
        reached |= dict.fromkeys(sorted(edge))
    return tuple(reached)


def counts_by_start(engine: Engine, ways: Sequence[RelatedPart]) -> dict[str, dict[str, int]]:
    """How many nodes of each label are related to each start node."""
    by_start: dict[str, dict[str, int]] = {}
    for part in ways:
        counted = "RETURN n.node_id, label(m) AS label, count(DISTINCT m.node_id) ORDER BY n.node_id, label"
        for start, label, count in _rows(engine, part, counted):
            by_start.setdefault(str(start), {})[str(label)] = count
    return by_start


def _rows(engine: Engine, part: RelatedPart, returned: str) -> list[tuple[Any, ...]]:
    return all_rows(engine, part.match() + returned, part.parameters, MAX_ROWS)[0]


def counts(engine: Engine, ways: Sequence[RelatedPart]) -> dict[str, int]:
    """How many distinct nodes of each label are related to any start node."""
    if overlap(ways):
        return {label: len(ids) for label, ids in _joined(engine, ways).items()}
    by_label: dict[str, int] = {}
    for part in ways:
        counted = "RETURN label(m) AS label, count(DISTINCT m.node_id) ORDER BY label"
        by_label |= {str(label): int(count) for label, count in _rows(engine, part, counted)}
    return dict(sorted(by_label.items()))


def overlap(ways: Sequence[RelatedPart]) -> bool:
    """Whether several parts have nodes of the same label."""
    labels = [label for part in ways for label in part.targets]
    return len(set(labels)) < len(labels)


def _joined(engine: Engine, ways: Sequence[RelatedPart]) -> dict[str, list[str]]:
    """The distinct ids of related nodes, by label."""
    ids_by_label: dict[str, set[str]] = {}
    for part in ways:
        collected = f"WITH DISTINCT label(m) AS label, m.node_id AS id LIMIT {MAX_JOINED + 1} RETURN label, collect(id)"
        for label, ids in _rows(engine, part, f"{collected} ORDER BY label"):
            ids_by_label.setdefault(str(label), set()).update(ids)
    if sum(map(len, ids_by_label.values())) > MAX_JOINED:
        raise BadArgumentError(
            "nodes of several labels have this name, and too much is related to them: name the label."
        )
    return {label: sorted(ids) for label, ids in sorted(ids_by_label.items()) if ids}


def listed(
    graph: GraphNeeds, ways: Sequence[RelatedPart], limit: int, offset: int
) -> tuple[list[GraphResult], int]:
    """A page of the related nodes, by label, name and id, and how many there are in all."""
    totals = counts(graph.engine, ways)
    nodes: list[GraphResult] = []
    before = 0
    for label, count in totals.items():
        skipped = max(offset - before, 0)
        before += count
        room = limit - len(nodes)
        if skipped >= count or not room:
            continue
        match, parameters = of_label(graph.engine, ways, label)
        rows = graph.engine.read(
            f"{match}WITH DISTINCT m RETURN m ORDER BY m.name, m.node_id SKIP {skipped} LIMIT {room}",
            parameters,
            room,
        )
        nodes += [node(row[0]) for row in rows.rows]
    return nodes, sum(totals.values())


def of_label(engine: Engine, ways: Sequence[RelatedPart], label: str) -> tuple[str, dict[str, GraphValue]]:
    """The beginning of a query whose `m` are the related nodes of a label, and its parameters."""
    if overlap(ways):
        ids = _joined(engine, ways).get(label, [])
        return f"UNWIND $ids AS id MATCH (m:{quoted(label)}) WHERE m.node_id = id ", {"ids": list(ids)}
    part = next(candidate for candidate in ways if label in candidate.targets)
    return part.match(label), part.parameters
