"""The template of the MCP stack: what it must contain, and what it must not."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Match, Template
from cdk_nag import AwsSolutionsChecks
from dualtrack.tools.mcp.config import dump_servers, parse_servers
from dualtrack_stack.github_mcp import VERSION
from dualtrack_stack.local.synth import context
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.mcp import ZONES, McpSettings, McpStack

ROOT = Path(__file__).parents[2]
DIGEST = "a" * 64
IMAGE = f"registry.example/github/github-mcp-server:{VERSION}@sha256:{DIGEST}"
PROBE = f"registry.example/busybox:1.37@sha256:{'b' * 64}"
MIRROR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/github-mcp-server"


def synthesised(settings: McpSettings, *, nag: bool = False) -> tuple[cdk.App, McpStack, lambda_.Function]:
    app = cdk.App(context={**context("prod"), "@aws-cdk/core:validateAgainstDefaultRules": True})
    if nag:
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks())
    stack = McpStack(app, "Mcp", stage=STAGES["prod"], settings=settings)
    other = cdk.Stack(app, "Chat")
    function = lambda_.Function(
        other,
        "Mcp",
        code=lambda_.Code.from_inline("def handler(event, context): return {}"),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_13,
        vpc=stack.network.vpc,
        vpc_subnets=stack.network.subnets,
        security_groups=list(stack.network.security_groups),
    )
    stack.attach(function)
    return app, stack, function


@cache
def template() -> Template:
    return Template.from_stack(synthesised(McpSettings(IMAGE, PROBE))[1])


def resources(kind: str, of: Template | None = None) -> list[dict[str, Any]]:
    return [resource["Properties"] for resource in (of or template()).find_resources(kind).values()]


def containers(of: Template | None = None) -> dict[str, dict[str, Any]]:
    (task,) = resources("AWS::ECS::TaskDefinition", of)
    return {container["Name"]: container for container in task["ContainerDefinitions"]}


def test_there_is_no_nat_gateway_no_interface_endpoint_and_no_load_balancer() -> None:
    template().resource_count_is("AWS::EC2::NatGateway", 0)
    template().resource_count_is("AWS::ElasticLoadBalancingV2::LoadBalancer", 0)
    assert {endpoint["VpcEndpointType"] for endpoint in resources("AWS::EC2::VPCEndpoint")} == {"Gateway"}
    template().resource_count_is("AWS::EC2::VPCEndpoint", 2)


def test_only_the_function_reaches_the_server() -> None:
    ingress = resources("AWS::EC2::SecurityGroupIngress")
    assert [(rule["FromPort"], rule["ToPort"]) for rule in ingress] == [(8082, 8082)]
    assert "FunctionGroup" in json.dumps(ingress[0]["SourceSecurityGroupId"])
    assert "ServerGroup" in json.dumps(ingress[0]["GroupId"])
    for group in resources("AWS::EC2::SecurityGroup"):
        assert "SecurityGroupIngress" not in group
        assert all(rule["FromPort"] == 443 for rule in group["SecurityGroupEgress"])


def test_isolated_subnets_have_only_ipv6_egress() -> None:
    routes = resources("AWS::EC2::Route")
    outward = [route for route in routes if "EgressOnlyInternetGatewayId" in route]
    assert len(outward) == 2
    assert {route["DestinationIpv6CidrBlock"] for route in outward} == {"::/0"}
    isolated = {json.dumps(route["RouteTableId"]) for route in outward}
    to_internet = [route for route in routes if "GatewayId" in route]
    assert to_internet
    assert not {json.dumps(route["RouteTableId"]) for route in to_internet} & isolated


def test_one_small_arm_task_with_a_public_address_that_rolls_back() -> None:
    template().has_resource_properties(
        "AWS::ECS::TaskDefinition",
        {
            "Cpu": "256",
            "Memory": "512",
            "RuntimePlatform": {"CpuArchitecture": "ARM64"},
            "NetworkMode": "awsvpc",
        },
    )
    template().has_resource_properties(
        "AWS::ECS::Service",
        {
            "DesiredCount": 1,
            "LaunchType": "FARGATE",
            "DeploymentConfiguration": Match.object_like(
                {"DeploymentCircuitBreaker": {"Enable": True, "Rollback": True}, "MinimumHealthyPercent": 100}
            ),
            "NetworkConfiguration": {"AwsvpcConfiguration": Match.object_like({"AssignPublicIp": "ENABLED"})},
            "ServiceRegistries": Match.any_value(),
        },
    )
    template().has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget", {"MinCapacity": 1, "MaxCapacity": 4}
    )


def test_images_are_pinned_by_digest() -> None:
    assert {name: container["Image"] for name, container in containers().items()} == {
        "server": f"registry.example/github/github-mcp-server@sha256:{DIGEST}",
        "probe": f"registry.example/busybox@sha256:{'b' * 64}",
    }


def test_the_server_only_reads_and_the_task_holds_no_secret() -> None:
    server = containers()["server"]
    assert server["Command"] == [
        "http", "--port", "8082", "--toolsets", "repos,git,issues,pull_requests", "--read-only"
    ]  # fmt: skip
    for container in containers().values():
        assert "Secrets" not in container
        assert "Environment" not in container
        assert container["ReadonlyRootFilesystem"] is True
        assert container["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
    assert "TOKEN" not in json.dumps(template().to_json()).upper()


def test_a_sidecar_probes_the_servers_health_and_both_are_essential() -> None:
    by_name = containers()
    assert all(container["Essential"] for container in by_name.values())
    assert "HealthCheck" not in by_name["server"], "its image has no shell to run one"
    assert (
        "http://127.0.0.1:8082/.well-known/oauth-protected-resource"
        in by_name["probe"]["HealthCheck"]["Command"][1]
    )


def test_the_function_finds_server_keys_and_secrets() -> None:
    _, stack, function = synthesised(McpSettings(IMAGE, PROBE))
    chat = Template.from_stack(cdk.Stack.of(function))
    chat.has_resource_properties(
        "AWS::Lambda::Function",
        {
            "VpcConfig": Match.object_like({"Ipv6AllowedForDualStack": True}),
            "Environment": {
                "Variables": {
                    "AWS_ENDPOINT_URL_KMS": Match.any_value(),
                    "AWS_ENDPOINT_URL_SSM": Match.any_value(),
                    "AWS_ENDPOINT_URL_SECRETS_MANAGER": Match.any_value(),
                }
            },
        },
    )
    assert "https://ssm." in json.dumps(chat.to_json())
    (server,) = parse_servers(dump_servers(stack.servers()))
    assert server.url == "http://github.dualtrack-prod.internal:8082/"
    assert server.headers["X-MCP-Readonly"] == "true"


def test_an_image_of_the_accounts_own_registry_may_be_pulled() -> None:
    mirrored = Template.from_stack(synthesised(McpSettings(f"{MIRROR}:{VERSION}@sha256:{DIGEST}", PROBE))[1])
    mirrored.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with([Match.object_like({"Action": "ecr:GetAuthorizationToken"})])
            }
        },
    )
    assert "arn:aws:ecr:us-east-1:123456789012:repository/github-mcp-server" in json.dumps(mirrored.to_json())


@pytest.mark.parametrize(
    "settings",
    [
        {"image": f"registry.example/github-mcp-server:{VERSION}", "probe_image": PROBE},
        {"image": f"registry.example/github-mcp-server@sha256:{DIGEST}", "probe_image": PROBE},
        {"image": f"registry.example/github-mcp-server:v1.0.0@sha256:{DIGEST}", "probe_image": PROBE},
        {"image": IMAGE, "probe_image": "registry.example/busybox:latest"},
        {"image": IMAGE[:-1], "probe_image": PROBE},
        {"image": IMAGE, "probe_image": PROBE, "toolsets": "repos --insiders"},
    ],
)
def test_an_image_that_is_not_pinned_stops_the_synthesis(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must"):
        McpSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        McpSettings(IMAGE, PROBE),
        McpSettings(f"{MIRROR}:{VERSION}@sha256:{DIGEST}", PROBE, github_host="https://github.example"),
    ],
)
def test_cdk_nag_finds_nothing(settings: McpSettings) -> None:
    app, _, function = synthesised(settings, nag=True)
    rules = [
        "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
        "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole]",
        "AwsSolutions-L1",
    ]
    for rule in rules:
        accept(cdk.Stack.of(function), rule, "the function stands in for the real one")
    app.synth()  # raises with the findings


def test_the_tests_run_the_version_that_is_deployed() -> None:
    script = (ROOT / ".ci/install_github_mcp.sh").read_text()
    assert re.search(r"github-mcp-server (\S+)$", script, re.MULTILINE).group(1) == VERSION  # type: ignore[union-attr]


def resolved(value: Any, region: str) -> Any:
    """A value whose conditions ask for the region alone; None for no value."""
    if isinstance(value, dict) and "Fn::If" in value:
        condition, then, otherwise = value["Fn::If"]
        (_, named) = template().to_json()["Conditions"][condition]["Fn::Equals"]
        return resolved(then if named == region else otherwise, region)
    return None if value == {"Ref": "AWS::NoValue"} else value


@pytest.mark.parametrize("region", [*ZONES, "eu-central-1"])
def test_tasks_and_functions_are_in_zones_that_can_run_them(region: str) -> None:
    """A zone is named by its id, which means the same one in every account, or by its place in the region."""
    for kind in ("Server", "Function"):
        subnets = [
            subnet["Properties"]
            for key, subnet in template().find_resources("AWS::EC2::Subnet").items()
            if key.startswith(f"Vpc{kind}")
        ]
        ids = tuple(resolved(subnet["AvailabilityZoneId"], region) for subnet in subnets)
        names = [resolved(subnet["AvailabilityZone"], region) for subnet in subnets]
        if region in ZONES:
            assert (ids, names) == (ZONES[region], [None, None])
        else:
            assert ids == (None, None)
            assert names == [{"Fn::Select": [number, {"Fn::GetAZs": ""}]} for number in (0, 1)]


def test_the_zone_without_arm_is_not_among_them() -> None:
    assert "use1-az3" not in json.dumps(template().to_json())
