"""The CDK app: ``-c stage=local|staging|prod``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import aws_cdk as cdk

from infra.stacks.chat import ChatStack
from infra.stacks.data import DataStack
from infra.stacks.identity import IdentityStack
from infra.stages import AS_PARAMETERS, STAGES, services_from

if TYPE_CHECKING:
    from infra.stages import Services, StageSettings


def build(app: cdk.App, stage: StageSettings, services: Services) -> ChatStack:
    """All stacks of one stage."""
    data = DataStack(app, "Data", stage)
    identity = IdentityStack(app, "Identity", stage)
    chat = ChatStack(app, "Chat", stage=stage, services=services, data=data, identity=identity)
    cdk.Tags.of(app).add("application", "dualtrack")
    cdk.Tags.of(app).add("stage", stage.name)
    return chat


def main() -> None:
    """Synthesise the stage that the context names."""
    app = cdk.App()
    stage = STAGES[app.node.try_get_context("stage") or "staging"]
    services = AS_PARAMETERS if stage.name == "local" else services_from(os.environ)
    build(app, stage, services)
    app.synth()


if __name__ == "__main__":
    main()
