"""How a Lambda function is built from its entry in `dualtrack_stack.stacks.function_specs` (DESIGN 2.13, 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import Duration, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct
from dualtrack.runtime.plain_log import NAMESPACE

from dualtrack_stack import layers
from dualtrack_stack.project.function import NAME as OWN
from dualtrack_stack.project.model import packaged
from dualtrack_stack.project.packaging import build_layer, has_packages
from dualtrack_stack.roots import LIBRARY
from dualtrack_stack.stacks import permissions
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.function_specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_sqs as sqs
    from aws_cdk import aws_stepfunctions as sfn

    from dualtrack_stack.project.model import Project
    from dualtrack_stack.stacks.function_specs import FunctionSpec
    from dualtrack_stack.stacks.permissions import Allow
    from dualtrack_stack.stages import StageSettings

ALIAS: Final = "live"
LAMBDA_DISK: Final = 512
"""MB of ``/tmp`` that every function has."""

_NOT_CODE: Final = ["__pycache__", "*.pyc", ".keep"]

WEB_ADAPTER_ACCOUNT: Final = "753240598075"
WEB_ADAPTER_LAYER: Final = "LambdaAdapterLayerArm64:28"
"""Lambda Web Adapter 1.0.1, published by AWS in every region (docs/aws/security.md has the command that
shows its versions)."""
WEB_ADAPTER_SETTINGS: Final = MappingProxyType(
    {
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap",
        "AWS_LWA_INVOKE_MODE": "response_stream",
        "AWS_LWA_PORT": "8080",
        "AWS_LWA_READINESS_CHECK_PATH": "/health",
    }
)


def reserved_concurrency(stage: StageSettings) -> Mapping[str, int]:
    """The stage's setting; raises ValueError for an unknown function or a number below 1."""
    wrong = {
        name: number for name, number in stage.reserved_concurrency.items() if name not in SPECS or number < 1
    }
    if wrong:
        raise ValueError(
            f"reserved_concurrency of stage {stage.name}: {wrong}; functions are {', '.join(SPECS)}"
        )
    return stage.reserved_concurrency


def snap_start(stage: StageSettings) -> frozenset[str]:
    """The stage's setting; raises ValueError for an unknown function, or one that cannot have a snapshot: with
    more than 512 MB of ``/tmp``, or served by another runtime than Python's own (AWS Lambda Developer Guide, "Improving
    startup performance with Lambda SnapStart"); or that reads secrets before it, which would be in the snapshot.
    """
    able = {name for name, spec in SPECS.items() if spec.disk <= LAMBDA_DISK and not spec.serves_http} - {OWN}
    if wrong := set(stage.snap_start) - able:
        raise ValueError(
            f"snap_start of stage {stage.name}: {', '.join(sorted(wrong))}; it can be {', '.join(sorted(able))}"
        )
    return frozenset(stage.snap_start)


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a function that reaches something inside a VPC."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    security_groups: tuple[ec2.ISecurityGroup, ...] = field(default=())


class Layers:
    """The layers of one stack, made when a function first asks for them."""

    def __init__(self, scope: Construct, stage: StageSettings, project: Project) -> None:
        self._scope = scope
        self._stage = stage
        self._project = project
        self._made: dict[str, lambda_.ILayerVersion] = {}

    def of(self, spec: FunctionSpec) -> list[lambda_.ILayerVersion]:
        """The library and the dependencies of a function, locally only the library; a web server also gets the web
        adapter.
        """
        dependencies = self._dependencies(spec) if self._stage.built_layers else ()
        own = [self._layer(name) for name in ("core", *dependencies)]
        return [*own, self._web_adapter()] if spec.serves_http else own

    def _dependencies(self, spec: FunctionSpec) -> tuple[str, ...]:
        return (OWN,) if spec.name == OWN and has_packages(self._project) else spec.layers

    def _web_adapter(self) -> lambda_.ILayerVersion:
        region = Stack.of(self._scope).region
        arn = f"arn:aws:lambda:{region}:{WEB_ADAPTER_ACCOUNT}:layer:{WEB_ADAPTER_LAYER}"
        return lambda_.LayerVersion.from_layer_version_arn(self._scope, "WebAdapter", arn)

    def _layer(self, name: str) -> lambda_.ILayerVersion:
        if name not in self._made:
            folder = self._folder(name)
            self._made[name] = lambda_.LayerVersion(
                self._scope,
                f"{name.capitalize()}Layer",
                code=lambda_.Code.from_asset(
                    str(folder),
                    exclude=self._excluded(),
                    asset_hash=self._stage.asset_name(f"layers/{name}") or layers.key_of(folder),
                ),
                compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
                compatible_architectures=[lambda_.Architecture.ARM_64],
                description=f"dualtrack: {name}",
            )
        return self._made[name]

    def _folder(self, name: str) -> Path:
        if not self._stage.built_layers:
            return LIBRARY  # locally the library is the only layer
        if name == "core":
            return layers.build_core(packaged(self._project))
        return build_layer(self._project) if name == OWN else layers.build(layers.ROLES[name])

    def _excluded(self) -> list[str]:
        return [] if self._stage.built_layers else _NOT_CODE


class Function(Construct):
    """A function with its own role, its own log group and the alias ``live``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: FunctionSpec,
        stage: StageSettings,
        layers_: Layers,
        code: Path,
        network: Network | None = None,
        reserved_concurrency: int | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.spec = spec
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            retention=_RETENTION[stage.log_retention_days],
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = self._role(in_vpc=network is not None)
        self.function = lambda_.Function(
            self,
            "Function",
            description=spec.description,
            code=lambda_.Code.from_asset(
                str(code),
                exclude=_NOT_CODE,
                asset_hash=stage.asset_name(f"functions/{spec.name}"),
            ),
            handler=spec.handler,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            timeout=Duration.seconds(spec.seconds),
            memory_size=spec.memory,
            ephemeral_storage_size=Size.mebibytes(spec.disk) if spec.disk > LAMBDA_DISK else None,
            layers=layers_.of(spec),
            role=self.role,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=lambda_.Tracing.ACTIVE,
            environment={
                "POWERTOOLS_SERVICE_NAME": spec.name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                "STAGE": stage.name,  # a dimension of every metric
                "POWERTOOLS_LOG_LEVEL": stage.log_level,
                **(WEB_ADAPTER_SETTINGS if spec.serves_http else {}),
            },
            reserved_concurrent_executions=reserved_concurrency,
            snap_start=_SNAPSHOTS if spec.name in snap_start(stage) else None,
            # an execution, a retry or a stream may still run on the version before (DESIGN 2.14)
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
            vpc=network.vpc if network else None,
            vpc_subnets=network.subnets if network else None,
            security_groups=list(network.security_groups) if network else None,
        )
        accept(
            self.function,
            "AwsSolutions-L1",
            "Layers are built, measured and shipped as bytecode for Python 3.13, which Lambda supports until 2029.",
        )
        for resource, reason in permissions.wildcards(stage).items():
            accept(self.role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)
        self.alias = lambda_.Alias(self, "Live", alias_name=ALIAS, version=self.function.current_version)

    def connect(self, values: Mapping[str, str], allow: Allow) -> None:
        """Add the variables and permissions of its entry, after all functions are made: `api` and `sweep` name the
        workflow, which names the other functions.
        """
        for name in self.spec.variables:
            self.function.add_environment(name, values[name])
        for statement in (*self.spec.permissions(allow), *allow.keys(self.spec.in_settings)):
            self.role.add_to_policy(statement)

    def arn_for(self, stage: StageSettings) -> str:
        """The ARN in a machine's definition: of this deployment's version if machines have versions, else of the
        alias."""
        called = self.function.current_version if stage.has_versions else self.alias
        return called.function_arn

    def let_invoke(self, machine: sfn.StateMachine, stage: StageSettings) -> None:
        """Allow the alias, and all versions if machines have versions: executions of earlier releases call theirs with
        the same role (aws/aws-cdk#17515).
        """
        self.alias.grant_invoke(machine)
        if stage.has_versions:
            versions = f"{self.function.function_arn}:*"
            machine.add_to_role_policy(
                iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[versions])
            )
            resource: Any = self.function.node.default_child
            logical_id = self.function.stack.get_logical_id(resource)
            accept(
                machine,
                f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>:*]",
                "Executions that an earlier release began call its versions of the functions.",
            )

    def fail_to(self, queue: sqs.Queue, *, retry_attempts: int, max_event_age: Duration) -> None:
        """The destination of asynchronous calls of the alias that fail at every attempt, or wait too long.

        Retries and dead-letter queue of a rule or a schedule only cover the delivery to Lambda: an event whose function
        raises would be lost after Lambda's own retries (AWS Lambda Developer Guide, "Capturing records of Lambda
        asynchronous invocations").
        """
        self.role.add_to_policy(iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[queue.queue_arn]))
        config = lambda_.CfnEventInvokeConfig(
            self,
            "Failures",
            function_name=self.function.function_name,
            qualifier=ALIAS,
            maximum_retry_attempts=retry_attempts,
            maximum_event_age_in_seconds=max_event_age.to_seconds(),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=queue.queue_arn)
            ),
        )
        config.node.add_dependency(self.alias)

    def join_network(self, subnets: Sequence[str], security_groups: Sequence[str]) -> None:
        """Put it into subnets that are not this stage's, with the permission that Lambda needs for it."""
        self.role.add_to_policy(_network_interfaces())
        function: Any = self.function.node.default_child
        function.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=[*subnets], security_group_ids=[*security_groups]
        )

    def _role(self, *, in_vpc: bool) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What the function {self.spec.name} may do",
        )
        write_logs = iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[self.log_group.log_group_arn],
        )
        role.add_to_policy(write_logs)
        if in_vpc:
            role.add_to_policy(_network_interfaces())
        return role


def _network_interfaces() -> iam.PolicyStatement:
    """What Lambda needs to attach a function to a VPC; EC2 knows no narrower resource for it."""
    return iam.PolicyStatement(
        actions=[
            "ec2:CreateNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:DeleteNetworkInterface",
            "ec2:AssignPrivateIpAddresses",
            "ec2:UnassignPrivateIpAddresses",
        ],
        resources=["*"],
    )


_SNAPSHOTS: Final = lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS
_RETENTION: Final = MappingProxyType(
    {
        1: logs.RetentionDays.ONE_DAY,
        14: logs.RetentionDays.TWO_WEEKS,
        30: logs.RetentionDays.ONE_MONTH,
        90: logs.RetentionDays.THREE_MONTHS,
        365: logs.RetentionDays.ONE_YEAR,
    }
)
