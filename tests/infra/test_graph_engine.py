"""The setting of the graph's engine: which functions get it, which may read the password, which values are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.checked_settings import checked

from tests.drivers.templates import Stage, readable
from tests.infra.rules.registry import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

URL = "neo4j+s://graph.example.org"
NAMES = ("DUALTRACK_GRAPH_ENGINE", "DUALTRACK_GRAPH_URL", "DUALTRACK_GRAPH_USER", "GRAPH_SECRET")


@pytest.fixture(scope="module")
def with_server(assembly: Callable[..., Path]) -> Stage:
    return Stage("prod", assembly(*VARIANTS["prod with everything set"]))


def engine_settings(stage: Stage) -> dict[str, tuple[str, ...]]:
    """The engine's settings by function."""
    functions = stage.resources("Chat", "AWS::Lambda::Function")
    variables: dict[str, dict[str, str]] = {
        key: function.get("Environment", {}).get("Variables", {}) for key, function in functions.items()
    }
    return {
        key.split("Function")[0]: tuple(environment[name] for name in NAMES)
        for key, environment in variables.items()
        if set(NAMES) & environment.keys()
    }


def readers(stage: Stage) -> set[str]:
    """The roles that may read the password."""
    return {
        key.split("Role")[0]
        for key, policy in stage.resources("Chat", "AWS::IAM::Policy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if any(
            readable(resource).endswith(":parameter/dualtrack-prod/graph")
            for resource in _many(statement["Resource"])
        )
    }


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_with_a_server_one_function_has_its_address_and_may_read_the_password(with_server: Stage) -> None:
    assert engine_settings(with_server) == {"Graph": ("bolt", URL, "neo4j", "/dualtrack-prod/graph")}
    assert readers(with_server) == {"Graph"}


def test_without_one_nobody_may_read_it(prod: Stage) -> None:
    assert engine_settings(prod) == {"Graph": ("ladybug", "", "neo4j", "/dualtrack-prod/graph")}
    assert readers(prod) == set()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"DUALTRACK_GRAPH_ENGINE": "neptune"},
            "DUALTRACK_GRAPH_ENGINE = neptune .*: must be ladybug or bolt",
        ),
        ({"DUALTRACK_GRAPH_ENGINE": "bolt"}, "DUALTRACK_GRAPH_URL is not set: must be an address"),
        (
            {"DUALTRACK_GRAPH_URL": "bolt://graph.example.org"},
            "DUALTRACK_GRAPH_URL = .*: bolt:// is only for this machine",
        ),
    ],
)
def test_a_setting_that_means_no_server_is_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked(settings)
