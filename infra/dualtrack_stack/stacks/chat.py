"""The chat stack: functions, workflow, REST API, triggers, dashboard."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from aws_cdk import CfnOutput, CfnParameter, Fn, Stack
from dualtrack.credits.aws_cost import PRICES
from dualtrack.settings import DEFAULTS, declared, text_of
from dualtrack.tools.mcp.config import parse_servers

from dualtrack_stack.edge import PLAIN
from dualtrack_stack.machines import CHAT, CORPUS
from dualtrack_stack.prices import HOME, prices
from dualtrack_stack.project.function import NAME as OWN
from dualtrack_stack.project.model import Project
from dualtrack_stack.project.packaging import build_function
from dualtrack_stack.roots import function_folders, project_root
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.function_specs import SPECS
from dualtrack_stack.stacks.functions import Function, Layers, Network, reserved_concurrency
from dualtrack_stack.stacks.model_services import variables, wildcards
from dualtrack_stack.stacks.observability import Observability
from dualtrack_stack.stacks.own import complete
from dualtrack_stack.stacks.permissions import Allow
from dualtrack_stack.stacks.rest import Rest
from dualtrack_stack.stacks.workflow import Triggers, Workflow
from dualtrack_stack.stages import StageSettings
from dualtrack_stack.watch import NOBODY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aws_cdk.aws_ecs import FargateService
    from constructs import Construct
    from dualtrack.settings import Settings

    from dualtrack_stack.edge import StageEdge
    from dualtrack_stack.stacks.data import DataStack
    from dualtrack_stack.stacks.function_specs import FunctionSpec
    from dualtrack_stack.stacks.identity import IdentityStack
    from dualtrack_stack.watch import Watch


class ChatStack(Stack):
    """Everything that runs.

    ``mcp_network``: the network of the MCP servers, if in a VPC, and ``mcp_service`` their service there.
    ``watch``: who is told of alarms. ``edge``: the stage's own domain and its firewall.
    ``course_vectors_arn``: the vector bucket's, empty without one. ``project``: whose tools and profiles it has.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        settings: Settings | None,
        data: DataStack,
        identity: IdentityStack,
        mcp_network: Network | None = None,
        watch: Watch = NOBODY,
        edge: StageEdge = PLAIN,
        mcp_service: FargateService | None = None,
        course_vectors_arn: str = "",
        project: Project | None = None,
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-chat")
        self._stage = stage
        self._project = project or Project(project_root())
        self._data = data
        self._identity = identity
        self._settings = settings
        self._course_vectors_arn = course_vectors_arn
        self._layers = Layers(self, stage, self._project)
        self.functions = self._functions(mcp_network)
        self.workflow = Workflow(self, "Chat", CHAT, stage=stage, functions=self.functions)
        self.corpus_workflow = Workflow(self, "Corpus", CORPUS, stage=stage, functions=self.functions)
        embed = self.functions["embed"].alias
        machines = {"chat": self.workflow.machine, "corpus": self.corpus_workflow.machine}
        allow = Allow(stage, data, identity.pool, machines, embed, settings, course_vectors_arn)
        values = self._values()
        for function in self.functions.values():
            function.connect(values, allow)
        if own := self.functions.get(OWN):
            complete(own, self._project.own(stage.name), stage.name)
        self._accept_wildcards()
        self.rest = Rest(
            self,
            "Rest",
            stage=stage,
            pool=identity.pool,
            api=self.functions["api"],
            stream=self.functions["stream"],
            allowed_origins=self._value("ALLOWED_ORIGINS") or "*",
            edge=edge,
        )
        self.triggers = Triggers(
            self, "Triggers", stage=stage, machine=self.workflow.machine, functions=self.functions
        )
        observability = Observability(
            self,
            "Observability",
            stage=stage,
            functions=self.functions,
            machine=self.workflow.machine,
            rest=self.rest.rest,
            undelivered=self.triggers.undelivered,
            failed=self.triggers.failed,
            tables={"history": data.history, "chats": data.chats, "credits": data.credits},
            watch=watch,
            lists_tools=settings is None or bool(parse_servers(settings.mcp_servers)),
            mcp_service=mcp_service,
        )
        if self.workflow.release and stage.moves_by_steps:
            self.workflow.release.move_by_steps(stage, observability.release_alarms)
        self._outputs()

    def _value(self, name: str) -> str:
        """The value of a setting, or the parameter that the local stack fills in: it changes a setting without a new
        synthesis. On AWS the value is in the template, because a published function version keeps the environment it
        was published with, and a changed parameter alone would publish no new one.
        """
        entry = declared()[name]
        if self._settings is not None:
            return text_of(getattr(self._settings, entry.field))
        existing: Any = self.node.try_find_child(entry.parameter)
        parameter: CfnParameter = existing or CfnParameter(self, entry.parameter, type="String", default="")
        return parameter.value_as_string

    def _accept_wildcards(self) -> None:
        for arn, reason in wildcards(self._settings).items():
            for function in self.functions.values():
                accept(function.role, f"AwsSolutions-IAM5[Resource::{arn}]", reason)

    def _functions(self, mcp_network: Network | None) -> dict[str, Function]:
        reserved = reserved_concurrency(self._stage)
        return {
            name: Function(
                self,
                spec.construct_id,
                spec=spec,
                stage=self._stage,
                layers_=self._layers,
                code=self._code(name),
                network=mcp_network if name == "mcp" else None,
                reserved_concurrency=reserved.get(name),
            )
            for name, spec in self._specs().items()
        }

    def _specs(self) -> Mapping[str, FunctionSpec]:
        """The functions' entries; the one of the project's tools as its settings say, if it has any. The local
        template always has it: it is the same for every project (`dualtrack_stack.local.own`)."""
        if not (self._project.specs or self._stage.name == "local"):
            return {name: spec for name, spec in SPECS.items() if name != OWN}
        own = self._project.own(self._stage.name)
        return {**SPECS, OWN: replace(SPECS[OWN], memory=own.memory, seconds=own.seconds)}

    def _code(self, name: str) -> Path:
        is_built = name == OWN and self._stage.built_layers
        return build_function(self._project) if is_built else function_folders()[name]

    def _values(self) -> Mapping[str, str]:
        """The values of all variables that a function may have."""
        entries, stored = declared().values(), self._data.secret_names
        used = [entry for entry in entries if entry.declared.used_by]
        chosen = {entry.name: self._value(entry.name) for entry in used if not entry.is_key}
        services = variables(chosen, self.region, stored)
        secrets = {entry.field.upper(): stored[entry.stored] for entry in used if entry.is_key}
        return {**self._resources(), **self._of_stage(), **chosen, **services, **secrets}

    def _of_stage(self) -> Mapping[str, str]:
        """The fields that the stage and the functions' settings share."""
        shared = [item.name for item in fields(StageSettings) if hasattr(DEFAULTS, item.name)]
        return {name.upper(): text_of(getattr(self._stage, name)) for name in shared}

    def _resources(self) -> Mapping[str, str]:
        """What functions are told of the stack itself."""
        data, pool = self._data, self._identity.pool
        issuer = f"https://cognito-idp.{self.region}.amazonaws.com/{pool.user_pool_id}"
        price = prices(os.environ.get("CDK_DEFAULT_REGION") or HOME)
        return {
            "HISTORY_TABLE": data.history.table_name,
            "CHATS_TABLE": data.chats.table_name,
            "CREDITS_TABLE": data.credits.table_name,
            "CACHE_TABLE": data.cache.table_name,
            "BODIES_BUCKET": data.bodies.bucket_name,
            "COURSE_VECTORS": _bucket_name(self._course_vectors_arn),
            "CONNECTIONS_KEY": data.connections_key.key_arn,
            "STATE_MACHINE_ARN": self.workflow.start_arn,
            "CORPUS_MACHINE_ARN": self.corpus_workflow.start_arn,
            "AWS_PRICES": json.dumps({name: price[name] for name in PRICES}),
            "FUNCTION_SIZES": json.dumps({name: spec.memory for name, spec in self._specs().items()}),
            "USER_POOL_ID": pool.user_pool_id,
            "JWKS_URL": f"{issuer}/.well-known/jwks.json",
            "TOKEN_ISSUER": issuer,
            "TOKEN_AUDIENCE": f"{self._identity.client.user_pool_client_id},{self._identity.terminal.user_pool_client_id}",
            "EMBED_FUNCTION": self.functions["embed"].alias.function_arn,
        }

    def _outputs(self) -> None:
        outputs = {
            "ApiUrl": self.rest.rest.url,
            "RestApiId": self.rest.rest.rest_api_id,
            "StateMachineArn": self.workflow.machine.state_machine_arn,
            "CorpusMachineArn": self.corpus_workflow.machine.state_machine_arn,
            "UndeliveredQueueUrl": self.triggers.undelivered.queue_url,
            "FailedQueueUrl": self.triggers.failed.queue_url,
            "StreamRoleArn": self.functions["stream"].role.role_arn,
            **{f"{f.node.id}Function": f.function.function_name for f in self.functions.values()},
        }
        for key, value in outputs.items():
            CfnOutput(self, key, value=value)
        # the page's, whether there is one or not: an export in use cannot be dropped
        self.export_value(self.rest.rest.rest_api_id)
        self.export_value(self.rest.rest.deployment_stage.stage_name)


def _bucket_name(arn: str) -> str:
    """``arn:…:bucket/<name>`` → the name, when it is deployed; empty for none."""
    return Fn.select(1, Fn.split("bucket/", arn)) if arn else ""
