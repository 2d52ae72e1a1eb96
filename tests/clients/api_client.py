"""The function ``api`` in this process: its own handler over stores in this process, called with API Gateway's events.

The workflow is driven by `World`; executions are started and stopped on moto's state machine, which runs nothing. Every
user has claims as the gateway's authorizer passes them.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import re
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import boto3
import pytest
from dualtrack.api import models
from dualtrack.api.chat_fields import chat_body
from dualtrack.api.end_users import end_user_id
from dualtrack.api.route import KEY_PATH
from dualtrack.chat.agent import AgentDeployment
from dualtrack.profiles import ApprovalPolicy, all_profiles
from dualtrack.storage.stores import build_stores

from tests.clients.documented import operation_of, references_of, validator_of
from tests.drivers.plugin_parts import parts
from tests.drivers.roles import as_role
from tests.drivers.world import SETTINGS, World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

HANDLER = Path(__file__).parents[2] / "functions" / "api" / "handler.py"
ORIGIN = "https://chat.example.com"
OTHER_ORIGIN = "https://admin.example.com"
ASKED = "retrieve_full_context"
"""The tool whose calls wait in `Api.pause`."""

BODIES: dict[type, dict[str, Any]] = {
    chat_body(): {
        "message": "Hello.",
        "profile": "assistant",
        "attachments": [],
        "output": {"schema": {}},
        "tools": [{"name": "look_up", "description": "Looks a word up.", "input_schema": {"type": "object"}}],
    },
    models.UploadBody: {"media_type": "text/plain", "bytes": 5, "name": "a.txt", "sha256": "0" * 64},
    models.ConversationBody: {"title": "Plans", "profile": "assistant"},
    models.TitleBody: {"title": "Plans"},
    models.ForkBody: {"before": "q1"},
    models.ConnectionBody: {"token": "github_pat_" + "a" * 40},
    models.PlanBody: {"plan": "pro"},
    models.AcceptBody: {"marks": ["0" * 16]},
    models.UploadsBody: {"files": [{"name": "course.txt", "size": 5, "sha256": "0" * 64}]},
    models.JobBody: {"files": [{"upload_id": f"up_{'0' * 26}_{'0' * 64}", "name": "course.txt"}]},
    models.GrantBody: {"credits": 5, "reason": "r", "grant_id": "g"},
    models.KeyBody: {"name": "server", "scopes": ["chat"], "profiles": [], "caps": {"credits_day": 5}},
    models.KeyChangeBody: {"name": "cron", "caps": {"credits_total": None}},
    models.RotationBody: {"overlap": 0},
    models.DecisionsBody: {"decisions": [{"id": "q1-t1", "approve": True}]},
    **{kind: body for part in parts("api_requests") for kind, body in part.BODIES.items()},
}
"""A valid body of every kind."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the function."""

    status: int
    headers: Mapping[str, str]
    text: str
    content: bytes = b""
    """The body as API Gateway returns it."""

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The error's code; fails unless the body is an error in the contract's form."""
        body = self.json
        assert set(body) == {"error"}, body
        assert isinstance(body["error"]["message"], str)
        assert body["error"]["message"]
        return str(body["error"]["code"])


class _Context:
    function_name = "api"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:api"
    aws_request_id = "test"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


def proxy_event(
    claims: Mapping[str, Any] | None,
    method: str,
    target: str,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The event that API Gateway passes for a request whose token has these claims; without an authorizer None."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return {
        "resource": "/{proxy+}",
        "path": unquote(parts.path),
        "httpMethod": method,
        "headers": {"Content-Type": "application/json", **(headers or {})},
        "multiValueHeaders": {name: [value] for name, value in (headers or {}).items()},
        "queryStringParameters": query or None,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            **({} if claims is None else {"authorizer": {"claims": dict(claims)}}),
            "httpMethod": method,
            "path": f"/live{parts.path}",
            "resourcePath": "/{proxy+}",
            "stage": "live",
            "requestId": "test",
            "identity": {"sourceIp": "192.0.2.1"},
        },
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": isinstance(body, bytes),
    }


def assert_documented(method: str, path: str, answer: Answer) -> None:
    """Check that the OpenAPI document has this answer: its status, content type and schema."""
    operation = operation_of(method.lower(), path)
    if operation is None:
        assert answer.status == 404 or method == "OPTIONS", answer
        return
    documented = operation["responses"].get(str(answer.status))
    assert documented, f"{method} {path}: {answer.status} is not documented"
    if "*/*" in documented.get("content", {}):
        return  # a file's bytes, of its own type
    if answer.text:
        content = documented["content"][answer.headers["Content-Type"]]
        first, *others = references_of(content["schema"])
        body = json.loads(answer.text)
        if not any(validator_of(reference).is_valid(body) for reference in others):
            validator_of(first).validate(body)
    else:
        assert "content" not in documented


@dataclass
class Api:
    """A client of the function; ``user`` is the default caller, by a token, or by ``key``, for an end user."""

    world: World
    module: ModuleType
    user: str = "ann"
    groups: Any = None
    claims: Mapping[str, Any] = field(default_factory=dict)
    context: Any = field(default_factory=_Context)
    key: str = ""
    end_user: str | None = None

    @property
    def dynamodb(self) -> Any:
        """The function's client, with its role's rights."""
        return self.module.stores.chats.client  # type: ignore[attr-defined]

    def of(self, user: str, groups: Any = None) -> Api:
        """The same function, called by another user."""
        return Api(self.world, self.module, user, groups)

    def by_key(self, key: str, end_user: str | None = None) -> Api:
        """The same function, called with an API key."""
        return Api(self.world, self.module, self.user, key=key, end_user=end_user)

    def make_key(self, *scopes: str, **more: Any) -> dict[str, Any]:
        """POST /v1/keys → the body of the 201."""
        answer = self.call("POST", "/v1/keys", {"name": "server", "scopes": [*scopes], **more})
        assert answer.status == 201, answer
        return dict(answer.json)

    def of_new_user(self) -> Api:
        """The same function, called by a new user of the pool."""
        pool, name = self.module.settings.user_pool_id, f"name-{uuid.uuid4()}"
        created = self.module.cognito.admin_create_user(UserPoolId=pool, Username=name)["User"]
        return self.of(
            next(attribute["Value"] for attribute in created["Attributes"] if attribute["Name"] == "sub")
        )

    def event(
        self,
        method: str,
        target: str,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The proxy event of a request: with a key at the path of keys, where no authorizer stands."""
        if self.key:
            named = {} if self.end_user is None else {"X-Dualtrack-User": self.end_user}
            sent = {"Authorization": f"Bearer {self.key}", **named, **(headers or {})}
            return proxy_event(None, method, KEY_PATH + target, body, sent)
        claims = {"sub": self.user, "token_use": "id"} | (
            {"cognito:groups": self.groups} if self.groups is not None else {}
        )
        sent = {"Authorization": f"Bearer {_token(self.groups)}", **(headers or {})}
        return proxy_event({**claims, **self.claims}, method, target, body, sent)

    def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        raw: str | bytes | None = None,
    ) -> Answer:
        """The answer to a request with a JSON body, or with the ``raw`` one."""
        sent = raw if raw is not None else (json.dumps(body) if body is not None else None)
        event = self.event(method, target, sent, headers)
        answer = self.module.handler(event, self.context)
        # as Lambda's runtime serialises it; a lone surrogate would fail here
        json.dumps(answer, ensure_ascii=False).encode()
        listed = {name: values[-1] for name, values in (answer.get("multiValueHeaders") or {}).items()}
        headers = {**(answer.get("headers") or {}), **listed}
        text = answer.get("body") or ""
        content = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
        shown = Answer(answer["statusCode"], headers, text, content)
        assert_documented(method, event["path"].removeprefix(KEY_PATH), shown)
        return shown

    def get(self, target: str) -> Any:
        """GET → the body of the 200."""
        answer = self.call("GET", target)
        assert answer.status == 200, answer
        return answer.json

    def start(self, message: str = "Hello.", **more: Any) -> dict[str, Any]:
        """POST /v1/chats → the body of the 202."""
        answer = self.call("POST", "/v1/chats", {"message": message, **more})
        assert answer.status == 202, answer
        return dict(answer.json)

    def ask(self, message: str = "Hello.", **more: Any) -> dict[str, Any]:
        """Run a whole chat; the chat object."""
        chat_id = self.start(message, **more)["chat_id"]
        self.run(chat_id)
        return dict(self.get(f"/v1/chats/{chat_id}"))

    def run(self, chat_id: str) -> None:
        """Run the workflow of a chat."""
        self.world.run(self.chat(chat_id))

    def pause(self, calls: int = 1) -> dict[str, Any]:
        """A chat whose calls wait for approval, as POST /v1/chats has answered it."""
        message = f"Read it again, {uuid.uuid4()}."
        uses = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": ASKED, "input": {"id": "q1"}}
            for number in range(calls)
        ]
        self.world.model.script.add(
            {"match": message, "content": uses}, {"match": message, "text": "I have."}
        )
        started = self.start(message)
        assert self.turn(started, 0) == "paused"
        return started

    def turn(self, started: Mapping[str, Any], recorded: int) -> str:
        """The Turn state behind a turn, of profiles that ask before they read again; what follows."""
        profiles = {
            name: replace(profile, approval=ApprovalPolicy("never", ask=(ASKED,)))
            for name, profile in all_profiles().items()
        }
        ref = replace(ref_of(self.chat(started["chat_id"])), turn=recorded)
        return self.world.take_turn(ref, deployed=AgentDeployment(self.world.model_name, profiles=profiles))[
            "next"
        ]

    def chat_ids(self) -> list[str]:
        """The ids of the user's chats, unordered."""
        keys = [
            item["pk"]["S"] for item in items(self.world, SETTINGS.chats_table) if item["sk"]["S"] == "STATE"
        ]
        return [key.split("#")[2] for key in keys if key.split("#")[1] == self.user]

    def chat(self, chat_id: str) -> Any:
        """The chat's state in the store."""
        user = end_user_id(self.user, self.end_user) if self.end_user else self.user
        chat = self.world.stores.chats.load(user, chat_id)
        assert chat is not None
        return chat


def _token(groups: Any) -> str:
    """The token behind the claims; API Gateway has verified its signature."""
    listed = groups if isinstance(groups, list) else re.split(r"[,\s]+", str(groups or "").strip("[]"))
    payload = json.dumps({"cognito:groups": listed}).encode()
    return f"e30.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.c2lnbmVk"


def items(world: World, table: str) -> list[dict[str, Any]]:
    """Every item of a table, as stored."""
    pages = world.stores.chats.client.get_paginator("scan").paginate(TableName=table)
    return [dict(item) for page in pages for item in page["Items"]]


def objects(world: World) -> list[str]:
    """The keys of all objects."""
    listed = world.stores.bodies.s3.list_objects_v2(Bucket=SETTINGS.bodies_bucket)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


@contextlib.contextmanager
def make_api(origins: str = f"{ORIGIN},{OTHER_ORIGIN}", **tools: Any) -> Iterator[Api]:
    """The function on a fresh world."""
    with make_world(**tools) as world, pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(origins).items():
            patch.setenv(name, value)
        module = _load()
        dynamodb = as_role(boto3.client("dynamodb", region_name="us-east-1"), "api")
        # the world's clock, so that time can pass, and no more rights than on the stack
        module.stores = build_stores(SETTINGS, dynamodb, world.stores.bodies.s3, world.clock)  # type: ignore[attr-defined]
        yield Api(world, module)


def _environment(origins: str) -> dict[str, str]:
    machine = boto3.client("stepfunctions", region_name="us-east-1").create_state_machine(
        name="chat",
        definition=json.dumps({"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}),
        roleArn="arn:aws:iam::123456789012:role/chat",
    )
    key = boto3.client("kms", region_name="us-east-1").create_key()
    pool = boto3.client("cognito-idp", region_name="us-east-1").create_user_pool(PoolName="users")
    tables = ("history_table", "chats_table", "credits_table", "cache_table", "bodies_bucket")
    return {
        **{name.upper(): getattr(SETTINGS, name) for name in tables},
        "STATE_MACHINE_ARN": machine["stateMachineArn"],
        "CORPUS_MACHINE_ARN": machine["stateMachineArn"],
        "CONNECTIONS_KEY": key["KeyMetadata"]["KeyId"],
        "LEDGER_RETENTION_DAYS": "30",
        "TOKEN_HOURS": "1",
        "DUALTRACK_MODEL": "claude-test",
        "USER_POOL_ID": pool["UserPool"]["Id"],
        "ALLOWED_ORIGINS": origins,
        "AWS_DEFAULT_REGION": os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
    }


def _load() -> ModuleType:
    """A fresh import of the handler's module, which reads its environment once."""
    spec = importlib.util.spec_from_file_location("api_handler_under_test", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
