"""Calls that the functions of a local stack made, as IAM sees them: action, resource, condition keys.

`tests.drivers.recording_emulator` writes them down; here each becomes the authorisations that AWS would ask for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tests.drivers.recording_emulator import CALLS
from tests.drivers.stage_permissions import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ROLE: Final = re.compile(r"-(\w+)Role[0-9A-F]{8}-")
_PARTITION: Final = re.compile(r"\s*(?:#?\w+)\s*=\s*(:\w+)")
_ON_ITEMS: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_S3: Final = {
    "GET": "GetObject",
    "HEAD": "GetObject",
    "PUT": "PutObject",
    "POST": "PutObject",
    "DELETE": "DeleteObject",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One authorisation. ``resource``: an ARN, of the stage that was recorded until `moved`."""

    function: str
    action: str
    resource: str
    context: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())


def read_calls(folder: Path) -> list[Asked]:
    """The distinct authorisations of a stack's functions, in order."""
    asked: dict[Asked, None] = {}
    for line in (folder / CALLS).read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        match = _ROLE.search(call["role"])
        assert match, call["role"]
        for action, resource, context in _authorisations(
            call["service"], call["operation"], call["parameters"]
        ):
            fields = tuple((name, tuple(values)) for name, values in context.items())
            asked[Asked(match[1], action, resource, fields)] = None
    return list(asked)


def moved(asked: Asked, recorded: Mapping[str, str], stage: Mapping[str, str]) -> Asked:
    """The same call in another stage. ``recorded``, ``stage``: the outputs of the two."""
    names = {value: stage[name] for name, value in recorded.items() if name in stage}
    service = asked.action.partition(":")[0]
    here = f"{REGION}:{ACCOUNT}"
    name, separator, rest = _split(service, asked.resource)
    named = names.get(name, name)
    match service:
        case "dynamodb":
            arn = f"arn:aws:dynamodb:{here}:table/{named}"
        case "s3":
            arn = f"arn:aws:s3:::{named}"
        case "lambda":
            arn = f"arn:aws:lambda:{here}:function:{named}"
        case "ssm":
            arn = f"arn:aws:ssm:{here}:parameter{named}"
        case "cognito-idp":
            arn = f"arn:aws:cognito-idp:{here}:userpool/{named}"
        case "states" if separator:
            arn = named.replace(":stateMachine:", ":execution:")
        case _:
            arn = named
    assert named != name, asked
    return replace(asked, resource=f"{arn}{separator}{rest}")


def _split(service: str, resource: str) -> tuple[str, str, str]:
    """The output's value in a resource, and what follows it."""
    if service == "states" and ":execution:" in resource:
        machine, separator, execution = resource.replace(":execution:", ":stateMachine:").rpartition(":")
        return machine, separator, execution
    if service in ("dynamodb", "s3"):
        return resource.partition("/")
    return resource.partition(":") if service == "lambda" else (resource, "", "")


Authorisation = tuple[str, str, dict[str, list[str]]]


def _authorisations(service: str, operation: str, parameters: Any) -> Iterator[Authorisation]:
    match service:
        case "dynamodb":
            yield from _on_items(operation, parameters)
        case "s3":
            yield from _on_objects(operation, parameters)
        case "lambda":
            alias = f":{parameters['Qualifier']}" if parameters["Qualifier"] else ""
            name = parameters["FunctionName"].rpartition(":function:")[2]
            yield "lambda:InvokeFunction", f"{name}{alias}", {}
        case "ssm":
            yield f"ssm:{operation}", parameters["Name"], {}
        case "states":
            arn = parameters.get("stateMachineArn") or parameters["executionArn"]
            yield f"states:{operation}", arn, {}
        case "kms":
            yield f"kms:{operation}", parameters["KeyId"], {}
        case "cognito-idp":
            yield f"cognito-idp:{operation}", parameters["UserPoolId"], {}
        case _:
            raise ValueError(f"{service}:{operation} is not known here")


def _on_items(operation: str, parameters: Any) -> Iterator[Authorisation]:
    """A transaction and a batch ask for each of their items."""
    if operation in ("TransactWriteItems", "TransactGetItems"):
        for entry in parameters["TransactItems"]:
            ((kind, item),) = entry.items()
            yield _item(_ON_ITEMS.get(kind, "GetItem"), item)
    elif operation == "BatchGetItem":
        for table, wanted in parameters["RequestItems"].items():
            yield _table(operation, table, [_text(key["pk"]) for key in wanted["Keys"]])
    elif operation == "BatchWriteItem":
        for table, requests in parameters["RequestItems"].items():
            items = [request.popitem()[1] for request in map(dict, requests)]
            keys = [_text((item.get("Item") or item["Key"])["pk"]) for item in items]
            yield _table(operation, table, keys)
    elif operation == "Query":
        match = _PARTITION.match(parameters["KeyConditionExpression"])
        assert match, parameters
        key = _text(parameters["ExpressionAttributeValues"][match[1]])
        index = f"/index/{parameters['IndexName']}" if "IndexName" in parameters else ""
        yield _table(operation, parameters["TableName"] + index, [key])
    else:
        yield _item(operation, parameters)


def _item(action: str, item: Any) -> Authorisation:
    return _table(action, item["TableName"], [_text((item.get("Item") or item["Key"])["pk"])])


def _table(action: str, table: str, keys: list[str]) -> Authorisation:
    return f"dynamodb:{action}", table, {"dynamodb:LeadingKeys": sorted(set(keys))}


def _text(attribute: Mapping[str, str]) -> str:
    return next(iter(attribute.values()))


def _on_objects(method: str, parameters: Any) -> Iterator[Authorisation]:
    bucket = parameters["Bucket"]
    for key in parameters["Keys"]:
        if key:
            yield f"s3:{_S3[method]}", f"{bucket}/{key}", {}
        else:
            assert method == "GET", parameters
            yield "s3:ListBucket", bucket, {"s3:prefix": [parameters["Prefix"]]}
