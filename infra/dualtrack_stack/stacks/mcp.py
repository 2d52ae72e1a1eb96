"""GitHub's MCP server on one small Fargate task, and the network that the function mcp needs.

::

    function subnets (isolated)                      public subnets
    ┌──────────────┐  8082, by Cloud Map name  ┌─────────────────────────┐  443
    │ mcp fn       ├──────────────────────────►│ task: server + probe    ├──────► GitHub
    └──┬────────┬──┘                           └─────────────────────────┘
       │        └─ 443, IPv6, egress-only gateway ─► KMS, SSM, Secrets Manager (dual-stack)
       └─ gateway endpoints ─► DynamoDB, S3

There is no NAT gateway and no interface endpoint, which alone would cost more than the task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import Acknowledgment, Aws, CfnCondition, Duration, Fn, RemovalPolicy, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_servicediscovery as cloudmap
from dualtrack.tools.mcp.config import GITHUB_READ_TOOLSETS, McpServer, github_server

from dualtrack_stack.github_mcp import VERSION
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.functions import Network

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from constructs import Construct

    from dualtrack_stack.stages import StageSettings

PORT: Final = 8082
HEALTH_ROUTE: Final = "/.well-known/oauth-protected-resource"
"""The one route that answers 200 without a token."""

ZONES: Final = MappingProxyType(
    {
        "us-east-1": ("use1-az1", "use1-az2"),
        "us-west-1": ("usw1-az1", "usw1-az3"),
        "ap-northeast-1": ("apne1-az1", "apne1-az2"),
        "ca-central-1": ("cac1-az1", "cac1-az2"),
    }
)
"""Two zones with Fargate on ARM of the regions that have a zone without (Amazon ECS Developer Guide, "AWS Fargate
Regions"). By id: the name of a zone means another one in every account."""

_IMAGE: Final = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.:-]*/[a-z0-9._/-]+)(?::(?P<tag>[\w][\w.-]{0,127}))?@sha256:(?P<digest>[0-9a-f]{64})"
)
_ECR: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/(?P<name>.+)"
)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """An operator's settings of the server.

    ``image`` and ``probe_image``: full references with their digest, ``registry/name:tag@sha256:…``; the
    server's tag must be `VERSION`. The probe is any arm64 image with ``sh`` and ``wget``.
    ``toolsets`` and ``read_only`` are the upper bound of what any profile can be offered.
    ``github_host``: a GitHub Enterprise address, empty for github.com. Raises ValueError.
    """

    image: str
    probe_image: str
    toolsets: str = GITHUB_READ_TOOLSETS
    read_only: bool = True
    github_host: str = ""
    max_tasks: int = 4

    def __post_init__(self) -> None:
        if _parts(self.image)["tag"] != VERSION:
            raise ValueError(f"the image of github-mcp-server must have the tag {VERSION}: {self.image}")
        _parts(self.probe_image)
        if not re.fullmatch(r"[a-z_]+(,[a-z_]+)*", self.toolsets):
            raise ValueError(f"toolsets must be names with commas between them: {self.toolsets}")


class McpStack(Stack):
    """The server, and the network through which the function mcp reaches it.

    ``url``: the server's address; ``network``: the function's network; `servers`: the entry of ``MCP_SERVERS``;
    `attach` lets the function reach KMS, Parameter Store and Secrets Manager.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: StageSettings, settings: McpSettings
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-mcp")
        self._stage = stage
        self._settings = settings
        self.vpc = self._vpc()
        self._server_group = self._group("ServerGroup", "The MCP server of GitHub")
        self._function_group = self._group("FunctionGroup", "The function mcp")
        self._allow()
        namespace = f"{stage.prefix}.internal"
        self.service = self._service(namespace)
        self.url = f"http://github.{namespace}:{PORT}/"
        isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        self.network = Network(self.vpc, isolated, (self._function_group,))
        # the dashboard's and the alarms', whether there are alarms or not: an export in use cannot be dropped
        self.export_value(self.service.cluster.cluster_name)
        self.export_value(self.service.service_name)

    def servers(self) -> tuple[McpServer, ...]:
        """The entry of ``MCP_SERVERS`` for this server."""
        settings = self._settings
        return (github_server(self.url, toolsets=settings.toolsets, read_only=settings.read_only),)

    def attach(self, function: lambda_.Function) -> None:
        """Let a function of `network` reach KMS, Parameter Store and Secrets Manager over IPv6."""
        for service in ("KMS", "SSM", "SECRETS_MANAGER"):
            host = f"{service.replace('_', '').lower()}.{self.region}.api.aws"
            function.add_environment(f"AWS_ENDPOINT_URL_{service}", f"https://{host}")
        resource: Any = function.node.default_child
        resource.add_property_override("VpcConfig.Ipv6AllowedForDualStack", True)

    def _vpc(self) -> ec2.Vpc:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_protocol=ec2.IpProtocol.DUAL_STACK,
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Server",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=24,
                    map_public_ip_on_launch=False,
                ),
                ec2.SubnetConfiguration(
                    name="Function", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24
                ),
            ],
            gateway_endpoints={
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
            },
        )
        self._choose_zones(vpc)
        outward = ec2.CfnEgressOnlyInternetGateway(self, "OutwardOnly", vpc_id=vpc.vpc_id)
        for number, subnet in enumerate(vpc.isolated_subnets):
            ec2.CfnRoute(
                self,
                f"Outward{number}",
                route_table_id=subnet.route_table.route_table_id,
                destination_ipv6_cidr_block="::/0",
                egress_only_internet_gateway_id=outward.ref,
            )
        vpc.add_flow_log(
            "Rejected",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(self._log_group("FlowLogs")),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )
        return vpc

    def _choose_zones(self, vpc: ec2.Vpc) -> None:
        """The zones of `ZONES` in its regions; elsewhere the region's first two, as the CDK has it."""
        nothing: Any = {"Ref": "AWS::NoValue"}
        for region in ZONES:
            is_here = Fn.condition_equals(Aws.REGION, region)
            CfnCondition(self, _in(region), expression=is_here)
        for subnets in (vpc.public_subnets, vpc.isolated_subnets):
            for number, subnet in enumerate(subnets):
                resource: Any = subnet.node.default_child
                name, zone = resource.availability_zone, nothing
                for region, ids in ZONES.items():
                    name = {"Fn::If": [_in(region), nothing, name]}
                    zone = {"Fn::If": [_in(region), ids[number], zone]}
                resource.add_property_override("AvailabilityZone", name)
                resource.add_property_override("AvailabilityZoneId", zone)
                Validations.of(resource).acknowledge(
                    Acknowledgment(
                        id="CloudFormation-Validate::F3020", reason="Conditions leave one of the two."
                    )
                )

    def _group(self, name: str, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            self,
            name,
            vpc=self.vpc,
            description=description,
            allow_all_outbound=False,
            allow_all_ipv6_outbound=False,
        )

    def _allow(self) -> None:
        """Every allowed connection: function to server, server to GitHub, function to AWS."""
        server, function = self._server_group, self._function_group
        server.add_ingress_rule(function, ec2.Port.tcp(PORT), "calls of the function mcp")
        function.add_egress_rule(server, ec2.Port.tcp(PORT), "calls of the function mcp")
        server.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "GitHub, the registry, logs")
        function.add_egress_rule(
            ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "gateway endpoints: the only way there is"
        )
        function.add_egress_rule(ec2.Peer.any_ipv6(), ec2.Port.tcp(443), "KMS and keys")

    def _service(self, namespace: str) -> ecs.FargateService:
        cluster = ecs.Cluster(self, "Cluster", vpc=self.vpc)
        accept(
            cluster, "AwsSolutions-ECS4", "Container Insights would cost more than the one task it watches."
        )
        service = ecs.FargateService(
            self,
            "Server",
            cluster=cluster,
            task_definition=self._task(),
            desired_count=1,
            assign_public_ip=True,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC),
            security_groups=[self._server_group],
            platform_version=ecs.FargatePlatformVersion.VERSION1_4,
            # The old task serves until the new one is healthy; an unhealthy release is rolled back.
            min_healthy_percent=100,
            max_healthy_percent=200,
            # for bills and Security Hub
            propagate_tags=ecs.PropagatedTagSource.SERVICE,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            cloud_map_options=ecs.CloudMapOptions(
                name="github",
                dns_record_type=cloudmap.DnsRecordType.A,
                dns_ttl=Duration.seconds(10),
                cloud_map_namespace=cloudmap.PrivateDnsNamespace(
                    self, "Names", name=namespace, vpc=self.vpc, description="Where MCP servers are found"
                ),
            ),
        )
        scaling = service.auto_scale_task_count(min_capacity=1, max_capacity=self._settings.max_tasks)
        scaling.scale_on_cpu_utilization("Cpu", target_utilization_percent=60)
        return service

    def _task(self) -> ecs.FargateTaskDefinition:
        task = ecs.FargateTaskDefinition(
            self,
            "Task",
            cpu=256,
            memory_limit_mib=512,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64,
                operating_system_family=ecs.OperatingSystemFamily.LINUX,
            ),
        )
        log_group = self._log_group("Logs")
        server = self._container(
            task, "server", self._settings.image, self._command(), log_group, user="65532"
        )
        server.add_port_mappings(ecs.PortMapping(container_port=PORT))
        probe = self._container(
            task,
            "probe",
            self._settings.probe_image,
            ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
            log_group,
            user="65534",
            health_check=_probe(),
        )
        probe.add_container_dependencies(
            ecs.ContainerDependency(container=server, condition=ecs.ContainerDependencyCondition.START)
        )
        self._may_pull(task)
        if self._settings.github_host:
            accept(
                task,
                "AwsSolutions-ECS2",
                "GITHUB_HOST is an address; the task holds no secret, tokens come with each request.",
            )
        return task

    def _command(self) -> list[str]:
        flags = ["--port", str(PORT), "--toolsets", self._settings.toolsets]
        return ["http", *flags, *(["--read-only"] if self._settings.read_only else [])]

    def _container(
        self,
        task: ecs.FargateTaskDefinition,
        name: str,
        image: str,
        command: list[str],
        log_group: logs.ILogGroup,
        *,
        user: str,
        health_check: ecs.HealthCheck | None = None,
    ) -> ecs.ContainerDefinition:
        linux = ecs.LinuxParameters(self, f"{name.capitalize()}Linux")
        linux.drop_capabilities(ecs.Capability.ALL)
        host = self._settings.github_host if name == "server" else ""
        return task.add_container(
            name,
            image=ecs.ContainerImage.from_registry(_pinned(image)),
            command=command,
            essential=True,
            user=user,
            readonly_root_filesystem=True,
            linux_parameters=linux,
            environment={"GITHUB_HOST": host} if host else {},
            docker_labels={"version": _parts(image)["tag"] or "unversioned"},
            logging=ecs.LogDrivers.aws_logs(
                stream_prefix=name, log_group=log_group, mode=ecs.AwsLogDriverMode.NON_BLOCKING
            ),
            health_check=health_check,
        )

    def _may_pull(self, task: ecs.FargateTaskDefinition) -> None:
        """Pulling an image from a registry of AWS needs permissions; from a public one none."""
        repositories = [
            f"arn:aws:ecr:{match['region']}:{match['account']}:repository/{match['name']}"
            for image in (self._settings.image, self._settings.probe_image)
            if (match := _ECR.fullmatch(_parts(image)["name"]))
        ]
        if not repositories:
            return
        role = task.obtain_execution_role()
        pull = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"]
        role.add_to_principal_policy(iam.PolicyStatement(actions=pull, resources=repositories))
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"])
        )
        reason = "ecr:GetAuthorizationToken knows no resource; the pulls name their repositories."
        accept(role, "AwsSolutions-IAM5[Resource::*]", reason)

    def _log_group(self, name: str) -> logs.LogGroup:
        group = logs.LogGroup(self, name, removal_policy=RemovalPolicy.DESTROY)
        resource: Any = group.node.default_child
        resource.retention_in_days = self._stage.log_retention_days
        return group


def _in(region: str) -> str:
    """The name of a condition."""
    return f"In{region.title().replace('-', '')}"


def _probe() -> ecs.HealthCheck:
    """The server's image has neither shell nor client, so another container of the task checks its health.

    Both containers are essential: an unhealthy probe makes the task unhealthy, and ECS replaces it.
    """
    return ecs.HealthCheck(
        command=["CMD-SHELL", f"wget -q -T 3 -O /dev/null http://127.0.0.1:{PORT}{HEALTH_ROUTE} || exit 1"],
        interval=Duration.seconds(15),
        timeout=Duration.seconds(5),
        retries=3,
        start_period=Duration.seconds(15),
    )


def _parts(image: str) -> re.Match[str]:
    match = _IMAGE.fullmatch(image)
    if not match:
        raise ValueError(
            f"an image must be pinned by its digest, registry/name:tag@sha256:<64 hex digits>: {image}"
        )
    return match


def _pinned(image: str) -> str:
    """Name and digest: the digest decides what runs, a tag is only for people."""
    parts = _parts(image)
    return f"{parts['name']}@sha256:{parts['digest']}"
