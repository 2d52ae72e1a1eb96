"""A stage on Bedrock: only IAM, for the functions that call the model, and no Anthropic key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.checked_settings import checked
from dualtrack.models.provider import PROVIDERS

from tests.drivers.templates import Stage, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ASKING = {"Turn", "Search", "Summarise"}
ON_BEDROCK = {"DUALTRACK_PROVIDER": "bedrock"}


@pytest.fixture(scope="module")
def bedrock(assembly: Callable[..., Path]) -> Stage:
    return Stage("prod", assembly("prod", ON_BEDROCK))


@pytest.fixture(scope="module")
def changing(assembly: Callable[..., Path]) -> Stage:
    """A deployment that switches from Anthropic to another region's Bedrock."""
    settings = {
        **ON_BEDROCK,
        "DUALTRACK_PROVIDER_BEFORE": "anthropic",
        "BEDROCK_BASE_URL": "https://bedrock-mantle.us-west-2.api.aws/anthropic",
    }
    return Stage("staging", assembly("staging", settings))


def inference(stage: Stage) -> dict[str, list[str]]:
    """The resources that each role may call Bedrock on."""
    return {
        name: resources
        for name, statements in roles(stage).items()
        for actions, resources in statements
        if any(action.startswith("bedrock") for action in actions)
    }


def keys(stage: Stage) -> set[str]:
    """The roles that may read Anthropic's key."""
    return {
        name
        for name, statements in roles(stage).items()
        for _, resources in statements
        if any(resource.endswith("/anthropic") for resource in resources)
    }


def roles(stage: Stage) -> dict[str, list[tuple[list[str], list[str]]]]:
    policies = stage.resources("Chat", "AWS::IAM::Policy").items()
    return {
        name.split("Role")[0]: [
            (_many(statement["Action"]), [readable(resource) for resource in _many(statement["Resource"])])
            for statement in policy["PolicyDocument"]["Statement"]
        ]
        for name, policy in policies
    }


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def variables(stage: Stage) -> dict[str, Mapping[str, Any]]:
    functions = stage.resources("Chat", "AWS::Lambda::Function").items()
    return {
        name.split("Function")[0]: function.get("Environment", {}).get("Variables", {})
        for name, function in functions
    }


def test_functions_that_call_the_model_may_call_bedrock_and_read_no_key(
    bedrock: Stage,
) -> None:
    rights = inference(bedrock)
    assert set(rights) == ASKING
    for resources in rights.values():
        (resource,) = resources
        assert resource.endswith(":project/*")
        assert ":bedrock-mantle:" in resource
        assert "*" not in resource.removesuffix("*")
    assert not keys(bedrock)


def test_no_action_but_inference(bedrock: Stage) -> None:
    actions = {
        action for statements in roles(bedrock).values() for names, _ in statements for action in names
    }
    assert {action for action in actions if "bedrock" in action} == {"bedrock-mantle:CreateInference"}


def test_the_functions_are_told(bedrock: Stage) -> None:
    for name in ASKING:
        environment = variables(bedrock)[name]
        assert environment["DUALTRACK_PROVIDER"] == "bedrock"
        assert readable(environment["BEDROCK_BASE_URL"]).startswith("https://bedrock-mantle.")
        assert not environment["BEDROCK_SECRET"]


def test_on_anthropic_nothing_of_bedrock_is_allowed(prod: Stage) -> None:
    assert not inference(prod)
    assert keys(prod) == ASKING


def test_during_a_switch_both_providers_are_allowed(changing: Stage) -> None:
    assert keys(changing) == set(inference(changing)) == ASKING
    assert all(":us-west-2:" in resource for (resource,) in inference(changing).values())


def test_another_provider_is_refused() -> None:
    known = " or ".join(PROVIDERS)
    with pytest.raises(ValueError, match=rf"DUALTRACK_PROVIDER_BEFORE = x .*: must be {known}"):
        checked({"DUALTRACK_PROVIDER_BEFORE": "x"})
