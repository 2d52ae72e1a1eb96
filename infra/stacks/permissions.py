"""What each function may do: least privilege, statement by statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam

from infra.stacks.data import ACTIVE_ACCOUNTS_INDEX, OPEN_CHATS_INDEX, bodies_export

if TYPE_CHECKING:
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_kms as kms

    from infra.stacks.data import DataStack
    from infra.stages import StageSettings

READ: Final = ("GetItem", "Query")
APPEND: Final = ("GetItem", "PutItem", "Query", "ConditionCheckItem")
CHANGE: Final = (*APPEND, "UpdateItem")
OWN: Final = (*CHANGE, "DeleteItem", "BatchWriteItem")

_LEASE_KEYS: Final = "LEASE#*"
"""`dualtrack.storage.leases.KEY_PREFIX`; written out, because the templates' key covers the sources of infra alone."""


def _table(table: dynamodb.ITable, *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=sorted({f"dynamodb:{action}" for action in actions}), resources=[table.table_arn]
    )


def _index(table: dynamodb.ITable, index: str, *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=[f"dynamodb:{action}" for action in actions], resources=[f"{table.table_arn}/index/{index}"]
    )


def _leases(data: DataStack) -> iam.PolicyStatement:
    """Take and give back leases, and change no other item of the table."""
    return iam.PolicyStatement(
        actions=["dynamodb:UpdateItem"],
        resources=[data.cache.table_arn],
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [_LEASE_KEYS]}},
    )


def _objects(data: DataStack, *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=[f"s3:{action}" for action in actions], resources=[f"{data.bodies_arn}/*"]
    )


def _list(data: DataStack) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=["s3:ListBucket"], resources=[data.bodies_arn])


def _secret(data: DataStack, *names: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=["secretsmanager:GetSecretValue"],
        resources=[
            data.format_arn(
                service="secretsmanager",
                resource="secret",
                # Secrets Manager puts six characters of its own behind the name
                resource_name=f"{data.secret_names[name]}-??????",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            for name in names
        ],
    )


def _key(key: kms.IKey, action: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=[f"kms:{action}"], resources=[key.key_arn])


def wildcards(stage: StageSettings) -> dict[str, str]:
    """The resources with a wildcard that a function's role may name, as cdk-nag writes them, and why."""
    executions = f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:{stage.prefix}-chat:*"
    return {
        "*": "X-Ray knows no narrower resource, nor does EC2 for a function in a VPC.",
        f"{bodies_export(stage)}/*": "Objects are named after user and conversation.",
        executions: "An execution is named after its chat.",
    }


def of_api(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.chats, *OWN),
        _table(data.history, *OWN, "BatchGetItem"),
        _table(data.credits, "GetItem", "PutItem", "UpdateItem", "Query"),
        # GitHub connections, and the catalogue of MCP tools for GET /v1/tools
        _table(data.cache, "GetItem", "PutItem", "DeleteItem"),
        _leases(data),
        _objects(data, "GetObject", "PutObject", "DeleteObject"),
        _list(data),
        _key(data.connections_key, "Encrypt"),
    ]


def of_turn(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.chats, *CHANGE),
        _table(data.history, *CHANGE, "BatchGetItem"),
        _table(data.credits, "GetItem", "PutItem", "UpdateItem"),
        _table(data.cache, "GetItem"),
        _objects(data, "GetObject", "PutObject"),
        _secret(data, "anthropic"),
    ]


def of_tool(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.chats, *APPEND),
        _table(data.history, *APPEND, "BatchGetItem"),
        _objects(data, "GetObject", "PutObject"),
    ]


def of_search(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        *of_tool(data),
        _table(data.cache, "GetItem", "PutItem", "BatchGetItem", "BatchWriteItem"),
        _secret(data, "anthropic", "voyage", "context7"),
    ]


def of_github(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        *of_tool(data),
        _table(data.cache, "GetItem", "PutItem", "Query"),
        _key(data.connections_key, "Decrypt"),
        _secret(data, "github"),
    ]


def of_summarise(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.chats, *CHANGE),
        _table(data.history, *CHANGE, "BatchGetItem"),
        _objects(data, "GetObject", "PutObject"),
        _secret(data, "anthropic"),
    ]


def of_abort(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.chats, *CHANGE),
        _table(data.history, *CHANGE, "BatchGetItem"),
        _table(data.credits, *CHANGE),
        _objects(data, "GetObject", "PutObject"),
    ]


def of_sweep(data: DataStack) -> list[iam.PolicyStatement]:
    return [*of_abort(data), _index(data.chats, OPEN_CHATS_INDEX, "Query")]


def of_credit_reset(data: DataStack) -> list[iam.PolicyStatement]:
    return [
        _table(data.credits, "GetItem", "PutItem"),
        _index(data.credits, ACTIVE_ACCOUNTS_INDEX, "Query"),
    ]


def of_stream(data: DataStack) -> list[iam.PolicyStatement]:
    return [_table(data.chats, *READ), _leases(data)]
