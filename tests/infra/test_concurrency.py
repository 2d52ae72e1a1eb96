"""Reserved concurrency: what a new account can deploy, and what a stage may set."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from dualtrack_stack.app import build
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.functions import reserved_concurrency

if TYPE_CHECKING:
    from tests.drivers.templates import Stage


def test_no_function_reserves_concurrency_by_default(aws_stage: Stage) -> None:
    """Lambda refuses a reservation that leaves the account less than 100, and a new account often has 10 in all.

    Lambda Developer Guide, "Configuring reserved concurrency" and "Lambda quotas".
    """
    templates = sorted(aws_stage.folder.glob("*.template.json"))
    assert len(templates) > 3
    reserving = {
        f"{path.name}: {key}"
        for path in templates
        for key, resource in json.loads(path.read_text())["Resources"].items()
        if "ReservedConcurrentExecutions" in resource.get("Properties", {})
    }
    assert not reserving


def test_a_stage_keeps_concurrency_for_the_functions_it_names() -> None:
    stage = replace(STAGES["local"], reserved_concurrency={"abort": 5, "credit_reset": 1})
    chat = build(cdk.App(), stage, None)
    functions = assertions.Template.from_stack(chat).find_resources("AWS::Lambda::Function")
    reserved = {
        key[:-8].removesuffix("Function"): function["Properties"]["ReservedConcurrentExecutions"]
        for key, function in functions.items()
        if "ReservedConcurrentExecutions" in function["Properties"]
    }
    assert reserved == {"Abort": 5, "CreditReset": 1}


@pytest.mark.parametrize("wrong", [{"aborts": 5}, {"abort": 0}, {"api": 1, "abort": -1}])
def test_a_reservation_that_no_function_can_have_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="reserved_concurrency of stage prod"):
        reserved_concurrency(replace(STAGES["prod"], reserved_concurrency=wrong))
