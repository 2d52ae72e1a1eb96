"""The network of GitHub's MCP server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.infra.rules.registry import dependencies, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

_GATEWAY: Final = {"Type": "AWS::EC2::EgressOnlyInternetGateway", "Properties": {"VpcId": {"Ref": "Vpc"}}}


@rule({"One": _GATEWAY, "Two": _GATEWAY})
def a_vpc_has_one_egress_only_gateway(template: Template) -> Iterator[str]:
    """Amazon VPC quotas, "Gateways": one egress-only internet gateway a VPC, and the quota cannot be raised."""
    gateways = of_kind(template, "AWS::EC2::EgressOnlyInternetGateway").values()
    vpcs = Counter(named(gateway["VpcId"]) for gateway in gateways)
    yield from (f"{vpc} has {count}" for vpc, count in vpcs.items() if count > 1)


_VPC: Final = {
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "Ipv6CidrBlock": "x"},
    },
    "Way": {
        "Type": "AWS::EC2::SubnetRouteTableAssociation",
        "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
    },
}


@rule(_VPC)
def a_subnet_with_ipv6_has_a_way_out(template: Template) -> Iterator[str]:
    """Amazon VPC User Guide, "Egress-only internet gateways": IPv6 needs a route for ::/0 in the subnet's table.

    In the function mcp's subnets it is the only route to KMS and Secrets Manager.
    """
    routes = of_kind(template, "AWS::EC2::Route").values()
    outward = {
        named(route["RouteTableId"]) for route in routes if route.get("DestinationIpv6CidrBlock") == "::/0"
    }
    subnets = of_kind(template, "AWS::EC2::Subnet")
    for way in of_kind(template, "AWS::EC2::SubnetRouteTableAssociation").values():
        subnet = named(way["SubnetId"])
        if "Ipv6CidrBlock" in subnets[subnet] and named(way["RouteTableId"]) not in outward:
            yield subnet


@rule(
    {
        "Block": {"Type": "AWS::EC2::VPCCidrBlock", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Out": {"Type": "AWS::EC2::Route", "Properties": {"DestinationIpv6CidrBlock": "::/0"}},
    }
)
def an_ipv6_route_waits_for_the_ipv6_block(template: Template) -> Iterator[str]:
    """AWS CDK, `ec2.Vpc`: users of the VPC's IPv6 need an explicit dependency on its AWS::EC2::VPCCidrBlock
    (aws/aws-cdk#36714: deployments fail occasionally).
    """
    blocks = set(of_kind(template, "AWS::EC2::VPCCidrBlock"))
    for key, route in of_kind(template, "AWS::EC2::Route").items():
        if "DestinationIpv6CidrBlock" in route and blocks and not dependencies(template, key) & blocks:
            yield key


_TASK: Final = {
    "Task": {
        "Type": "AWS::ECS::TaskDefinition",
        "Properties": {
            "NetworkMode": "awsvpc",
            "ContainerDefinitions": [{"Name": "server", "Privileged": True}],
        },
    }
}


@rule(_TASK)
def a_container_keeps_to_security_hub(template: Template) -> Iterator[str]:
    """AWS Security Hub User Guide, "Security Hub controls for Amazon ECS": ECS.4 (privileged), ECS.5 (root
    file system), ECS.8 (secrets in the environment), ECS.9 (logging), ECS.20 (user).
    """
    for key, task in of_kind(template, "AWS::ECS::TaskDefinition").items():
        for container in task["ContainerDefinitions"]:
            names = {variable["Name"] for variable in container.get("Environment", [])}
            kept = {
                "ECS.4": not container.get("Privileged"),
                "ECS.5": container.get("ReadonlyRootFilesystem"),
                "ECS.8": not any(word in name for name in names for word in ("KEY", "SECRET", "TOKEN")),
                "ECS.9": container.get("LogConfiguration"),
                "ECS.20": container.get("User") not in (None, "0", "root"),
            }
            yield from (f"{key} {container['Name']}: {name}" for name, holds in kept.items() if not holds)


@rule({**_TASK, "Service": {"Type": "AWS::ECS::Service", "Properties": {}}})
def whose_task_it_is_can_be_told(template: Template) -> Iterator[str]:
    """AWS Security Hub User Guide, "Security Hub controls for Amazon ECS", ECS.13, ECS.14 and ECS.15: services,
    clusters and task definitions have tags; and Amazon ECS Developer Guide, "Tagging Amazon ECS resources": a task has
    no tags unless they are propagated to it.
    """
    kinds = ("AWS::ECS::Service", "AWS::ECS::Cluster", "AWS::ECS::TaskDefinition")
    for kind in kinds:
        yield from (
            f"{key} has no tags"
            for key, resource in of_kind(template, kind).items()
            if not resource.get("Tags")
        )
    for key, service in of_kind(template, "AWS::ECS::Service").items():
        if service.get("PropagateTags") != "SERVICE":
            yield f"{key} does not propagate tags to its tasks"


@rule(
    {"Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"MapPublicIpOnLaunch": True}}},
)
def a_subnet_gives_nobody_a_public_address(template: Template) -> Iterator[str]:
    """AWS Security Hub User Guide, "Security Hub controls for Amazon EC2", EC2.15. The only task requests its address
    itself (docs/aws/security.md, "Security Hub").
    """
    subnets = of_kind(template, "AWS::EC2::Subnet").items()
    yield from (key for key, subnet in subnets if subnet.get("MapPublicIpOnLaunch"))
