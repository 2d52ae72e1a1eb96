"""The sample built by the loader and queried through the engine's child: every tool answers as in this process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.corpora.graph.load import GraphFile, make_database, taken_in
from dualtrack.corpora.graph.survey import Survey
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack_stack.local.sample_graph import EDGES, NODES

from tests.drivers.graph import TOOLS, needs_of, sample, told

if TYPE_CHECKING:
    from pathlib import Path

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("find_node", {"name": "Biofiltr 11"}),
    ("count_nodes", {"name": "pump"}),
    ("count_by_label", {"label": "Asset"}),
    ("list_nodes", {"label": "Asset", "name_prefix": "Intake", "limit": 3}),
    ("list_categories", {"scope": "system"}),
    ("get_node_connections", {"node_id": "loc-0034"}),
    ("count_by_category", {"scope": "location", "target_label": "Asset"}),
    ("count_related", {"node_id": "loc-0034"}),
    ("count_related_by_name", {"name": "Pump Room", "target_label": "Asset"}),
    ("list_related", {"node_id": "loc-0034", "limit": 200}),
    ("list_related_by_name", {"name": "Biofilter 11", "target_label": "Asset"}),
    ("count_breakdown", {"name": "Biofilter 11"}),
    ("find_path", {"from_": "Biofilter 11", "to": "Control Room"}),
    ("run_query", {"query": "MATCH (n:System)-[r]->(m) RETURN n, r, m.name ORDER BY n.name, m.name LIMIT 3"}),
)


@cache
def works() -> GraphNeeds:
    return needs_of(sample())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> GraphNeeds:
    """As in the function `graph`."""
    folder: Path = tmp_path_factory.mktemp("graph")
    sources, survey = [GraphFile(path.name, path) for path in (NODES, EDGES)], Survey()
    assert taken_in(survey, sources) == {}
    return GraphNeeds(Ladybug(make_database(folder, sources, survey)), survey.schema())


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[tool for tool, _ in CALLS])
def test_a_tool_says_the_same(loaded: GraphNeeds, tool: str, arguments: dict[str, Any]) -> None:
    answer = told(loaded, tool, **arguments)
    assert answer == told(works(), tool, **arguments)


def test_the_schema_is_the_same(loaded: GraphNeeds) -> None:
    counts, own = (
        {label["label"]: label for label in told(needs, "get_schema")["labels"]}
        for needs in (loaded, works())
    )
    assert {label: row["count"] for label, row in counts.items()} == {
        label: row["count"] for label, row in own.items()
    }


def test_every_tool_is_called() -> None:
    assert {tool for tool, _ in CALLS} | {"get_schema"} == set(TOOLS)
