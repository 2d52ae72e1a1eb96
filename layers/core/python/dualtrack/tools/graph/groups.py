"""Tools that count by category, location, system and context, and show the tree of categories.

They need the labels Category, Location, System and Context; if the graph lacks one, the error lists its labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack import tool
from dualtrack.tools.graph.answered import answered
from dualtrack.tools.graph.arguments import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    ForScope,
    Name,
    ScopeArgument,
    TargetLabel,
)
from dualtrack.tools.graph.lookup import not_found
from dualtrack.tools.graph.names import BadArgumentError, either, inward, label_named, labels_of, quoted
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.reading import all_rows
from dualtrack.tools.graph.related import RelatedPart, counts, leading_types, of_label
from dualtrack.tools.graph.relations import related_to, starts_named
from dualtrack.tools.graph.results import GraphResult, page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tools.graph.schema import StoredSchema

CATEGORY: Final = "Category"
SCOPES: Final = {"location": ("Location",), "system": ("System",), "both": ("Location", "System")}
DIMENSIONS: Final = ("Location", "System", "Context")
COUNTED: Final = "Asset"
"""The label that a breakdown counts by default, if the graph has it."""

MAX_CATEGORIES: Final = 1_000
MAX_ROWS: Final = 4_000


@tool(effect="reads")
@answered
def list_categories(graph: GraphNeeds, scope: ForScope | None = None) -> GraphResult:
    """Returns the tree of categories, each with the number of nodes directly in it, by label. Use it for "which
    categories are there?"; a scope keeps the categories that have locations or systems.
    """
    category = label_named(graph.schema, CATEGORY)
    labels = _scope_labels(graph.schema, scope) if scope else labels_of(graph.schema)
    names, parents = _names(graph, category), _parents(graph, category)
    members = _members(graph, category)
    tree = [
        {
            "node_id": node_id,
            "name": names[node_id],
            "depth": depth,
            "parent_id": parents.get(node_id),
            "members": members.get(node_id, {}),
        }
        for node_id, depth in _in_order(names, parents)
    ]
    if scope:
        kept = _with_ancestors(
            {node_id for node_id in members if members[node_id].keys() & set(labels)}, parents
        )
        tree = [entry for entry in tree if entry["node_id"] in kept]
    return {"scope": scope, **page(tree[:MAX_LIMIT], len(tree), 0)}


@tool(effect="reads")
@answered
def count_by_category(
    graph: GraphNeeds, scope: ForScope, target_label: TargetLabel | None = None
) -> GraphResult:
    """Counts per category of locations, of systems, or of both: how many of these there are in each category and those
    below it, or, with target_label, how many nodes of that label are in them.
    """
    category = label_named(graph.schema, CATEGORY)
    labels = _scope_labels(graph.schema, scope)
    target = label_named(graph.schema, target_label) if target_label else None
    names = _names(graph, category)
    by_label = {label.lower(): _per_category(graph, category, label, target, names) for label in labels}
    return {"scope": scope, "target_label": target, **by_label}


@tool(effect="reads")
@answered
def count_breakdown(
    graph: GraphNeeds, name: Name | None = None, target_label: TargetLabel | None = None
) -> GraphResult:
    """Breaks nodes of a label (default Asset) down by Location, System and Context: how many belong directly to each.
    Without a name all of them are counted, with a name those that are in or related to it. Use it for "give me a
    breakdown of Y" and "which place or system has most?".
    """
    target = _target(graph.schema, target_label)
    if name is None:
        total = next(label.count for label in graph.schema.labels if label.name == target)
        match, parameters = f"MATCH (m:{quoted(target)}) ", dict[str, Any]()
        named: GraphResult = {}
    else:
        starts = starts_named(graph, name)
        if not starts:
            return not_found(graph, name)
        ways = related_to(graph, starts, target, tuple(kind.name for kind in graph.schema.types))
        total = sum(counts(graph.engine, ways).values())
        named = {"found": True, "named_nodes": list(starts[:DEFAULT_LIMIT])}
        if not total:
            return {**named, "target_label": target, "total_count": 0, "by": {}}
        match, parameters = of_label(graph.engine, ways, target)
    by = dict(_by_dimension(graph, target, match, parameters))
    return {**named, "target_label": target, "total_count": total, "by": by}


def _by_dimension(
    graph: GraphNeeds, target: str, match: str, parameters: dict[str, Any]
) -> Iterator[tuple[str, GraphResult]]:
    for dimension in DIMENSIONS:
        types = [kind.name for kind in graph.schema.types if (target, dimension) in kind.ends]
        if not types:
            continue
        counted = graph.engine.read(
            f"{match}WITH DISTINCT m MATCH (m)-[:{either(types)}]->(g:{quoted(dimension)}) "
            "RETURN g.node_id, g.name, count(DISTINCT m.node_id) AS count "
            f"ORDER BY count DESC, g.name, g.node_id LIMIT {DEFAULT_LIMIT + 1}",
            parameters,
            DEFAULT_LIMIT,
        )
        rows = [{"node_id": node_id, "name": name, "count": count} for node_id, name, count in counted.rows]
        yield dimension, {"groups": rows, **({"more": True} if counted.more else {})}


def _target(schema: StoredSchema, target: str | None) -> str:
    """The label to count: the requested one, else Asset, else the largest that leads to one of `DIMENSIONS`."""
    labels = labels_of(schema)
    if target:
        return label_named(schema, target)
    leads = {
        start
        for kind in schema.types
        for start, end in kind.ends
        if end in DIMENSIONS and start not in DIMENSIONS
    }
    if COUNTED in leads:
        return COUNTED
    if not leads:
        raise BadArgumentError(
            f"nothing in this graph leads to a Location, System or Context; its labels are: {', '.join(labels[:50])}."
        )
    return max((label for label in schema.labels if label.name in leads), key=lambda label: label.count).name


def _scope_labels(schema: StoredSchema, scope: ScopeArgument) -> tuple[str, ...]:
    return tuple(label_named(schema, label) for label in SCOPES[scope])


def _names(graph: GraphNeeds, category: str) -> dict[str, str]:
    """The categories' names by id, in the order of the names."""
    rows, more = all_rows(
        graph.engine,
        f"MATCH (c:{quoted(category)}) RETURN c.node_id, c.name ORDER BY c.name, c.node_id",
        {},
        MAX_CATEGORIES,
    )
    if more:
        raise BadArgumentError(
            f"there are more than {MAX_CATEGORIES} categories: use list_nodes or run_query."
        )
    return {str(node_id): str(name) for node_id, name in rows}


def _parents(graph: GraphNeeds, category: str) -> dict[str, str]:
    """Each category's parent; the first by id if there are several."""
    types = [kind.name for kind in graph.schema.types if (category, category) in kind.ends]
    if not types:
        return {}
    label = quoted(category)
    rows, _ = all_rows(
        graph.engine,
        f"MATCH (c:{label})-[:{either(types)}]->(p:{label}) WHERE c.node_id <> p.node_id "
        "RETURN c.node_id AS own, min(p.node_id) ORDER BY own",
        {},
        MAX_CATEGORIES,
    )
    return {str(own): str(parent) for own, parent in rows}


def _members(graph: GraphNeeds, category: str) -> dict[str, dict[str, int]]:
    """How many nodes of each label lead directly to each category."""
    types = leading_types(graph.schema, category, [kind.name for kind in graph.schema.types])
    labels = {start for kind in graph.schema.types for start, end in kind.ends if end == category} - {
        category
    }
    if not labels:
        return {}
    rows, _ = all_rows(
        graph.engine,
        f"MATCH (c:{quoted(category)})<-[:{either(types)}]-(m:{either(sorted(labels))}) "
        "RETURN c.node_id AS own, label(m) AS label, count(DISTINCT m.node_id) ORDER BY own, label",
        {},
        MAX_ROWS,
    )
    members: dict[str, dict[str, int]] = {}
    for own, label, count in rows:
        members.setdefault(str(own), {})[str(label)] = int(count)
    return members


def _in_order(names: dict[str, str], parents: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Each category with its depth, before its descendants; a cycle begins at the top."""
    below: dict[str, list[str]] = {}
    for node_id in names:
        below.setdefault(parents.get(node_id, ""), []).append(node_id)
    seen: set[str] = set()
    for top in (*below.get("", ()), *names):
        stack = [(top, 0)]
        while stack:
            node_id, depth = stack.pop()
            if node_id not in seen:
                seen.add(node_id)
                yield node_id, depth
                stack += [(under, depth + 1) for under in reversed(below.get(node_id, ()))]


def _with_ancestors(kept: set[str], parents: dict[str, str]) -> set[str]:
    ancestors: set[str] = set()
    for start in kept:
        node_id: str | None = start
        while node_id is not None and node_id not in ancestors:
            ancestors.add(node_id)
            node_id = parents.get(node_id)
    return ancestors


def _per_category(
    graph: GraphNeeds, category: str, label: str, target: str | None, names: dict[str, str]
) -> GraphResult:
    """The categories that have nodes of the label, with their number, or the number of target nodes in them."""
    types = leading_types(graph.schema, category, [kind.name for kind in graph.schema.types])
    if not names or not any((label, category) in kind.ends for kind in graph.schema.types):
        return page([], 0, 0)
    part = RelatedPart(category, tuple(names), inward(types), (label,))
    counted = "RETURN n.node_id AS own, count(DISTINCT m.node_id) ORDER BY own"
    if target and target != label:
        within = leading_types(graph.schema, label, [kind.name for kind in graph.schema.types])
        counted = (
            f"WITH DISTINCT n.node_id AS own, m MATCH (m){inward(within)}(x:{quoted(target)}) "
            "RETURN own, count(DISTINCT x.node_id) ORDER BY own"
        )
    rows, _ = all_rows(graph.engine, part.match() + counted, part.parameters, MAX_CATEGORIES)
    categories = [{"node_id": own, "name": names[own], "count": count} for own, count in rows]
    categories.sort(key=lambda entry: (-entry["count"], entry["name"], entry["node_id"]))
    return page(categories[:MAX_LIMIT], len(categories), 0)
