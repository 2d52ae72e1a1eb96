"""The function that the CDK adds to a stack to empty a bucket before its deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs

from dualtrack_stack.stacks.findings import accept

if TYPE_CHECKING:
    from aws_cdk import Stack

_PROVIDER: Final = "Custom::S3AutoDeleteObjectsCustomResourceProvider"


def accept_emptier(stack: Stack) -> None:
    """Give the CDK's function a log group that is deleted with the stack, and accept cdk-nag's findings on it.

    The log group that Lambda creates otherwise is kept for ever and outlives the stack.
    """
    provider: Any = stack.node.find_child(_PROVIDER)
    group = logs.LogGroup(
        stack, "EmptierLogs", retention=logs.RetentionDays.ONE_WEEK, removal_policy=RemovalPolicy.DESTROY
    )
    handler: Any = provider.node.find_child("Handler")
    handler.add_property_override("LoggingConfig", {"LogGroup": group.log_group_name})
    accept(provider, "AwsSolutions-L1", "Its runtime is the CDK's choice.")
    for rule in ("AwsSolutions-IAM4", "AwsSolutions-IAM5"):
        accept(provider, rule, "The CDK's own function; it reaches the bucket by the bucket's policy alone.")
