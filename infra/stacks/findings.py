"""Findings of cdk-nag (AwsSolutions) that stand, each beside what it is about and with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

if TYPE_CHECKING:
    from constructs import IConstruct


def accept(construct: IConstruct, rule: str, reason: str) -> None:
    """Let a finding stand for a construct and what is in it. ``rule`` is for instance ``AwsSolutions-S1``."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions::{rule}", reason=reason))
