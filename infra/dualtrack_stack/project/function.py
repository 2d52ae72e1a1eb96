"""The function `own`, which runs a project's tools: what the project's settings say of it, as CloudFormation writes it.

Nothing here loads the CDK: the local stack changes its shipped template by this (`dualtrack_stack.local.own`), and the
CDK app the stacks of a stage on AWS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dualtrack_stack.project.model import OwnFunction

NAME: Final = "own"
CODE: Final = "functions/own"
"""The fixed name of its code in the local template (`StageSettings.asset_name`)."""
TOOLS: Final = "tools"
"""The folder of a project's tools, which is also their package."""

_NOT_PACKAGED: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


@dataclass(frozen=True, slots=True)
class StagePlace:
    """Where a stage is. The CDK's tokens stand for region and account until it is deployed."""

    stage: str
    region: str
    account: str
    partition: str = "aws"

    def fill(self, text: str) -> str:
        """``{stage}``, ``{region}`` and ``{account}`` in a text; no other braces."""
        for name in ("stage", "region", "account"):
            text = text.replace(f"{{{name}}}", getattr(self, name))
        return text


def secret_parameter(name: str, stage: str) -> str:
    """The parameter of a secret of the project's tools."""
    return f"/dualtrack-{stage}/tools/{name}"


def secret_parameters(own: OwnFunction, stage: str) -> list[str]:
    """The parameters of the project's secrets."""
    return [secret_parameter(name, stage) for name in own.secrets]


def how_to_put(parameter: str, region: str) -> str:
    """The command that puts a secret into the Parameter Store."""
    return f"aws ssm put-parameter --region {region} --name {parameter} --type SecureString --overwrite --value VALUE"


def own_variables(own: OwnFunction, place: StagePlace) -> dict[str, str]:
    """The variables of the function's environment besides those of every stage."""
    return {
        **{name: place.fill(value) for name, value in own.environment.items()},
        "TOOL_VARIABLES": ",".join(own.environment),
        "TOOL_SECRETS": ",".join(secret_parameters(own, place.stage)),
    }


def own_properties(own: OwnFunction, place: StagePlace) -> dict[str, Any]:
    """Properties of the AWS::Lambda::Function, variables without those of every stage."""
    network = {"SubnetIds": [*own.subnets], "SecurityGroupIds": [*own.security_groups]}
    return {
        "MemorySize": own.memory,
        "Timeout": own.seconds,
        "Environment": {"Variables": own_variables(own, place)},
        **({"VpcConfig": network} if own.subnets else {}),
    }


def own_statements(own: OwnFunction, place: StagePlace) -> list[dict[str, Any]]:
    """Statements of its role's policy besides those of every stage: what ``[tools] allow`` says, and its secrets."""
    statements = [
        _allow(permission.actions, [place.fill(resource) for resource in permission.resources])
        for permission in own.allow
    ]
    if secrets := secret_parameters(own, place.stage):
        arns = [
            f"arn:{place.partition}:ssm:{place.region}:{place.account}:parameter{name}" for name in secrets
        ]
        statements.append(_allow(["ssm:GetParameter"], arns))
    return statements


def own_code(root: Path) -> dict[Path, bytes]:
    """The project's tools as they lie in the function's code, with the files that are beside them."""
    folder = root / TOOLS
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    inside = {path.relative_to(root): path for path in paths}
    return {
        name: path.read_bytes() for name, path in inside.items() if not _NOT_PACKAGED.intersection(name.parts)
    }


def _allow(actions: Sequence[str], resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": [*actions], "Resource": resources}
