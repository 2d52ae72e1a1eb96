"""The CDK app: ``-c stage=local|staging|prod``, with the settings of its file and the environment (`infra.settings`).

GitHub's MCP server runs in the account if its image is named (``GITHUB_MCP_IMAGE`` and
``GITHUB_MCP_PROBE_IMAGE``, each with its digest); otherwise ``GITHUB_MCP_URL`` or ``MCP_SERVERS`` may
name servers elsewhere.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
from dualtrack.tools.mcp.config import dump_servers, parse_servers, together

from infra.edge import PLAIN, edge_from
from infra.settings import FOLDER, last_deployed, read_settings, refuse_to_drop
from infra.sign_in import OWN_USERS, sign_in_from
from infra.stacks.chat import ChatStack
from infra.stacks.data import DataStack
from infra.stacks.identity import IdentityStack
from infra.stacks.vectors import VectorsStack
from infra.stages import AS_PARAMETERS, course_index_from, services_from
from infra.watch import NOBODY, watch_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.edge import Edge
    from infra.settings import Settings
    from infra.sign_in import SignIn
    from infra.stacks.mcp import McpSettings
    from infra.stages import Services, StageSettings
    from infra.watch import Watch


def build(
    app: cdk.App,
    stage: StageSettings,
    services: Services,
    mcp_settings: McpSettings | None = None,
    page_url: str = "",
    watch: Watch = NOBODY,
    edge: Edge = PLAIN,
    sign_in: SignIn = OWN_USERS,
    record: str = "",
) -> ChatStack:
    """All stacks of one stage; with ``mcp_settings`` also GitHub's MCP server, and the page if it has one.

    What a setting switches off is a stack of its own, and what the other stacks export depends on no setting: an export
    that a deployed stack imports can be neither dropped nor changed (tests/infra/test_walks.py).

    ``page_url``: the page's address, a callback of the sign-in, if the stage has no domain of its own.
    ``watch``: who is told of alarms. ``record``: the settings, for the next deployment.
    """
    cdk.Tags.of(app).add("application", "dualtrack")
    cdk.Tags.of(app).add("stage", stage.name)
    data = DataStack(app, "Data", stage, record)
    identity = IdentityStack(app, "Identity", stage, edge.url or page_url, sign_in)
    chat = _chat(app, stage, services, data, identity, mcp_settings, watch, edge)
    if stage.page:
        from infra.stacks.page import PageStack  # noqa: PLC0415 - CloudFront is needed by no other stack

        PageStack(
            app,
            "Page",
            stage=stage,
            api_url=chat.rest.rest.url,
            sign_in_url=identity.sign_in.base_url(),
            client_id=identity.client.user_pool_client_id,
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
    services: Services,
    data: DataStack,
    identity: IdentityStack,
    mcp_settings: McpSettings | None,
    watch: Watch,
    edge: Edge,
) -> ChatStack:
    vectors = VectorsStack(app, "Vectors", stage).arn if stage.course_index == "s3vectors" else ""
    if mcp_settings is None:
        return ChatStack(
            app,
            "Chat",
            stage=stage,
            services=services,
            data=data,
            identity=identity,
            watch=watch,
            edge=edge,
            course_vectors_arn=vectors,
        )

    from infra.stacks.mcp import McpStack  # noqa: PLC0415 - VPC and ECS are needed by no other stack

    mcp = McpStack(app, "Mcp", stage=stage, settings=mcp_settings)
    others = parse_servers(services.mcp_servers or "")
    services = dataclasses.replace(services, mcp_servers=dump_servers(together((*mcp.servers(), *others))))
    chat = ChatStack(
        app,
        "Chat",
        stage=stage,
        services=services,
        data=data,
        identity=identity,
        mcp_network=mcp.network,
        watch=watch,
        edge=edge,
        mcp_service=mcp.service,
        course_vectors_arn=vectors,
    )
    mcp.attach(chat.functions["mcp"].function)
    return chat


def mcp_settings_from(environment: Mapping[str, str]) -> McpSettings | None:
    """The images of the MCP server, if the operator named them. Raises ValueError for a wrong one."""
    image = environment.get("GITHUB_MCP_IMAGE")
    if not image:
        return None

    from infra.stacks.mcp import McpSettings  # noqa: PLC0415

    return McpSettings(image=image, probe_image=environment.get("GITHUB_MCP_PROBE_IMAGE", ""))


def build_deployed(app: cdk.App, settings: Settings) -> ChatStack:
    """All stacks of a stage on AWS, which records its settings. Raises ValueError for an invalid setting."""
    environment = settings.environment
    return build(
        app,
        dataclasses.replace(settings.stage, course_index=course_index_from(environment)),
        services_from(environment),
        mcp_settings_from(environment),
        environment.get("PAGE_URL", ""),
        watch_from(environment),
        edge_from(environment, settings.stage),
        sign_in_from(environment),
        settings.recorded(),
    )


def refuse_to_drop_last(settings: Settings) -> None:
    """Refuse to drop settings of the last deployment. Skipped without an account: the CDK's command line names one when
    it has credentials, and without them nothing can be deployed.
    """
    if not os.environ.get("CDK_DEFAULT_ACCOUNT"):
        return
    import boto3  # noqa: PLC0415 - for a deployment alone

    client = boto3.client("ssm", region_name=os.environ.get("CDK_DEFAULT_REGION"))
    refuse_to_drop(last_deployed(client, settings.stage.name), settings, os.environ)


def check(app: cdk.App) -> None:
    """Let synthesis fail for what cdk-nag finds, and for what cdk-preflight knows that a deployment would fail at."""
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 - not loaded for the local stack
    from cdk_preflight import Preflight  # noqa: PLC0415

    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    Preflight.apply(app)


def main() -> None:
    """Synthesise the stage that the context names; stages on AWS must pass cdk-nag and cdk-preflight."""
    app = cdk.App()
    folder = Path(app.node.try_get_context("settings") or FOLDER)
    settings = read_settings(app.node.try_get_context("stage") or "staging", os.environ, folder)
    if settings.stage.name == "local":
        build(app, settings.stage, AS_PARAMETERS)
    else:
        refuse_to_drop_last(settings)
        # the build of the layers reads the profiles' folder there
        os.environ.update(settings.environment)
        build_deployed(app, settings)
        check(app)
    app.synth()


if __name__ == "__main__":
    main()
