"""SnapStart by a stage's settings: off by default, only for functions that support it, with its price."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import assertions
from dualtrack_stack.app import build
from dualtrack_stack.costs import idle_lines
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.function_specs import SPECS
from dualtrack_stack.stacks.functions import snap_start

from tests.infra.test_workflow_definition import DEFINITIONS, tasks

if TYPE_CHECKING:
    from pathlib import Path


def test_no_stage_has_it_by_default() -> None:
    """It costs money even without chats."""
    assert [stage.snap_start for stage in STAGES.values()] == [()] * 3


def test_a_stage_enables_it_for_named_functions_and_prints_the_price() -> None:
    stage = replace(STAGES["local"], snap_start=("api", "turn"))
    template = assertions.Template.from_stack(build(cdk.App(), stage, None))
    functions = template.find_resources("AWS::Lambda::Function")
    started = {
        key[:-8].removesuffix("Function"): function["Properties"]["SnapStart"]
        for key, function in functions.items()
        if "SnapStart" in function["Properties"]
    }
    assert started == {key: {"ApplyOn": "PublishedVersions"} for key in ("Api", "Turn")}
    (line,) = [idle for idle in idle_lines([template.to_json()]) if idle.item.startswith("Snapshots of 2 ")]
    gigabytes = (SPECS["api"].memory + SPECS["turn"].memory) / 1024
    assert line.dollars == pytest.approx(2 * gigabytes * 3.954, rel=1e-3)  # $3.954 a GB and month


@pytest.mark.parametrize("wrong", ["apis", "stream", "graph", "graph_load"])
def test_a_function_that_can_have_no_snapshot_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"snap_start of stage prod: {wrong}; it can be abort, api, "):
        snap_start(replace(STAGES["prod"], snap_start=("turn", wrong)))


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_every_state_retries_errors_of_snapstart(path: Path) -> None:
    """Every SnapStart exception of Lambda, in Step Functions' notation."""
    operation = boto3.client("lambda", region_name="us-east-1").meta.service_model.operation_model("Invoke")
    refused = {
        f"Lambda.{shape.name}" for shape in operation.error_shapes if shape.name.startswith("SnapStart")
    }
    assert refused
    for name, state in tasks(path).items():
        retried = {error for retrier in state["Retry"] for error in retrier["ErrorEquals"]}
        assert refused <= retried, name
