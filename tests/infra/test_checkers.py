"""Third-party checkers: cdk-nag and cdk-preflight at synthesis, cfn-lint on the templates."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from dualtrack_stack.app import check

from tests.drivers.templates import STACKS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.drivers.templates import Stage

# The CDK adds dependencies that references already enforce.
REDUNDANT = "W3005"
# It knows only numbers; a state in JSONata takes an expression (AWS Step Functions Developer Guide, "Transforming data
# with JSONata": fields that accept JSONata, TimeoutSeconds among them). tests/infra/test_workflow_definition.py has it.
TIMEOUT_BY_JSONATA = "E3601", "'States/Turn/TimeoutSeconds'"


def test_cdk_nag_has_looked_and_found_nothing(aws_stage: Stage) -> None:
    """`dualtrack_stack.app` stops at a finding; this checks that cdk-nag ran at all."""
    report = json.loads((aws_stage.folder / "validation-report.json").read_text())
    plugins = {plugin["pluginName"]: plugin for plugin in report["pluginReports"]}
    (nag,) = [plugin for name, plugin in plugins.items() if "AwsSolutions" in name]
    assert nag["conclusion"] == "success"


def test_preflight_stops_a_synthesis(tmp_path: Path) -> None:
    """`dualtrack_stack.app` ends with the same check; it knows what AWS refuses in a deployment and no schema says."""
    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "Odd")
    # PutMetricAlarm refuses to look back over more than seven days
    cloudwatch.CfnAlarm(
        stack, "Alarm", comparison_operator="GreaterThanThreshold", evaluation_periods=8, period=86_400,
        threshold=1, metric_name="Errors", namespace="AWS/Lambda", statistic="Sum",
    )  # fmt: skip
    check(app)
    with pytest.raises(RuntimeError, match="EvaluationPeriods"):
        app.synth()


def test_cfn_lint_has_nothing_to_say(staging: Stage, prod: Stage) -> None:
    templates = [stage.folder / f"{stack}.template.json" for stage in (staging, prod) for stack in STACKS]
    done = subprocess.run(
        [
            sys.executable, "-c", "import sys; from cfnlint.runner.cli import main; sys.exit(main())",
            *templates,
            "--regions", "us-east-1", "eu-central-1",
            "--ignore-checks", REDUNDANT,
            "--format", "json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    rule, place = TIMEOUT_BY_JSONATA
    findings = [
        finding
        for finding in json.loads(done.stdout)
        if finding["Rule"]["Id"] != rule or not finding["Message"].endswith(f"at {place}")
    ]
    assert (findings, done.stderr) == ([], "")


def test_the_shipped_templates_are_those_of_the_sources() -> None:
    """A fresh machine starts from them; ``python -m dualtrack_stack.local.synth`` rewrites them."""
    from dualtrack_stack.local.synth import content_key, shipped_key

    assert shipped_key() == content_key(), "run: uv run --extra deploy python -m dualtrack_stack.local.synth"
