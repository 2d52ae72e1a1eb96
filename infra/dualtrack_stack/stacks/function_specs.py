"""Every Lambda function in one entry: its properties, environment and permissions.

A function of the core is its folder in ``functions/`` and its entry here; a plug-in's has both in the plug-in's folder.
Permissions are written out statement by statement (`dualtrack_stack.stacks.permissions`): a grant helper would allow
whole groups of actions, and a function's permissions should be readable in one place. Plain values: nothing here loads
the CDK.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack import plugin
from dualtrack.api.streamed import streamed_apis
from dualtrack.chat_times import ANSWER_FUNCTION_SECONDS, TURN_SECONDS

from dualtrack_stack.stacks.function_spec import (
    APPEND,
    CHANGE,
    MEMORY,
    OWN,
    PAST,
    FunctionSpec,
    PluginStack,
    Retries,
)
from dualtrack_stack.stacks.model_services import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGIN_STACKS: Final[tuple[PluginStack, ...]] = plugin.values("stack", PluginStack)

_SPECS: Final = (
    FunctionSpec(
        "api",
        "Answers the HTTP API",
        seconds=29,  # API Gateway waits 29 s
        memory=1280,  # the first token waits for its cold start (dualtrack_stack.first_token)
        layers=("base", "arguments", *(name for stack in PLUGIN_STACKS for name in stack.api_layers)),
        admits=True,
        environment=(
            *MEMORY, "CREDITS_TABLE", "CACHE_TABLE", "CONNECTIONS_KEY", "USER_POOL_ID", "STATE_MACHINE_ARN",
            "CORPUS_MACHINE_ARN", "LEDGER_RETENTION_DAYS", "TOKEN_HOURS", "AWS_PRICES", "FUNCTION_SIZES",
            "UPGRADE_MESSAGE",
        ),
        permissions=lambda allow: [
            # the last two: a user's API keys, and that a key is made of nobody who is being erased
            allow.table("chats", *OWN, "BatchGetItem", "ConditionCheckItem"),
            allow.table("history", *OWN, *PAST),
            allow.listed_conversations("Query"),
            # a receipt reads many lines at once
            allow.table("credits", "GetItem", "PutItem", "Query", "BatchGetItem"),
            # GitHub connections, and the catalogue of MCP tools for GET /v1/tools
            allow.table("cache", "GetItem", "PutItem", "DeleteItem"),
            # what administrators accept of it
            allow.catalogue(),
            allow.leases(),
            allow.bodies("GetObject", "PutObject", "DeleteObject"),
            allow.list_bodies(),
            allow.connections("Encrypt"),
            # look up users for administrators, and erase them
            allow.users("ListUsers", "AdminDeleteUser", "AdminListGroupsForUser"),
            allow.machine("chat", "StartExecution"),
            allow.executions("chat", "StopExecution"),
            # whose chat an administrator asks for, or a revoked key has started
            allow.executions("chat", "DescribeExecution"),
            allow.machine("corpus", "StartExecution"),
        ],
    ),
    FunctionSpec(
        "turn",
        "Makes one model call of a chat",
        seconds=TURN_SECONDS,  # for the longest call; the state ends each chat's own
        memory=640,  # a cold start of 2.2 s, half as long again on other measurements (dualtrack_stack.first_token)
        layers=("base", "arguments", "claude"),
        environment=(*MEMORY, "CREDITS_TABLE", "CACHE_TABLE", *CREDENTIALS),
        permissions=lambda allow: [
            # the last: that a chat which pauses is as it was read
            allow.table("chats", *CHANGE, "ConditionCheckItem"),
            allow.table("history", *CHANGE, *PAST),
            allow.table("credits", "GetItem", "PutItem"),
            # the tools of MCP servers, and what chats have pinned
            allow.table("cache", "GetItem"),
            allow.agents(),
            # a tool that the model's service refuses
            allow.catalogue(),
            allow.bodies("GetObject", "PutObject"),
            *allow.model_services(),
        ],
    ),
    FunctionSpec(
        "tool",
        "Runs one in-house tool call",
        seconds=55,  # state Tool: 60 s
        memory=320,
        layers=("base",),
        environment=MEMORY,
        permissions=lambda allow: [
            allow.table("chats", *APPEND),
            allow.table("history", *APPEND, "BatchGetItem"),
            allow.bodies("GetObject", "PutObject"),
        ],
    ),
    FunctionSpec(
        "search",
        "Runs one search: of documentation, of a conversation, of course materials",
        seconds=55,  # state Tool: 60 s
        memory=1536,
        layers=("base", "claude", "search"),
        environment=(*MEMORY, "CACHE_TABLE", *CREDENTIALS, "EMBED_FUNCTION", "COURSE_VECTORS"),
        permissions=lambda allow: [
            allow.table("chats", *APPEND),
            allow.table("history", *APPEND, *PAST),
            allow.bodies("GetObject", "PutObject"),
            allow.table("cache", "BatchGetItem", "BatchWriteItem"),
            *allow.model_services(),
            allow.embed(),
            # a query that filters needs both (Amazon S3 API Reference, QueryVectors, "Permissions")
            *allow.course_vectors("QueryVectors", "GetVectors"),
        ],
    ),
    FunctionSpec(
        "graph",
        "Runs one tool call on the graph",
        seconds=55,  # state Tool: 60 s
        memory=2048,  # a query's pool of 512 MB, the pages of the database that it reads, and this process
        layers=("base", "graph"),
        environment=MEMORY,
        # those of `tool`: the current version's item and its objects are in the same table and bucket
        permissions=lambda allow: [
            allow.table("chats", *APPEND),
            allow.table("history", "GetItem", "PutItem", "BatchGetItem"),
            allow.bodies("GetObject", "PutObject"),
        ],
        disk=4096,  # two versions while one replaces the other
    ),
    FunctionSpec(
        "embed",
        "Turns texts into vectors with the local model",
        seconds=60,
        memory=1769,  # one whole processor: a vector is 40 ms of it
        layers=("base", "embed"),
        environment=(),
        permissions=lambda _: [],
    ),
    FunctionSpec(
        "ingest",
        "Works on a job that changes a corpus",
        seconds=300,  # state Ingest: 310 s
        memory=3008,  # a version of 50,000 chunks, the one before, and the vectors of both
        layers=("base", "claude", "search", "documents"),
        environment=("HISTORY_TABLE", "BODIES_BUCKET", "EMBED_FUNCTION", "COURSE_VECTORS"),
        permissions=lambda allow: [
            allow.corpora("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
            allow.corpus_objects("GetObject", "PutObject"),
            allow.list_corpus_objects(),
            allow.embed(),
            *allow.course_vectors("CreateIndex", "PutVectors"),
        ],
    ),
    FunctionSpec(
        "graph_load",
        "Works on a job that changes the graph",
        seconds=890,  # state Ingest: 900 s
        memory=3008,  # the ids of 1,000,000 nodes, and 1 GB of the engine's own
        layers=("base", "graph"),
        environment=("HISTORY_TABLE", "BODIES_BUCKET"),
        permissions=lambda allow: [
            allow.corpora("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
            allow.corpus_objects("GetObject", "PutObject"),
        ],
        disk=5120,  # the files of a graph, their tables, and the database
    ),
    FunctionSpec(
        "mcp",
        "Runs one call of an MCP tool",
        seconds=58,  # state Tool: 60 s
        memory=512,
        layers=("base", "arguments", "mcp"),
        environment=(*MEMORY, "CACHE_TABLE", "CONNECTIONS_KEY"),
        retries=Retries(2, 3_600),
        permissions=lambda allow: [
            allow.table("chats", *APPEND),
            allow.table("history", "GetItem", "PutItem", "BatchGetItem"),
            allow.bodies("GetObject", "PutObject"),
            allow.table("cache", "GetItem"),
            allow.catalogue(),
            allow.connections("Decrypt"),
        ],
    ),
    FunctionSpec(
        "own",
        "Runs one call of the project's own tools",
        seconds=55,  # state Tool: 60 s
        memory=512,
        layers=("base",),  # or one of its own, with the project's dependencies (dualtrack_stack.project.packaging)
        environment=MEMORY,
        # those of `tool`; what the project allows besides is added for its stage (dualtrack_stack.stacks.own)
        permissions=lambda allow: [
            allow.table("chats", *APPEND),
            allow.table("history", "GetItem", "PutItem", "BatchGetItem"),
            allow.bodies("GetObject", "PutObject"),
        ],
    ),
    FunctionSpec(
        "summarise",
        "Summarises an answered query",
        seconds=110,  # state Summarise: 120 s
        memory=256,  # no user waits for it
        layers=("base", "claude"),
        environment=(*MEMORY, "CREDITS_TABLE", "CACHE_TABLE", *CREDENTIALS, "EMBED_FUNCTION"),
        permissions=lambda allow: [
            allow.table("chats", *CHANGE),
            allow.table("history", *CHANGE, *PAST),
            # of the payer of a chat by an API key
            allow.table("credits", "GetItem", "PutItem"),
            # its chat's agent
            allow.table("cache", "GetItem"),
            allow.bodies("GetObject", "PutObject"),
            *allow.model_services(),
            # vectors of a block of the search index
            allow.embed(),
        ],
    ),
    FunctionSpec(
        "abort",
        "Ends a chat whose workflow failed",
        seconds=28,  # state Abort: 30 s
        memory=512,
        layers=("base",),
        environment=(*MEMORY, "CREDITS_TABLE"),
        retries=Retries(2, 2 * 3_600),
        permissions=lambda allow: [
            allow.table("chats", *CHANGE),
            allow.table("history", *CHANGE, *PAST),
            allow.table("credits", "GetItem", "PutItem"),
            allow.bodies("GetObject", "PutObject"),
        ],
    ),
    FunctionSpec(
        "sweep",
        "Starts and ends what was left behind, and goes on with deletions",
        seconds=280,  # before the next run
        memory=1769,  # one whole processor: a deletion is bound by it, 2 ms a request
        layers=("base",),
        environment=(
            *MEMORY, "CREDITS_TABLE", "CACHE_TABLE", "USER_POOL_ID", "STATE_MACHINE_ARN", "CORPUS_MACHINE_ARN",
            "COURSE_VECTORS",
        ),
        retries=Retries(0, 5 * 60),  # the next one comes in five minutes
        permissions=lambda allow: [
            allow.table("chats", *OWN),
            allow.table("history", *OWN, *PAST),
            # an erased user's ledger moves to an alias
            allow.table("credits", *APPEND, "DeleteItem", "BatchWriteItem"),
            allow.table("cache", "Query", "BatchWriteItem"),
            allow.bodies("GetObject", "PutObject", "DeleteObject"),
            allow.list_bodies(),
            allow.users("ListUsers", "AdminDeleteUser"),
            allow.open_chats("Query"),
            allow.machine("chat", "StartExecution"),
            allow.executions("chat", "StopExecution"),
            allow.executions("chat", "DescribeExecution"),
            allow.machine("corpus", "StartExecution"),
            allow.executions("corpus", "DescribeExecution"),
            *allow.list_course_vectors(),
            *allow.course_vectors("DeleteIndex"),
        ],
    ),
    FunctionSpec(
        "credit_reset",
        "Brings accounts up to date at midnight UTC",
        seconds=900,
        memory=1769,
        layers=("base",),
        environment=("CREDITS_TABLE",),
        retries=Retries(2, 2 * 3_600),
        permissions=lambda allow: [
            allow.table("credits", "GetItem", "PutItem"),
            allow.active_accounts("Query"),
        ],
    ),
    FunctionSpec(
        "stream",
        ", and ".join(("Serves a chat's events", *(api.name for api in streamed_apis()))),
        # the server closes a stream of events after 90 s, an answer by a plug-in's API once the longest call is over,
        # and cuts one whose client takes nothing 10 s before its lease ends
        seconds=ANSWER_FUNCTION_SECONDS,
        memory=256,  # billed as long as a chat takes; its cold start is as long as that of `turn` (dualtrack_stack.first_token)
        # client tools and the schemas of answers are checked as a chat is admitted (patterns by pydantic's engine)
        layers=("base", "stream", "arguments"),
        environment=(
            *MEMORY, "CREDITS_TABLE", "CACHE_TABLE", "STATE_MACHINE_ARN", "JWKS_URL", "TOKEN_ISSUER",
            "TOKEN_AUDIENCE", "UPGRADE_MESSAGE",
        ),
        # those of `api` that an admission needs
        permissions=lambda allow: [
            allow.table("chats", *OWN, "ConditionCheckItem"),
            allow.table("history", *OWN, *PAST),
            allow.table("credits", "GetItem", "PutItem"),
            # names of MCP tools, which client tools may not have
            allow.table("cache", "GetItem"),
            allow.leases(),
            allow.bodies("GetObject", "PutObject", "DeleteObject"),
            allow.list_bodies(),
            allow.machine("chat", "StartExecution"),
            # a chat that waits for a decision is cancelled by a new message
            allow.executions("chat", "StopExecution"),
        ],
        handler="run.sh",
        admits=True,
    ),
)  # fmt: skip

SPECS: Final[Mapping[str, FunctionSpec]] = MappingProxyType(
    {spec.name: spec for spec in (*_SPECS, *(spec for stack in PLUGIN_STACKS for spec in stack.functions))}
)
