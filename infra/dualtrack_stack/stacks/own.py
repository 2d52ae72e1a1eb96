"""The function of the project's tools in a stage's template: what the project's settings add to its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from dualtrack_stack.project.function import StagePlace, own_statements, own_variables
from dualtrack_stack.stacks.findings import accept

if TYPE_CHECKING:
    from dualtrack_stack.project.model import OwnFunction
    from dualtrack_stack.stacks.functions import Function

_AS_FOUND: Final = ("<AWS::Region>", "<AWS::AccountId>", "<AWS::Partition>")
"""How cdk-nag writes the parts of an ARN that are known when it is deployed."""


def complete(function: Function, own: OwnFunction, stage: str) -> None:
    """Give it the project's variables, permissions, secrets and network."""
    stack = Stack.of(function)
    place = StagePlace(stage, stack.region, stack.account, stack.partition)
    for name, value in own_variables(own, place).items():
        function.function.add_environment(name, value)
    for statement in own_statements(own, place):
        function.role.add_to_policy(iam.PolicyStatement.from_json(statement))
    if own.subnets:
        function.join_network(own.subnets, own.security_groups)
    for statement in own_statements(own, StagePlace(stage, *_AS_FOUND)):
        for kind in ("Action", "Resource"):
            for wildcard in (value for value in statement[kind] if "*" in value):
                reason = "The project allows it, in [tools] of dualtrack.toml."
                accept(function.role, f"AwsSolutions-IAM5[{kind}::{wildcard}]", reason)
