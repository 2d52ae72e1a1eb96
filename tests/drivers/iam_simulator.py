"""What IAM would decide: `@cloud-copilot/iam-simulate`, which `.ci/install_iam_simulate.sh` installs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.node import node

from tests.drivers.node import npm_script
from tests.drivers.stage_permissions import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.drivers.recorded_calls import Asked

INSTALL: Final = "bash .ci/install_iam_simulate.sh"
SCRIPT: Final = Path(__file__).with_name("iam_simulate.mjs")
ALLOWED: Final = "Allowed"

_CONTEXT: Final = {"aws:SecureTransport": "true"}

Question = tuple["Asked", "Sequence[Mapping[str, Any]]"]
"""A call, and the statements of its role."""


def decisions(questions: Sequence[Question], resource_policies: Mapping[str, Any]) -> list[str]:
    """`ALLOWED`, ``ImplicitlyDenied`` or ``ExplicitlyDenied`` for each question. Skips the test without the package."""
    package = npm_script("@cloud-copilot/iam-simulate", "package.json", folder="npm-iam", install=INSTALL)
    requests = [_request(asked, statements, resource_policies) for asked, statements in questions]
    answer = subprocess.run(
        [node(), str(SCRIPT), str(package.parents[3])],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return list(json.loads(answer.stdout))


def _request(
    asked: Asked, statements: Sequence[Mapping[str, Any]], resource_policies: Mapping[str, Any]
) -> dict[str, Any]:
    request = {
        "principal": f"arn:aws:iam::{ACCOUNT}:role/{asked.function}",
        "action": asked.action,
        "resource": asked.resource,
        "account": ACCOUNT,
        "context": {
            **_CONTEXT,
            **{name: _values(name, values) for name, values in asked.context},
        },
        "policy": {"Version": "2012-10-17", "Statement": list(statements)},
    }
    attached = _of_resource(asked.resource, resource_policies)
    return {**request, "resourcePolicy": attached} if attached else request


def _values(name: str, values: Sequence[str]) -> list[str] | str:
    """`dynamodb:LeadingKeys` has several values, other keys one."""
    return list(values) if name == "dynamodb:LeadingKeys" else values[0]


def _of_resource(resource: str, policies: Mapping[str, Any]) -> Any:
    """The policy of the bucket or key; an object has that of its bucket."""
    return policies.get(resource.partition("/")[0] if resource.startswith("arn:aws:s3:") else resource)
