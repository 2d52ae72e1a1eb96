"""Projects with tools of their own, as the stages' templates know them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from dualtrack_stack.project.file import parse_file
from dualtrack_stack.project.model import OwnFunction, Permission, Project

from tests.drivers.documents import ROOT

SPEC: Final[dict[str, Any]] = {
    "module": "tools.weather",
    "name": "weather",
    "description": "Forecast for a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "kind": "own",
    "price_class": "other",
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

WITH_EVERYTHING: Final = Project(
    ROOT,
    specs=(SPEC,),
    stages=MappingProxyType(
        {name: replace(written, own=OWN) for name, written in parse_file("").stages.items()}
    ),
)
"""With permissions, a secret, a variable and a network."""
