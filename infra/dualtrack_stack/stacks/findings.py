"""Accepted findings of cdk-nag (AwsSolutions), each next to its construct and with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

if TYPE_CHECKING:
    from constructs import IConstruct


def accept(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept a finding for a construct and its children. ``rule`` is for instance ``AwsSolutions-S1``."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions::{rule}", reason=reason))
