"""The policy statements of the functions' roles, each for the narrowest possible resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from dualtrack.models.provider import signed
from dualtrack.settings import keys_of_function

from dualtrack_stack.stacks.data import (
    ACTIVE_ACCOUNTS_INDEX,
    CORPUS_FOLDER,
    LISTED_CONVERSATIONS_INDEX,
    OPEN_CHATS_INDEX,
    bodies_export,
)
from dualtrack_stack.stacks.model_services import region_of, unused_keys, used
from dualtrack_stack.stacks.vectors import course_vectors_export

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from aws_cdk import aws_cognito as cognito
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_stepfunctions as sfn
    from dualtrack.settings import Settings

    from dualtrack_stack.stacks.data import DataStack
    from dualtrack_stack.stages import StageSettings

_LEASE_KEYS: Final = "LEASE#*"
"""`dualtrack.storage.leases.KEY_PREFIX`; written out, because the templates' key covers the sources of infra alone."""
_AGENT_KEYS: Final = "agent#*"
_CATALOGUE_KEYS: Final = "mcp#catalogue"
"""`dualtrack.storage.agents`, `dualtrack.storage.cache`, likewise."""

COURSE_INDEX_NAMES: Final = "courses-*"
"""`dualtrack.storage.vector_indexes.index_name`, likewise."""

_CORPUS_KEYS: Final = "CORPUS#*"
"""`dualtrack.storage.corpora.partition`, likewise."""


class Allow:
    """Statements about the resources of one stage. Actions are named without their service: ``GetItem``. ``machines``
    by name: ``chat``, ``corpus``."""

    def __init__(
        self,
        stage: StageSettings,
        data: DataStack,
        pool: cognito.IUserPool,
        machines: Mapping[str, sfn.IStateMachine],
        embed: lambda_.IAlias,
        settings: Settings | None,
        course_vectors_arn: str = "",
    ) -> None:
        self._settings = settings
        self._course_vectors = course_vectors_arn
        self._embed = embed
        self._data = data
        self._pool = pool
        self._stage = stage
        self._machines = machines
        self._tables = {
            "history": data.history,
            "chats": data.chats,
            "credits": data.credits,
            "cache": data.cache,
        }

    def table(self, name: str, *actions: str) -> iam.PolicyStatement:
        """On a table: ``history``, ``chats``, ``credits`` or ``cache``."""
        return _statement("dynamodb", actions, self._tables[name].table_arn)

    def items(self, name: str, keys: str, *actions: str) -> iam.PolicyStatement:
        """On a table's items with these partition keys, ``LEASE#*``, and no others."""
        return _limited(self.table(name, *actions), keys)

    def open_chats(self, action: str, keys: str = "") -> iam.PolicyStatement:
        """On the index of chats that still run, and what else has to be looked at; ``keys``: on its partitions with
        these alone, ``hooks#*``."""
        index = f"{self._data.chats.table_arn}/index/{OPEN_CHATS_INDEX}"
        statement = _statement("dynamodb", [action], index)
        return _limited(statement, keys) if keys else statement

    def listed_conversations(self, action: str) -> iam.PolicyStatement:
        """On the index of conversations by their last query."""
        return _statement(
            "dynamodb", [action], f"{self._data.history.table_arn}/index/{LISTED_CONVERSATIONS_INDEX}"
        )

    def active_accounts(self, action: str) -> iam.PolicyStatement:
        """On the index of accounts that were used since the last reset."""
        return _statement(
            "dynamodb", [action], f"{self._data.credits.table_arn}/index/{ACTIVE_ACCOUNTS_INDEX}"
        )

    def leases(self) -> iam.PolicyStatement:
        """Take and release leases; no other item of the cache table."""
        return self.items("cache", _LEASE_KEYS, "UpdateItem")

    def event_bus(self) -> list[iam.PolicyStatement]:
        """Put copies of events on the bus that settings name; nothing if they name none."""
        name = self._settings.dualtrack_event_bus if self._settings else ""
        if not name:
            return []
        bus = self._data.format_arn(service="events", resource="event-bus", resource_name=name)
        return [_statement("events", ["PutEvents"], bus)]

    def agents(self) -> iam.PolicyStatement:
        """Store a chat's pins; no other item in the cache table."""
        return self.items("cache", _AGENT_KEYS, "PutItem")

    def catalogue(self) -> iam.PolicyStatement:
        """Change what MCP servers offer; no other item of the cache table."""
        return self.items("cache", _CATALOGUE_KEYS, "PutItem", "UpdateItem")

    def bodies(self, *actions: str) -> iam.PolicyStatement:
        """On the objects of the bucket for large bodies."""
        return _statement("s3", actions, f"{self._data.bodies_arn}/*")

    def list_bodies(self) -> iam.PolicyStatement:
        return _statement("s3", ["ListBucket"], self._data.bodies_arn)

    def corpora(self, *actions: str) -> iam.PolicyStatement:
        """On the items of corpora, and no other item of the history table."""
        return self.items("history", _CORPUS_KEYS, *actions)

    def corpus_objects(self, *actions: str) -> iam.PolicyStatement:
        """On the objects of corpora."""
        return _statement("s3", actions, f"{self._data.bodies_arn}/{CORPUS_FOLDER}*")

    def list_corpus_objects(self) -> iam.PolicyStatement:
        statement = self.list_bodies()
        statement.add_condition("StringLike", {"s3:prefix": f"{CORPUS_FOLDER}*"})
        return statement

    def course_vectors(self, *actions: str) -> list[iam.PolicyStatement]:
        """On the vector indexes of courses, where the stage has a bucket for them."""
        bucket = self._course_vectors
        return [_statement("s3vectors", actions, f"{bucket}/index/{COURSE_INDEX_NAMES}")] if bucket else []

    def list_course_vectors(self) -> list[iam.PolicyStatement]:
        bucket = self._course_vectors
        return [_statement("s3vectors", ["ListIndexes"], bucket)] if bucket else []

    def keys(self, function: Collection[str]) -> list[iam.PolicyStatement]:
        """Read the keys that settings say a function of these names uses."""
        unused = unused_keys(self._settings)
        names = [name for name in keys_of_function(function, self._settings) if name not in unused]
        return [self._parameters(*names)] if names else []

    def _parameters(self, *names: str) -> iam.PolicyStatement:
        """They are encrypted with aws/ssm, which lets every reader decrypt (AWS KMS Developer Guide, "How AWS Systems
        Manager Parameter Store uses AWS KMS")."""
        arns = (
            self._data.format_arn(
                service="ssm", resource="parameter", resource_name=self._data.secret_names[name].lstrip("/")
            )
            for name in names
        )
        return _statement("ssm", ["GetParameter"], *arns)

    def model_services(self) -> list[iam.PolicyStatement]:
        """Call the services of AWS that have the model, in this account and one region alone; on the local stack with
        credentials from outside."""
        statements = []
        for provider, signing in signed(used(self._settings)):
            if provider.name in self._data.secret_names:
                statements.append(self._parameters(provider.name))
            arn = self._data.format_arn(
                service=signing.service,
                region=region_of(provider, signing, self._settings) or self._data.region,
                resource=signing.resource,
                arn_format=ArnFormat.NO_RESOURCE_NAME,
            )
            statements.append(_statement(signing.service, signing.actions, arn))
        return statements

    def connections(self, action: str) -> iam.PolicyStatement:
        """On the key that encrypts the users' connections."""
        return _statement("kms", [action], self._data.connections_key.key_arn)

    def users(self, *actions: str) -> iam.PolicyStatement:
        return _statement("cognito-idp", actions, self._pool.user_pool_arn)

    def embed(self) -> iam.PolicyStatement:
        """Call the local embedding model."""
        return _statement("lambda", ["InvokeFunction"], self._embed.function_arn)

    def machine(self, name: str, action: str) -> iam.PolicyStatement:
        """On a workflow itself, ``chat`` or ``corpus``; `executions` is for actions on an execution."""
        return _statement("states", [action], self._machines[name].state_machine_arn)

    def executions(self, name: str, action: str) -> iam.PolicyStatement:
        """On the executions of a workflow."""
        arn = self._data.format_arn(
            service="states",
            resource="execution",
            resource_name=f"{self._stage.prefix}-{name}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return _statement("states", [action], arn)


def wildcards(stage: StageSettings) -> dict[str, str]:
    """The resources with a wildcard that a function's role may name, as cdk-nag writes them, and why."""
    executions = f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:{stage.prefix}-chat:*"
    return {
        "*": "X-Ray knows no narrower resource, nor does EC2 for a function in a VPC.",
        f"{bodies_export(stage)}/*": "Objects are named after user and conversation.",
        executions: "An execution is named after its chat.",
        f"{bodies_export(stage)}/{CORPUS_FOLDER}*": "Objects are named after version, job or upload.",
        f"{course_vectors_export(stage)}/index/{COURSE_INDEX_NAMES}": "An index is named after its version.",
        executions.replace("-chat:", "-corpus:"): "An execution is named after its job.",
    }


def _statement(service: str, actions: Sequence[str], *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=[f"{service}:{action}" for action in actions], resources=[*resources])


def _limited(statement: iam.PolicyStatement, keys: str) -> iam.PolicyStatement:
    """The leading key is an item's partition key (DynamoDB Developer Guide, "IAM policy conditions")."""
    statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": [keys]})
    return statement
