"""The table ``[tools]`` of a project's file: what the function of its tools may do, know and use."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Any, Final

from dualtrack.settings import Settings, declared
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dualtrack_stack.project.model import OwnFunction, Permission, WrongTable

_DEFAULT: Final = OwnFunction()
MAX_SECONDS: Final = 55
"""The workflow waits 60 s for a call (state Tool)."""
MAX_ENVIRONMENT: Final = 2_000
"""Bytes of names and values: half of what Lambda allows a function in all (AWS Lambda quota: 4 KB)."""
NAMES: Final = ("stage", "region", "account")
"""What may stand in braces in a resource and in a variable's value."""

_ACTION: Final = re.compile(r"[a-z0-9-]{2,63}:[A-Za-z][A-Za-z0-9]*\*?")
_ARN: Final = re.compile(r"arn:[a-z*-]+:[a-z0-9-]{2,63}:[^:\s]*:[^:\s]*:\S+")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_SECRET: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_BRACED: Final = re.compile(r"\{([^{}]*)\}")

_NEVER: Final = ("iam", "organizations", "account")
"""Services by which a function could give itself, or anybody, any permission."""
_OURS: Final = MappingProxyType(
    {
        "dynamodb": "table/dualtrack-prod-data",
        "s3": "dualtrack-prod-data",
        "ssm": "parameter/dualtrack-prod/anthropic",
        "secretsmanager": "secret:dualtrack-prod",
        "kms": "key/00000000-0000-0000-0000-000000000000",
        "lambda": "function:dualtrack-prod-chat",
        "states": "stateMachine:dualtrack-prod-chat",
        "cognito-idp": "userpool/us-east-1_dualtrack",
    }
)
"""Services in which a stage keeps its own, and how a name of its own looks there."""

_RESERVED: Final = re.compile(
    r"(?:AWS|LAMBDA|_|POWERTOOLS|PYTHON|LD|DUALTRACK|OTEL|UV)_.*|_.*|PATH|HOME|LANG|TZ|TASK_ROOT"
)
"""Lambda's own (AWS Lambda Developer Guide, "Defined runtime environment variables"), and ours."""


def _action(action: str) -> str:
    service, _, name = action.partition(":")
    if not _ACTION.fullmatch(action):
        raise ValueError("write a service and an action, such as dynamodb:GetItem or s3:Get*")
    if service in _NEVER:
        raise ValueError(f"{service} could give the function any permission: leave it out")
    if service == "sts" and name != "AssumeRole":
        raise ValueError("of sts there is sts:AssumeRole alone: name the roles in resources")
    return action


def _resource(resource: str) -> str:
    if resource != "*" and not _ARN.fullmatch(resource):
        raise ValueError('write an ARN, such as arn:aws:dynamodb:{region}:{account}:table/orders, or "*"')
    return _filled(resource)


def _filled(text: str) -> str:
    """The text, if what stands in braces can be filled in."""
    wrong = [name for name in _BRACED.findall(text) if name not in NAMES]
    if wrong:
        raise ValueError(f"{{{wrong[0]}}} is not known: there are {{stage}}, {{region}} and {{account}}")
    return text


def _variable(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("write letters a to z, digits and _, the first a letter, at most 128")
    return _free(name)


def _secret(name: str) -> str:
    if not _SECRET.fullmatch(name):
        raise ValueError("write capitals, digits and _, the first a capital, at most 64, such as STRIPE_KEY")
    return _free(name)


def _free(name: str) -> str:
    """A name that is neither Lambda's nor ours."""
    ours = {*declared(), *(item.name.upper() for item in fields(Settings))}
    if name in ours or _RESERVED.fullmatch(name):
        raise ValueError("the name is reserved by Lambda or dualtrack: write another one")
    return name


IamAction = Annotated[str, AfterValidator(_action)]
IamResource = Annotated[str, Field(max_length=2_000), AfterValidator(_resource)]
Secret = Annotated[str, AfterValidator(_secret)]
FilledText = Annotated[str, AfterValidator(_filled)]
Variable = Annotated[str, AfterValidator(_variable)]
Subnet = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
Group = Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")]


class PermissionTable(BaseModel):
    """An entry of ``allow``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    actions: Annotated[list[IamAction], Field(min_length=1, max_length=100)]
    resources: Annotated[list[IamResource], Field(min_length=1, max_length=50)]


class ToolsTable(BaseModel):
    """The fields of `OwnFunction`, as TOML has them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    allow: Annotated[list[PermissionTable], Field(max_length=50)] = []
    secrets: Annotated[list[Secret], Field(max_length=20)] = []
    environment: Annotated[dict[Variable, FilledText], Field(max_length=50)] = {}
    memory: Annotated[int, Field(ge=128, le=10_240)] = _DEFAULT.memory
    seconds: Annotated[int, Field(ge=1, le=MAX_SECONDS)] = _DEFAULT.seconds
    subnets: Annotated[list[Subnet], Field(max_length=16)] = []
    security_groups: Annotated[list[Group], Field(max_length=5)] = []


def own_function(general: ToolsTable, stage: ToolsTable) -> OwnFunction:
    """The stage's table over the general one, field by field; variables one by one. Raises `WrongTable`."""
    given: dict[str, Any] = {
        name: getattr(table, name) for table in (general, stage) for name in sorted(table.model_fields_set)
    }
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    values["allow"] = tuple(_permission(place, entry) for place, entry in enumerate(given.get("allow", [])))
    values["environment"] = MappingProxyType({**general.environment, **stage.environment})
    own = OwnFunction(**values)
    _check(own)
    return own


def _permission(place: int, entry: PermissionTable) -> Permission:
    """Raises `WrongTable` for a resource that reaches further than it says."""
    services = {action.partition(":")[0] for action in entry.actions}
    for index, resource in enumerate(entry.resources):
        where = ("allow", place, "resources", index)
        if "sts" in services and "*" in resource:
            raise WrongTable("tools", where, "sts:AssumeRole needs the ARN of each role, without *")
        for service in services & _OURS.keys():
            if _reaches(resource, service):
                raise WrongTable(
                    "tools",
                    where,
                    f"this reaches what dualtrack keeps in {service}: write the ARN of what is yours",
                )
    return Permission(tuple(entry.actions), tuple(entry.resources))


def _reaches(resource: str, service: str) -> bool:
    """Whether a resource's pattern has one of a stage's own in it."""
    if resource == "*":
        return True
    _, _, of, _, _, name = resource.split(":", 5)
    return of == service and fnmatchcase(_OURS[service], name.replace("{stage}", "prod").replace("[", "?"))


def _check(own: OwnFunction) -> None:
    for name, times in Counter((*own.secrets, *own.environment)).items():
        if times > 1:
            field = "environment" if name in own.environment else "secrets"
            raise WrongTable("tools", (field, name), f"{name} is there twice: write it once")
    size = sum(len(f"{name}{value}".encode()) for name, value in own.environment.items())
    if size > MAX_ENVIRONMENT:
        raise WrongTable(
            "tools",
            ("environment",),
            f"names and values take {size:,} bytes: write at most {MAX_ENVIRONMENT:,}",
        )
    if bool(own.subnets) != bool(own.security_groups):
        missing = "security_groups" if own.subnets else "subnets"
        raise WrongTable(
            "tools", (("subnets" if own.subnets else "security_groups"),), f"write {missing} as well"
        )
