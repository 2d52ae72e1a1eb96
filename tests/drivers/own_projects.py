"""Projects with tools of their own, as the stages' templates know them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.project.file import parse_file
from dualtrack_stack.project.model import OwnFunction, Permission, Project, StageFile

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

SPEC: Final[dict[str, Any]] = {
    "module": "tools.weather",
    "name": "weather",
    "description": "Forecast for a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "kind": "own",
    "price_class": "other",
    "effect": "reads",
    "repeatable": True,
}

WITH_A_TOOL: Final = Project(ROOT, specs=(SPEC,))
"""With a tool that needs nothing."""

TICKETS: Final = "arn:aws:dynamodb:{region}:{account}:table/tickets-{stage}"

OWN: Final = OwnFunction(
    allow=(
        Permission(("dynamodb:GetItem", "dynamodb:PutItem"), (TICKETS,)),
        Permission(("dynamodb:Query",), (f"{TICKETS}/index/*",)),
    ),
    secrets=("STRIPE_KEY",),
    environment=MappingProxyType({"TICKETS": "tickets-{stage}"}),
    memory=1024,
    seconds=40,
    subnets=("subnet-0123456789abcdef0",),
    security_groups=("sg-0123456789abcdef0",),
)


def stages_with(own: OwnFunction) -> Mapping[str, StageFile]:
    """The stages of a project whose file says nothing but this of its tools' function."""
    written = parse_file("").stages
    return MappingProxyType({name: replace(stage, own=own) for name, stage in written.items()})


WITH_EVERYTHING: Final = Project(ROOT, specs=(SPEC,), stages=stages_with(OWN))
"""With permissions, a secret, a variable and a network."""
