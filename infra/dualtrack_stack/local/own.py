"""The function of the project's tools in the local stack: the shipped template has it for a project without settings,
and is changed by those of this one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from dualtrack.settings import NOT_SET
from dualtrack_stack.local.aws import REGION
from dualtrack_stack.project.function import (
    NAME,
    StagePlace,
    own_properties,
    own_statements,
    secret_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_stack.local.aws import Aws
    from dualtrack_stack.project.model import OwnFunction

PLACE: Final = StagePlace("local", REGION, "000000000000")


def adapt(body: dict[str, Any], own: OwnFunction) -> None:
    """Change the function, its role's policy, and the size that receipts reckon with. The function runs on this
    machine, so its network is left out."""
    functions = {
        key: resource["Properties"]
        for key, resource in body["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
    }
    (function,) = (f for f in functions.values() if _variables(f).get("POWERTOOLS_SERVICE_NAME") == NAME)
    properties = own_properties(own, PLACE)
    function.update({name: properties[name] for name in ("MemorySize", "Timeout")})
    _variables(function).update(properties["Environment"]["Variables"])
    role = function["Role"]["Fn::GetAtt"][0]
    (policy,) = (
        resource["Properties"]
        for resource in body["Resources"].values()
        if resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]
    )
    policy["PolicyDocument"]["Statement"] += own_statements(own, PLACE)
    for variables in map(_variables, functions.values()):
        if sizes := variables.get("FUNCTION_SIZES"):
            variables["FUNCTION_SIZES"] = json.dumps({**json.loads(sizes), NAME: own.memory})


def _variables(function: dict[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = function.get("Environment", {}).get("Variables", {})
    return variables


def put_secrets(aws: Aws, own: OwnFunction, environment: Mapping[str, str]) -> list[str]:
    """Put the secrets' values of the environment into the local Parameter Store; the names of those that it has not."""
    store = aws.client("ssm")
    for name in own.secrets:
        value, parameter = environment.get(name) or NOT_SET, secret_parameter(name, PLACE.stage)
        store.put_parameter(Name=parameter, Value=value, Type="SecureString", Overwrite=True)
    return [name for name in own.secrets if not environment.get(name)]
