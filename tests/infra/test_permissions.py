"""Least privilege, read from the templates: what each role may do, to what."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.settings import Settings
from dualtrack.storage import stores as groups
from dualtrack.storage.agents import KEY_PREFIX as AGENTS
from dualtrack.storage.corpora import FOLDER, partition
from dualtrack.storage.leases import KEY_PREFIX as LEASES
from dualtrack_stack.roots import function_folders
from dualtrack_stack.stacks.function_specs import PLUGIN_STACKS, SPECS

from tests.drivers.own_projects import WITH_A_TOOL
from tests.drivers.plugin_parts import parts
from tests.drivers.synthesised import AWS_STAGES
from tests.drivers.templates import Stage, readable
from tests.drivers.walked_stages import Variant
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READ = {"GetItem", "Query"}
APPEND = {*READ, "PutItem"}
CHANGE = {*APPEND, "UpdateItem"}
OWN = {*CHANGE, "DeleteItem", "BatchWriteItem"}
PAST = {"BatchGetItem", "ConditionCheckItem"}

TABLES: dict[str, dict[str, set[str]]] = {
    "Api": {
        "Chats": {*OWN, "BatchGetItem", "ConditionCheckItem"},
        "History": {*OWN, *PAST},
        "Credits": {"GetItem", "PutItem", "Query", "BatchGetItem"},
        "Cache": {"GetItem", "PutItem", "DeleteItem", "UpdateItem"},
    },
    "Turn": {
        "Chats": {*CHANGE, "ConditionCheckItem"},
        "History": {*CHANGE, *PAST},
        "Credits": {"GetItem", "PutItem"},
        "Cache": {"GetItem", "PutItem", "UpdateItem"},
    },
    "Tool": {"Chats": APPEND, "History": {*APPEND, "BatchGetItem"}},
    "Graph": {"Chats": APPEND, "History": {"GetItem", "PutItem", "BatchGetItem"}},
    "Own": {"Chats": APPEND, "History": {"GetItem", "PutItem", "BatchGetItem"}},
    "Search": {
        "Chats": APPEND,
        "History": {*APPEND, *PAST},
        "Cache": {"BatchGetItem", "BatchWriteItem"},
    },
    "Mcp": {
        "Chats": APPEND,
        "History": {"GetItem", "PutItem", "BatchGetItem"},
        "Cache": {"GetItem", "PutItem", "UpdateItem"},
    },
    "Summarise": {
        "Chats": CHANGE,
        "History": {*CHANGE, *PAST},
        "Credits": {"GetItem", "PutItem"},
        "Cache": {"GetItem"},
    },
    "Abort": {"Chats": CHANGE, "History": {*CHANGE, *PAST}, "Credits": {"GetItem", "PutItem"}},
    "Sweep": {
        "Chats": OWN,
        "History": {*OWN, *PAST},
        "Credits": {*APPEND, "DeleteItem", "BatchWriteItem"},
        "Cache": {"Query", "BatchWriteItem"},
    },
    "CreditReset": {"Credits": {"GetItem", "PutItem"}},
    "Stream": {
        "Chats": {*OWN, "ConditionCheckItem"},
        "History": {*OWN, *PAST},
        "Credits": {"GetItem", "PutItem"},
        "Cache": {"GetItem", "UpdateItem"},
    },
    "Embed": {},
    "Ingest": {"History": {"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}},
    "GraphLoad": {"History": {"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}},
    **{name: tables for part in parts("permissions") for name, tables in part.TABLES.items()},
}
INDEXES = {
    *((name, "Query") for name in ("Api", "Sweep", "CreditReset")),
    *(read for part in parts("permissions") for read in part.INDEXES),
}

_OF_PLUGINS: Final = {SPECS[name].construct_id for stack in PLUGIN_STACKS for name in stack.corpora.values()}
"""Those that work on the jobs of kinds of corpora."""
SECRETS: dict[str, set[str]] = {
    **{key: {"voyage"} for key in _OF_PLUGINS},
    "Turn": {"anthropic"},
    "Search": {"anthropic", "voyage", "context7"},
    "Mcp": {"github"},
    "Summarise": {"anthropic", "voyage"},
    "Ingest": {"voyage"},
}

OTHER = {
    "Api": {
        "kms:Encrypt", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket",
        "states:StartExecution", "states:StopExecution", "states:DescribeExecution", "cognito-idp:ListUsers",
        "cognito-idp:AdminDeleteUser", "cognito-idp:AdminListGroupsForUser",
    },
    "Turn": {"s3:GetObject", "s3:PutObject"},
    "Tool": {"s3:GetObject", "s3:PutObject"},
    "Graph": {"s3:GetObject", "s3:PutObject"},
    "Own": {"s3:GetObject", "s3:PutObject"},
    "Search": {"s3:GetObject", "s3:PutObject", "lambda:InvokeFunction"},
    "Mcp": {"kms:Decrypt", "s3:GetObject", "s3:PutObject", "sqs:SendMessage"},
    "Summarise": {"s3:GetObject", "s3:PutObject", "lambda:InvokeFunction"},
    "Abort": {"s3:GetObject", "s3:PutObject", "sqs:SendMessage"},
    "Sweep": {
        "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket", "sqs:SendMessage",
        "cognito-idp:ListUsers", "cognito-idp:AdminDeleteUser",
        "states:StartExecution", "states:StopExecution", "states:DescribeExecution",
    },
    "CreditReset": {"sqs:SendMessage"},
    "Stream": {
        "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket",
        "states:StartExecution", "states:StopExecution",
    },
    "Embed": set(),
    "Ingest": {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "lambda:InvokeFunction"},
    "GraphLoad": {"s3:GetObject", "s3:PutObject"},
    **{name: actions for part in parts("permissions") for name, actions in part.OTHER.items()},
}  # fmt: skip

EVERYONE = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
}


@pytest.fixture(params=AWS_STAGES)
def aws_stage(request: pytest.FixtureRequest) -> Stage:
    """A stage of a project with tools, which has every function."""
    return Stage(request.param, Variant(request.param, project=WITH_A_TOOL).folder())


def statements(stage: Stage, function: str) -> list[tuple[set[str], set[str]]]:
    """(actions, resources) of every statement of a function's role."""
    return [
        (set(_many(s["Action"])), {readable(r) for r in _many(s["Resource"])})
        for s in _policy(stage, function)
    ]


def _policy(stage: Stage, function: str) -> list[Any]:
    policies = stage.resources("Chat", "AWS::IAM::Policy")
    (policy,) = [
        p for key, p in policies.items() if re.match(rf"{function}RoleDefaultPolicy[0-9A-F]{{8}}$", key)
    ]
    return list(policy["PolicyDocument"]["Statement"])


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("function", sorted(TABLES))
def test_a_function_may_do_what_it_does_and_no_more(aws_stage: Stage, function: str) -> None:
    tables: dict[str, set[str]] = {}
    secrets: set[str] = set()
    other: set[str] = set()
    for actions, resources in statements(aws_stage, function):
        for action in actions:
            service, name = action.split(":")
            if service == "dynamodb":
                for resource in resources:
                    if "/index/" in resource:
                        assert (function, name) in INDEXES
                    else:
                        tables.setdefault(_table(resource), set()).add(name)
            elif service == "ssm":
                assert name == "GetParameter"
                secrets |= {
                    re.search(r":parameter/dualtrack-[a-z]+/(\w+)$", resource)[1]  # type: ignore[index]
                    for resource in resources
                }
            else:
                other.add(action)
    assert tables == TABLES[function]
    assert secrets == SECRETS.get(function, set())
    assert other == OTHER[function] | EVERYONE


def _table(resource: str) -> str:
    match = re.search(r"FnGetAtt(History|Chats|Credits|Cache)[0-9A-F]{8}Arn", resource)
    assert match, resource
    return match[1]


CATALOGUE = "mcp#catalogue"


@pytest.mark.parametrize(
    ("function", "keys"), [("Api", {f"{LEASES}*", CATALOGUE}), ("Stream", {f"{LEASES}*"})]
)
def test_only_leases_and_what_is_accepted_can_be_updated(
    aws_stage: Stage, function: str, keys: set[str]
) -> None:
    """The leading key is an item's partition key (DynamoDB, IAM policy conditions)."""
    updates = [
        s
        for s in _policy(aws_stage, function)
        if "dynamodb:UpdateItem" in _many(s["Action"])
        and {_table(readable(r)) for r in _many(s["Resource"])} == {"Cache"}
    ]
    assert {key for s in updates for key in _leading(s["Condition"])} == keys


def test_a_turn_puts_nothing_but_agents_and_catalogues_into_the_cache(aws_stage: Stage) -> None:
    puts = [
        s
        for s in _policy(aws_stage, "Turn")
        if {"dynamodb:PutItem", "dynamodb:UpdateItem"} & set(_many(s["Action"]))
        and {_table(readable(r)) for r in _many(s["Resource"])} == {"Cache"}
    ]
    allowed = {key: set(_many(s["Action"])) for s in puts for key in _leading(s["Condition"])}
    assert allowed == {
        f"{AGENTS}*": {"dynamodb:PutItem"},
        CATALOGUE: {"dynamodb:PutItem", "dynamodb:UpdateItem"},
    }


def _leading(condition: Any) -> list[str]:
    """The keys of a statement that is limited to them."""
    keys: list[str] = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    return keys


@pytest.mark.parametrize("function", ["Ingest", "GraphLoad", *sorted(_OF_PLUGINS)])
def test_jobs_reach_only_corpora_in_the_history_and_the_bucket(aws_stage: Stage, function: str) -> None:
    """Jobs read untrusted files, so they have no access to users' data."""
    conditions = {
        action: statement["Condition"]
        for statement in _policy(aws_stage, function)
        for action in _many(statement["Action"])
        if "Condition" in statement
    }
    leading = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [partition("*")]}}
    tables = {action for action in conditions if action.startswith("dynamodb:")}
    assert {action.split(":")[1] for action in tables} == TABLES[function]["History"]
    assert all(conditions[action] == leading for action in tables)
    if "s3:ListBucket" in OTHER[function]:
        assert conditions["s3:ListBucket"] == {"StringLike": {"s3:prefix": f"{FOLDER}*"}}


@pytest.mark.parametrize("function", sorted(TABLES))
def test_wildcards_are_used_only_where_names_are_impossible(aws_stage: Stage, function: str) -> None:
    stars = {
        (action, resource)
        for actions, resources in statements(aws_stage, function)
        for action in actions
        for resource in resources
        if "*" in resource
    }
    for action, resource in stars:
        if action.startswith("s3:"):
            below = FOLDER if function in {"Ingest", "GraphLoad"} | _OF_PLUGINS else ""
            assert resource == f"dualtrack-{aws_stage.name}-bodies-arn/{below}*"
        elif action.startswith("states:"):
            assert action != "states:StartExecution"
            assert re.search(rf":execution:dualtrack-{aws_stage.name}-(chat|corpus):\*$", resource)
        else:
            assert action.startswith("xray:")
            assert resource == "*"


def test_every_folder_of_functions_is_one_entry() -> None:
    assert set(SPECS) == {*function_folders()}


def test_the_permissions_of_every_function_are_listed() -> None:
    assert {spec.construct_id for spec in SPECS.values()} == set(TABLES) == set(OTHER)


def test_no_action_is_a_wildcard_and_no_function_has_a_managed_policy(aws_stage: Stage) -> None:
    for function in TABLES:
        assert all("*" not in action for actions, _ in statements(aws_stage, function) for action in actions)
    roles = aws_stage.resources("Chat", "AWS::IAM::Role")
    managed = {key for key, role in roles.items() if role.get("ManagedPolicyArns")}
    assert all(key.startswith("RestApiCloudWatchRole") for key in managed)


@pytest.mark.parametrize(
    ("machine", "functions"),
    [
        ("Chat", {"Turn", "Tool", "Search", "Graph", "Mcp", "Own", "Summarise", "Abort"}),
        ("Corpus", {"Ingest", "GraphLoad", *_OF_PLUGINS}),
    ],
)
def test_a_workflow_may_call_only_its_functions(aws_stage: Stage, machine: str, functions: set[str]) -> None:
    policies = aws_stage.resources("Chat", "AWS::IAM::Policy")
    (policy,) = [p for key, p in policies.items() if key.startswith(f"{machine}MachineRole")]
    called = {
        readable(resource)
        for statement in policy["PolicyDocument"]["Statement"]
        if "lambda:InvokeFunction" in _many(statement["Action"])
        for resource in _many(statement["Resource"])
    }
    # by any of its versions
    steps = {re.sub(r"(Live[0-9A-F]{8}|Function[0-9A-F]{8}\.Arn:\*)$", "", name) for name in called}
    assert steps == functions


def test_only_sending_functions_of_a_stage_with_a_collector_may_read_its_headers(
    assembly: Callable[..., Path],
) -> None:
    """Without a collector no function may read them; the others are checked by `SECRETS` above."""
    stage = Stage("prod", assembly("prod", ALL_SET))
    readers = {
        function
        for function in TABLES.keys() - {"Own"}  # a stage without tools of a project
        for _, resources in statements(stage, function)
        if any(resource.endswith("/otlp") for resource in resources)
    }
    assert readers == {"Abort", "Summarise"}
    senders = {
        name.removesuffix("Function" + name[-8:])
        for name, function in stage.resources("Chat", "AWS::Lambda::Function").items()
        if function.get("Environment", {}).get("Variables", {}).get("OTEL_EXPORTER_OTLP_ENDPOINT")
    }
    assert senders == readers


def stores_of(source: str) -> set[str]:
    """The stores that a handler uses, or hands on to what declares which ones it may touch."""
    tree = ast.parse(source)
    homes = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "stores"
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and "stores" in map(ast.unparse, call.args):
            module, name = homes[ast.unparse(call.func)]
            declared = getattr(import_module(str(module)), name).__annotations__.values()
            for group in re.findall(r"\b\w*Stores\b", " ".join(map(str, declared))):
                used |= {field.name for field in fields(getattr(groups, group))}
    return used


def tables_of(names: set[str]) -> set[str]:
    """The tables of these stores."""
    client: Any = None
    every = groups.build_stores(
        Settings(history_table="History", chats_table="Chats", credits_table="Credits", cache_table="Cache"),
        client,
        client,
    )
    shown = " ".join(repr(getattr(every, name)) for name in names)
    return {table for table in ("History", "Chats", "Credits", "Cache") if f"'{table}'" in shown}


@pytest.mark.parametrize(
    "name", [name for name in SPECS if (function_folders()[name] / "handler.py").is_file()]
)
def test_a_function_hands_on_exactly_the_tables_that_its_role_may_touch(name: str) -> None:
    """From the types of the stores that its use cases declare."""
    source = (function_folders()[name] / "handler.py").read_text(encoding="utf-8")
    if "stores" in source:
        assert tables_of(stores_of(source)) == set(TABLES[SPECS[name].construct_id])
