"""The CDK app: ``-c stage=local|staging|prod``, with the settings of its file and the environment
(`dualtrack_stack.settings`).

GitHub's MCP server runs in the account if its image is named (``GITHUB_MCP_IMAGE`` and
``GITHUB_MCP_PROBE_IMAGE``, each with its digest); otherwise ``GITHUB_MCP_URL`` or ``MCP_SERVERS`` may
name servers elsewhere.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
from dualtrack.settings import of_commands
from dualtrack.tools.mcp.config import dump_servers, parse_servers, together

from dualtrack_stack.edge import PLAIN, edge_from
from dualtrack_stack.local.synth import context
from dualtrack_stack.project.model import BadProject
from dualtrack_stack.project.read import read_project
from dualtrack_stack.roots import project_root
from dualtrack_stack.settings import BadSettings, last_deployed, read_settings, refuse_to_drop
from dualtrack_stack.sign_in import OWN_USERS, sign_in_from
from dualtrack_stack.stacks.chat import ChatStack
from dualtrack_stack.stacks.data import DataStack
from dualtrack_stack.stacks.identity import IdentityStack
from dualtrack_stack.stacks.vectors import VectorsStack
from dualtrack_stack.watch import NOBODY, watch_from

if TYPE_CHECKING:
    from dualtrack.settings import Settings

    from dualtrack_stack.edge import StageEdge
    from dualtrack_stack.project.model import Project
    from dualtrack_stack.settings import Configuration
    from dualtrack_stack.sign_in import SignIn
    from dualtrack_stack.stacks.mcp import McpSettings
    from dualtrack_stack.stages import StageSettings
    from dualtrack_stack.watch import Watch


def build(
    app: cdk.App,
    stage: StageSettings,
    settings: Settings | None,
    mcp_settings: McpSettings | None = None,
    watch: Watch = NOBODY,
    edge: StageEdge = PLAIN,
    sign_in: SignIn = OWN_USERS,
    record: str = "",
    project: Project | None = None,
) -> ChatStack:
    """All stacks of one stage; with ``mcp_settings`` also GitHub's MCP server, and the page if it has one.

    What a setting switches off is a stack of its own, and what the other stacks export depends on no setting: an export
    that a deployed stack imports can be neither dropped nor changed (tests/infra/test_walks.py).

    ``settings``: None if the local templates' parameters say what is set.
    ``watch``: who is told of alarms. ``record``: the settings, for the next deployment. ``project``: whose tools and
    profiles the stage has.
    """
    cdk.Tags.of(app).add("application", "dualtrack")
    cdk.Tags.of(app).add("stage", stage.name)
    data = DataStack(app, "Data", stage, record)
    identity = IdentityStack(
        app, "Identity", stage, edge.url or (settings.page_url if settings else ""), sign_in
    )
    chat = _chat(app, stage, settings, data, identity, mcp_settings, watch, edge, project)
    if stage.page:
        from dualtrack_stack.stacks.page import PageStack  # noqa: PLC0415 - CloudFront is needed by no other stack

        PageStack(
            app,
            "Page",
            stage=stage,
            api_url=chat.rest.rest.url,
            sign_in_url=identity.sign_in.base_url(),
            client_id=identity.client.user_pool_client_id,
            terminal_client_id=identity.terminal.user_pool_client_id,
            uploads_bucket=data.bodies.bucket_name,
            edge=edge,
        )
    for stack in app.node.children:
        if stack is not data and isinstance(stack, cdk.Stack):
            stack.add_stack_dependency(data)
    return chat


def _chat(
    app: cdk.App,
    stage: StageSettings,
    settings: Settings | None,
    data: DataStack,
    identity: IdentityStack,
    mcp_settings: McpSettings | None,
    watch: Watch,
    edge: StageEdge,
    project: Project | None,
) -> ChatStack:
    has_vectors = settings is not None and settings.dualtrack_course_index == "s3vectors"
    vectors = VectorsStack(app, "Vectors", stage).arn if has_vectors else ""
    if mcp_settings is None or settings is None:
        return ChatStack(
            app,
            "Chat",
            stage=stage,
            settings=settings,
            data=data,
            identity=identity,
            watch=watch,
            edge=edge,
            course_vectors_arn=vectors,
            project=project,
        )

    from dualtrack_stack.stacks.mcp import McpStack  # noqa: PLC0415 - VPC and ECS are needed by no other stack

    mcp = McpStack(app, "Mcp", stage=stage, settings=mcp_settings)
    others = parse_servers(settings.mcp_servers)
    settings = dataclasses.replace(settings, mcp_servers=dump_servers(together((*mcp.servers(), *others))))
    chat = ChatStack(
        app,
        "Chat",
        stage=stage,
        settings=settings,
        data=data,
        identity=identity,
        mcp_network=mcp.network,
        watch=watch,
        edge=edge,
        mcp_service=mcp.service,
        course_vectors_arn=vectors,
        project=project,
    )
    mcp.attach(chat.functions["mcp"].function)
    return chat


def mcp_settings_from(settings: Settings) -> McpSettings | None:
    """The images of the MCP server, if the operator named them. Raises ValueError for a wrong one."""
    if not settings.github_mcp_image:
        return None

    from dualtrack_stack.stacks.mcp import McpSettings  # noqa: PLC0415

    return McpSettings(image=settings.github_mcp_image, probe_image=settings.github_mcp_probe_image)


def build_deployed(app: cdk.App, configuration: Configuration, project: Project | None = None) -> ChatStack:
    """All stacks of a stage on AWS, which records its settings. Raises ValueError for an invalid setting."""
    settings = configuration.checked()
    return build(
        app,
        configuration.stage,
        settings,
        mcp_settings_from(settings),
        watch_from(settings),
        edge_from(settings, configuration.stage),
        sign_in_from(settings),
        configuration.recorded(),
        project,
    )


def refuse_to_drop_last(configuration: Configuration) -> None:
    """Refuse to drop settings of the last deployment. Skipped without an account: the CDK's command line names one when
    it has credentials, and without them nothing can be deployed.
    """
    if not os.environ.get("CDK_DEFAULT_ACCOUNT"):
        return
    import boto3  # noqa: PLC0415 - for a deployment alone

    client = boto3.client("ssm", region_name=os.environ.get("CDK_DEFAULT_REGION"))
    last = last_deployed(client, configuration.stage.name)
    refuse_to_drop(last, configuration, of_commands().dualtrack_drop)


def check(app: cdk.App) -> None:
    """Let synthesis fail for what cdk-nag finds, and for what cdk-preflight knows that a deployment would fail at."""
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 - not loaded for the local stack
    from cdk_preflight import Preflight  # noqa: PLC0415

    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    Preflight.apply(app)


def main() -> None:
    """Synthesise the stage that the context names; stages on AWS must pass cdk-nag and cdk-preflight."""
    app = cdk.App(context=context("staging"))  # what the caller gives wins
    folder = Path(app.node.try_get_context("settings") or project_root())
    stage = app.node.try_get_context("stage")
    if stage == "local":
        build(app, read_settings(stage, {}, folder).stage, None)
    else:
        configuration = read_settings(stage, os.environ, folder)
        refuse_to_drop_last(configuration)
        build_deployed(app, configuration, read_project(folder, stage, os.environ))
        check(app)
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except (BadProject, BadSettings) as wrong:
        sys.exit(str(wrong))
