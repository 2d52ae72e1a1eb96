"""The permissions of each function's role on the deployed account, tested call by call: the whole matrix.

The expected permissions follow from each function's task (DESIGN 3), not from the templates. Calls name resources that
do not exist, so an allowed one changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from dualtrack_stack.local.aws import role_client

from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.clients.stack_client import Root

KEY = {"pk": {"S": "LEASE#least-privilege"}, "sk": {"S": "PROBE"}}
"""A lease's key. `api` and `stream` may update only leases of the cache, `turn` and `github` only what MCP servers
offer, `stream` only API keys of the chats; the emulator does not enforce that condition
(tests/infra/test_permissions.py does).
"""

NEVER = "attribute_exists(pk) AND attribute_not_exists(pk)"
TABLES = ("history", "chats", "credits", "cache")
SECRETS = ("anthropic", "bedrock", "voyage", "context7", "github", "otlp", "graph")


@dataclass
class Role:
    """The clients of one function's role."""

    root: Root
    arn: str
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client with the role's credentials."""
        if service not in self._clients:
            self._clients[service] = role_client(self.root.stack.aws, self.arn, service)
        return self._clients[service]


Call = Callable[[Role], object]


def _calls(root: Root) -> dict[str, Call]:
    """Every kind of access, by name: ``read chats``, ``secret voyage`` …"""
    settings, outputs = root.settings, root.stack.outputs
    calls: dict[str, Call] = {}
    for name in TABLES:
        table = getattr(settings, f"{name}_table")
        calls |= {f"{verb} {name}": call for verb, call in _table_calls(table).items()}
    calls |= {f"secret {name}": _secret_call(outputs[f"{name.capitalize()}KeyName"]) for name in SECRETS}
    calls["find open chats"] = _index_call(settings.chats_table, "open")
    calls["find used accounts"] = _index_call(settings.credits_table, "active")
    return calls | _object_calls(root) | _execution_calls(root) | _other_calls(root)


def _secret_call(secret: str) -> Call:
    return lambda role: role.client("ssm").get_parameter(Name=secret, WithDecryption=True)


def _index_call(table: str, index: str) -> Call:
    return lambda role: role.client("dynamodb").query(
        TableName=table,
        IndexName=index,
        KeyConditionExpression="#key = :shard",
        ExpressionAttributeNames={"#key": index},
        ExpressionAttributeValues={":shard": {"S": "none"}},
    )


def _object_calls(root: Root) -> dict[str, Call]:
    bodies = {"Bucket": root.settings.bodies_bucket, "Key": "probe/least-privilege"}
    corpora = {**bodies, "Key": "corpora/probe/least-privilege"}
    return {
        "read corpora": lambda role: role.client("s3").get_object(**corpora),
        "put corpora": lambda role: role.client("s3").put_object(**corpora, Body=b"", IfMatch='"no such"'),
        "read bodies": lambda role: role.client("s3").get_object(**bodies),
        "put bodies": lambda role: role.client("s3").put_object(**bodies, Body=b"", IfMatch='"no such"'),
        "delete bodies": lambda role: role.client("s3").delete_object(**bodies),
        "list bodies": lambda role: role.client("s3").list_objects_v2(Bucket=bodies["Bucket"], MaxKeys=1),
    }


def _execution_calls(root: Root) -> dict[str, Call]:
    execution = root.execution_arn("ch_probe")
    return {
        "start a chat": lambda role: role.client("stepfunctions").start_execution(
            stateMachineArn=root.machine, name="probe", input="no JSON"
        ),
        "stop a chat": lambda role: role.client("stepfunctions").stop_execution(executionArn=execution),
        "look at a chat": lambda role: role.client("stepfunctions").describe_execution(
            executionArn=execution
        ),
        "start a job": lambda role: role.client("stepfunctions").start_execution(
            stateMachineArn=root.stack.outputs["CorpusMachineArn"], name="probe", input="no JSON"
        ),
    }


def _other_calls(root: Root) -> dict[str, Call]:
    outputs, key = root.stack.outputs, _connections_key(root)
    encrypted = root.client("kms").encrypt(KeyId=key, Plaintext=b"probe")["CiphertextBlob"]
    return {
        "encrypt connections": lambda role: role.client("kms").encrypt(KeyId=key, Plaintext=b"probe"),
        "decrypt connections": lambda role: role.client("kms").decrypt(KeyId=key, CiphertextBlob=encrypted),
        "look users up": lambda role: role.client("cognito-idp").list_users(
            UserPoolId=outputs["UserPoolId"], Filter='sub = "nobody"'
        ),
        "delete users": lambda role: role.client("cognito-idp").admin_delete_user(
            UserPoolId=outputs["UserPoolId"], Username="nobody"
        ),
        "make users": lambda role: role.client("cognito-idp").admin_create_user(
            UserPoolId=outputs["UserPoolId"], Username="probe"
        ),
        "run the local model": lambda role: role.client("lambda").invoke(
            FunctionName=f"{outputs['EmbedFunction']}:live", Payload=b'{"texts": []}'
        ),
        "run a function": lambda role: role.client("lambda").invoke(
            FunctionName=outputs["SweepFunction"], Payload=b"{}"
        ),
    }


def _table_calls(table: str) -> dict[str, Call]:
    return {
        "read": lambda role: role.client("dynamodb").get_item(TableName=table, Key=KEY),
        "put": lambda role: role.client("dynamodb").put_item(
            TableName=table, Item=KEY, ConditionExpression=NEVER
        ),
        "update": lambda role: role.client("dynamodb").update_item(
            TableName=table,
            Key=KEY,
            UpdateExpression="SET a = :a",
            ConditionExpression=NEVER,
            ExpressionAttributeValues={":a": {"S": "a"}},
        ),
        "delete": lambda role: role.client("dynamodb").delete_item(TableName=table, Key=KEY),
        "scan": lambda role: role.client("dynamodb").scan(TableName=table, Limit=1),
    }


def _connections_key(root: Root) -> str:
    variables = root.client("lambda").get_function_configuration(
        FunctionName=root.stack.outputs["McpFunction"]
    )["Environment"]["Variables"]
    return str(variables["CONNECTIONS_KEY"])


def _tables_of(verbs: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {f"{verb} {table}" for table, allowed in verbs.items() for verb in allowed}


LOOK = ("read",)
APPEND = ("read", "put")
CHANGE = ("read", "put", "update")
OWN = (*CHANGE, "delete")

BODIES = {"read bodies", "put bodies", "read corpora", "put corpora"}

ALLOWED: dict[str, set[str]] = {
    "Api": _tables_of({"chats": OWN, "history": OWN, "credits": APPEND, "cache": OWN})
    | {
        *BODIES,
        "delete bodies",
        "list bodies",
        "start a chat",
        "stop a chat",
        "look at a chat",
        "start a job",
        "encrypt connections",
    }
    | {"look users up", "delete users"},
    "Turn": _tables_of({"chats": CHANGE, "history": CHANGE, "credits": APPEND, "cache": LOOK})
    | {*BODIES, "secret anthropic", "secret bedrock", "put cache", "update cache"},
    "Tool": _tables_of({"chats": APPEND, "history": APPEND}) | BODIES,
    "Graph": _tables_of({"chats": APPEND, "history": APPEND}) | {*BODIES, "secret graph"},
    "Search": _tables_of({"chats": APPEND, "history": APPEND})
    | {*BODIES, "secret anthropic", "secret bedrock", "secret voyage", "secret context7"}
    | {"run the local model"},
    "Mcp": _tables_of({"chats": APPEND, "history": APPEND, "cache": CHANGE})
    | {*BODIES, "secret github", "decrypt connections"},
    "Summarise": _tables_of({"chats": CHANGE, "history": CHANGE, "credits": APPEND, "cache": LOOK})
    | {*BODIES, "secret anthropic", "secret bedrock", "secret voyage", "secret otlp"}
    | {"run the local model"},
    "Abort": _tables_of({"chats": CHANGE, "history": CHANGE, "credits": APPEND}) | {*BODIES, "secret otlp"},
    "Sweep": _tables_of({"chats": OWN, "history": OWN, "credits": (*APPEND, "delete")})
    | {*BODIES, "delete bodies", "list bodies", "look users up", "delete users"}
    | {"find open chats", "start a chat", "stop a chat", "look at a chat", "start a job"},
    # it may list only the corpora's objects, and the probe lists all
    "Ingest": _tables_of({"history": OWN})
    | {"secret voyage", "read corpora", "put corpora", "run the local model"},
    "GraphLoad": _tables_of({"history": OWN}) | {"read corpora", "put corpora"},
    "CreditReset": _tables_of({"credits": APPEND}) | {"find used accounts"},
    # it admits chats as `api` does, for plug-ins' own APIs
    "Stream": _tables_of({"chats": OWN, "history": OWN, "credits": APPEND, "cache": ("read", "update")})
    | {*BODIES, "delete bodies", "list bodies", "start a chat", "stop a chat"},
    **{name: calls for part in parts("permissions") for name, calls in part.SEEN.items()},
}


def _is_denied(call: Call, role: Role) -> bool:
    """Whether the policies deny the call; any other error means that it was allowed."""
    try:
        call(role)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403 or "AccessDenied" in str(error)
    return False


@pytest.mark.parametrize("function", sorted(ALLOWED))
def test_a_function_may_do_only_what_it_must(root: Root, function: str) -> None:
    name = root.stack.outputs[f"{function}Function"]
    arn = root.client("lambda").get_function_configuration(FunctionName=name)["Role"]
    role = Role(root, arn)
    allowed = {what for what, call in _calls(root).items() if not _is_denied(call, role)}
    assert allowed == ALLOWED[function]


def test_no_function_has_a_secret_in_its_environment(root: Root) -> None:
    for page in root.client("lambda").get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            variables = function.get("Environment", {}).get("Variables", {})
            assert not [name for name, value in variables.items() if "test-" in value and "-key" in value], (
                variables
            )
            assert "test-github-token" not in variables.values()


def test_every_function_has_its_own_role(root: Root) -> None:
    client = root.client("lambda")
    roles = [
        client.get_function_configuration(FunctionName=root.stack.outputs[f"{name}Function"])["Role"]
        for name in ALLOWED
    ]
    assert len(set(roles)) == len(roles)
