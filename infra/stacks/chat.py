"""The chat stack: functions, workflow, REST API, triggers, dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import ArnFormat, CfnOutput, CfnParameter, Stack
from aws_cdk import aws_iam as iam

from infra.stacks import permissions
from infra.stacks.functions import SPECS, Function, Layers, Network, reserved_concurrency
from infra.stacks.observability import Observability
from infra.stacks.rest import Rest
from infra.stacks.workflow import Triggers, Workflow
from infra.stages import PARAMETER_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constructs import Construct

    from infra.stacks.data import DataStack
    from infra.stacks.identity import IdentityStack
    from infra.stages import Services, StageSettings


class ChatStack(Stack):
    """Everything that runs.

    ``github_network``: where the MCP servers can be reached, if in a VPC. ``alarm_email``: who hears of alarms.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        services: Services,
        data: DataStack,
        identity: IdentityStack,
        github_network: Network | None = None,
        alarm_email: str = "",
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-chat")
        self._stage = stage
        self._data = data
        self._identity = identity
        self._services = services
        self._layers = Layers(self, stage)
        self.functions = self._functions(github_network)
        self.workflow = Workflow(self, "Chat", stage=stage, steps=self.functions)
        self._connect(self.workflow)
        self.rest = Rest(
            self,
            "Rest",
            stage=stage,
            pool=identity.pool,
            api=self.functions["api"],
            stream=self.functions["stream"],
            allowed_origins=self._value("allowed_origins") or "*",
        )
        self.triggers = Triggers(
            self, "Triggers", stage=stage, machine=self.workflow.machine, functions=self.functions
        )
        Observability(
            self,
            "Observability",
            stage=stage,
            functions=self.functions,
            machine=self.workflow.machine,
            rest=self.rest.rest,
            undelivered=self.triggers.undelivered,
            failed=self.triggers.failed,
            alarm_email=alarm_email,
        )
        self._outputs()

    def _value(self, setting: str) -> str:
        """The setting itself, or the parameter that the local stack fills in."""
        value: str | None = getattr(self._services, setting)
        if value is not None:
            return value
        name = PARAMETER_NAMES[setting]
        existing: Any = self.node.try_find_child(name)
        parameter: CfnParameter = existing or CfnParameter(self, name, type="String", default="")
        return parameter.value_as_string

    def _functions(self, github_network: Network | None) -> dict[str, Function]:
        environments = self._environments()
        reserved = reserved_concurrency(self._stage)
        return {
            name: Function(
                self,
                "".join(part.capitalize() for part in name.split("_")),
                spec=spec,
                stage=self._stage,
                layers_=self._layers,
                environment=environments[name],
                allowed=getattr(permissions, f"of_{name}")(self._data),
                network=github_network if name == "github" else None,
                reserved_concurrency=reserved.get(name),
            )
            for name, spec in SPECS.items()
        }

    def _environments(self) -> Mapping[str, dict[str, str]]:
        """What each function is told, and nothing that it does not need."""
        data, secrets = self._data, self._data.secret_names
        history = {"HISTORY_TABLE": data.history.table_name}
        chats = {"CHATS_TABLE": data.chats.table_name}
        credit = {"CREDITS_TABLE": data.credits.table_name}
        cache = {"CACHE_TABLE": data.cache.table_name}
        bodies = {"BODIES_BUCKET": data.bodies.bucket_name}
        memory = {**history, **chats, **bodies}
        connections = {"CONNECTIONS_KEY": data.connections_key.key_arn}
        servers = {"MCP_SERVERS": self._value("mcp_servers")}
        anthropic = {
            "ANTHROPIC_BASE_URL": self._value("anthropic_base_url"),
            "ANTHROPIC_SECRET": secrets["anthropic"],
            "DUALTRACK_MODEL": self._value("model"),
            "DUALTRACK_SUMMARY_MODEL": self._value("summary_model"),
        }
        return {
            "api": {
                **memory, **credit, **cache, **connections, **servers,
                "ALLOWED_ORIGINS": self._value("allowed_origins"),
                "USER_POOL_ID": self._identity.pool.user_pool_id,
            },
            "turn": {**memory, **credit, **cache, **anthropic, **servers},
            "tool": memory,
            "search": {
                **memory, **cache, **anthropic,
                "VOYAGE_BASE_URL": self._value("voyage_base_url"),
                "VOYAGE_SECRET": secrets["voyage"],
                "CONTEXT7_BASE_URL": self._value("context7_base_url"),
                "CONTEXT7_SECRET": secrets["context7"],
                "DUALTRACK_EMBEDDING_MODEL": self._value("embedding_model"),
            },
            "github": {
                **memory, **cache, **connections, **servers,
                "GITHUB_TOKEN_SECRET": secrets["github"],
            },
            "summarise": {**memory, **anthropic},
            "abort": {**memory, **credit},
            "sweep": {**memory, **credit},
            "credit_reset": credit,
            "stream": {**chats, **cache, **self._web_adapter(), **self._token_check()},
        }  # fmt: skip

    def _token_check(self) -> dict[str, str]:
        issuer = f"https://cognito-idp.{self.region}.amazonaws.com/{self._identity.pool.user_pool_id}"
        return {
            "ALLOWED_ORIGINS": self._value("allowed_origins"),
            "JWKS_URL": f"{issuer}/.well-known/jwks.json",
            "TOKEN_ISSUER": issuer,
            "TOKEN_AUDIENCE": self._identity.client.user_pool_client_id,
        }

    @staticmethod
    def _web_adapter() -> dict[str, str]:
        return {
            "AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap",
            "AWS_LWA_INVOKE_MODE": "response_stream",
            "AWS_LWA_PORT": "8080",
            "AWS_LWA_READINESS_CHECK_PATH": "/health",
        }

    def _connect(self, workflow: Workflow) -> None:
        """The functions that start and stop executions know the machine, which knows the others; api may look
        up the users whom an administrator means."""
        arn = workflow.machine.state_machine_arn
        for name in ("api", "sweep"):
            self.functions[name].function.add_environment("STATE_MACHINE_ARN", arn)
        executions = self.format_arn(
            service="states",
            resource="execution",
            resource_name=f"{workflow.name}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        look_up = iam.PolicyStatement(
            actions=["cognito-idp:ListUsers"], resources=[self._identity.pool.user_pool_arn]
        )
        self.functions["api"].role.add_to_policy(look_up)
        start = iam.PolicyStatement(actions=["states:StartExecution"], resources=[arn])
        stop = iam.PolicyStatement(actions=["states:StopExecution"], resources=[executions])
        look = iam.PolicyStatement(actions=["states:DescribeExecution"], resources=[executions])
        for statement in (start, stop):
            self.functions["api"].role.add_to_policy(statement)
        for statement in (start, stop, look):
            self.functions["sweep"].role.add_to_policy(statement)

    def _outputs(self) -> None:
        outputs = {
            "ApiUrl": self.rest.rest.url,
            "RestApiId": self.rest.rest.rest_api_id,
            "StateMachineArn": self.workflow.machine.state_machine_arn,
            "UndeliveredQueueUrl": self.triggers.undelivered.queue_url,
            "FailedQueueUrl": self.triggers.failed.queue_url,
            "StreamRoleArn": self.functions["stream"].role.role_arn,
            **{f"{f.node.id}Function": f.function.function_name for f in self.functions.values()},
        }
        for key, value in outputs.items():
            CfnOutput(self, key, value=value)
