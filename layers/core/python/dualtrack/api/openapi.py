"""The OpenAPI 3.1 document of the API (CONTRACT 4): the request models, the routes, the answers.

Request bodies are the models that `parse_body` checks with, so they cannot drift; answers are plain
schemas in ``openapi_schemas.json``, held to the real answers by the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from dualtrack.api import models
from dualtrack.errors import STATUS_OF_CODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

VERSION: Final = "1.0.0"
_REF: Final = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. ``answers`` maps a status to a schema's name; ``refusals`` are contract codes."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, str]
    body: type[BaseModel] | None = None
    parameters: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    is_open: bool = False
    examples: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


_CHAT: Final = "/v1/chats/{chat_id}"
_CONVERSATION: Final = "/v1/conversations/{conversation_id}"
_ADMIN: Final = "/v1/admin/users/{user_id}"
_MEANT: Final = ("unauthorized", "rate_limited", "internal", "unavailable", "timeout")
"""What every operation behind a token may answer."""

_RETRY_AFTER: Final = MappingProxyType(
    {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}}
)

ROUTES: Final = (
    Route(
        "post",
        "/v1/chats",
        "Start a chat",
        {200: "Chat", 202: "StartedChat"},
        models.ChatBody,
        ("wait", "Idempotency-Key"),
        (
            "invalid_request",
            "insufficient_credits",
            "not_found",
            "conversation_busy",
            "idempotency_conflict",
            "too_large",
        ),
    ),
    Route("get", _CHAT, "Read a chat", {200: "Chat"}, refusals=("not_found",)),
    Route("delete", _CHAT, "Cancel a chat", {200: "Chat"}, refusals=("not_found",)),
    Route(
        "get",
        f"{_CHAT}/events",
        "Follow a chat's events",
        {200: "text/event-stream"},
        None,
        ("Last-Event-ID",),
        ("invalid_request", "not_found"),
    ),
    Route(
        "post",
        "/v1/conversations",
        "Create a conversation",
        {201: "Conversation"},
        models.ConversationBody,
        (),
        ("invalid_request", "too_large"),
    ),
    Route(
        "get",
        "/v1/conversations",
        "List conversations, newest first",
        {200: "Conversations"},
        None,
        ("cursor", "limit"),
        ("invalid_request",),
    ),
    Route(
        "get",
        _CONVERSATION,
        "Read a conversation's records",
        {200: "ConversationRecords"},
        None,
        ("track", "cursor"),
        ("invalid_request", "not_found"),
    ),
    Route(
        "patch",
        _CONVERSATION,
        "Rename a conversation",
        {200: "Conversation"},
        models.TitleBody,
        (),
        ("invalid_request", "not_found", "too_large"),
    ),
    Route(
        "delete",
        _CONVERSATION,
        "Delete a conversation and all that belongs to it",
        {204: ""},
        refusals=("not_found", "conversation_busy"),
    ),
    Route(
        "get",
        f"{_CONVERSATION}/records/{{record_id}}",
        "Read a record, its text in pieces if it is large",
        {200: "Record"},
        None,
        ("offset",),
        ("invalid_request", "not_found"),
    ),
    Route("get", "/v1/tools", "List tools and profiles", {200: "Tools"}),
    Route("get", "/v1/credits", "Read the balance", {200: "Credits"}),
    Route(
        "get",
        "/v1/credits/ledger",
        "List what moved the credits, newest first",
        {200: "Ledger"},
        None,
        ("cursor", "limit"),
        ("invalid_request",),
    ),
    Route(
        "put",
        "/v1/connections/github",
        "Connect GitHub with the user's own token",
        {200: "Connection"},
        models.ConnectionBody,
        (),
        ("invalid_request", "too_large"),
    ),
    Route("get", "/v1/connections/github", "Whether GitHub is connected", {200: "Connection"}),
    Route("delete", "/v1/connections/github", "Disconnect GitHub", {204: ""}),
    Route(
        "put",
        f"{_ADMIN}/plan",
        "Change a user's plan",
        {200: "Credits"},
        models.PlanBody,
        (),
        ("invalid_request", "forbidden", "not_found", "too_large"),
    ),
    Route(
        "post",
        f"{_ADMIN}/grants",
        "Add credits to a user's pack, once per grant_id",
        {200: "Credits"},
        models.GrantBody,
        (),
        ("invalid_request", "forbidden", "not_found", "too_large"),
    ),
    Route(
        "get",
        f"{_ADMIN}/credits",
        "Read a user's balance",
        {200: "Credits"},
        refusals=("forbidden", "not_found"),
    ),
    Route("get", "/health", "Whether the API answers", {200: "Health"}, is_open=True),
    Route("get", "/openapi.json", "This document", {200: "OpenAPI"}, is_open=True),
)


@cache
def openapi_document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dualtrack",
            "version": VERSION,
            "description": "Chats with tools and a two-track memory.",
        },
        "paths": paths,
        "components": {
            "schemas": _answers() | _bodies(),
            "parameters": _parameters(),
            "securitySchemes": {
                "idToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "ID token of the stack's user pool",
                }
            },
        },
        "security": [{"idToken": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    codes = ("internal", "unavailable", "timeout") if route.is_open else (*_MEANT, *route.refusals)
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method}_{route.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in (*names, *route.parameters)],
        "responses": {str(status): _answer(schema) for status, schema in route.answers.items()}
        | _refusals(codes),
    }
    if route.body:
        schema = {"$ref": _REF + route.body.__name__}
        needed = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    return operation | ({"security": []} if route.is_open else {})


def _answer(schema: str) -> dict[str, Any]:
    if not schema:
        return {"description": "Done"}
    if schema == "text/event-stream":
        event = {"$ref": _REF + "Event"}
        description = (
            "Server-sent events, each like this. A user can have five streams open; the server closes one "
            "after 60 to 120 s, and the client resumes with Last-Event-ID"
        )
        return {"description": description, "content": {schema: {"schema": event}}}
    return {"description": schema, "content": {"application/json": {"schema": {"$ref": _REF + schema}}}}


def _refusals(codes: tuple[str, ...]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(STATUS_OF_CODE[code], []).append(code)
    content = {"application/json": {"schema": {"$ref": _REF + "Error"}}}
    return {
        str(status): {"description": " or ".join(sorted(set(listed))), "content": content}
        | ({"headers": dict(_RETRY_AFTER)} if status == STATUS_OF_CODE["rate_limited"] else {})
        for status, listed in sorted(by_status.items())
    }


def _bodies() -> dict[str, Any]:
    listed = [(route.body, "validation") for route in ROUTES if route.body]
    _, document = models_json_schema(listed, ref_template=_REF + "{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = document["$defs"]
    return schemas


def _answers() -> dict[str, Any]:
    text = (resources.files("dualtrack.api") / "openapi_schemas.json").read_text(encoding="utf-8")
    schemas: dict[str, Any] = json.loads(text)
    return schemas


def _parameters() -> dict[str, Any]:
    def path(name: str, example: str) -> dict[str, Any]:
        schema = {"type": "string", "minLength": 1, "examples": [example]}
        return {"name": name, "in": "path", "required": True, "schema": schema}

    def query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
        return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}

    def header(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
        return {"name": name, "in": "header", "required": False, "schema": schema, "description": description}

    return {
        "chat_id": path("chat_id", "ch_01jd8m3v5q0000000000000000"),
        "conversation_id": path("conversation_id", "cv_01jd8m3v5q0000000000000000"),
        "record_id": path("record_id", "q1-r"),
        "user_id": path("user_id", "0b5c4f6e-1111-2222-3333-444455556666"),
        "wait": query(
            "wait",
            {"type": "number", "minimum": 0, "maximum": 25},
            "Seconds to wait for the answer; not at all while three requests of the user wait",
        ),
        "cursor": query(
            "cursor",
            {"type": "string", "pattern": "^[A-Za-z0-9_-]*$"},
            "Where the page before this one ended",
        ),
        "limit": query("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Entries in a page"),
        "offset": query(
            "offset",
            {"type": "integer", "minimum": 0, "maximum": 999_999_999},
            "The character of the text to begin at: the next_offset of the piece before",
        ),
        "track": query("track", {"enum": ["full", "summarised"]}, "Which track; full if left out"),
        "Idempotency-Key": header(
            "Idempotency-Key",
            {"type": "string", "minLength": 1, "maxLength": 255},
            "The same key with the same body returns the first chat, for 24 hours",
        ),
        "Last-Event-ID": header(
            "Last-Event-ID", {"type": "string", "pattern": "^[0-9]{0,9}$"}, "The id of the last event seen"
        ),
    }
