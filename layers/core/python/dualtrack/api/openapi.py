"""The OpenAPI 3.1 document of the API, made from the routes' declarations (CONTRACT 4).

Request bodies are the models that requests are checked with, so they cannot drift; the tests hold every real
answer and event to the types of the answers. The examples are what a stack has really sent (``samples.json``, which
tests/e2e/test_api_samples.py writes and checks).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from dualtrack.api import answers
from dualtrack.api.event_data import EVENTS
from dualtrack.api.parameters import PATH_PARAMETERS
from dualtrack.errors import STATUS_OF_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.api.parameters import Parameter
    from dualtrack.api.route import Route

VERSION: Final = "1.0.0"
_REF: Final = "#/components/schemas/"
_SAMPLES: Final = Path(__file__).with_name("samples.json")

DESCRIPTION: Final = """\
Chats with tools and a two-track memory.

Every call under `/v1` carries `Authorization: Bearer <ID token>`; the user is the token's `sub`. Unknown fields of a
body are refused. Times are ISO 8601 in UTC. A list has a `cursor` while there is more; send it as `?cursor=`. Every
error is `{"error": {"code", "message"}}`, some with more fields. Clients should ignore fields, events and error codes
that they do not know."""

TAGS: Final = (
    ("Chats", "/v1/chats", "Ask, follow, read, cancel; what it cost"),
    ("Conversations", "/v1/conversations", "Find, read, rename, fork and delete"),
    ("Tools", "/v1/tools", "What agents can call, and at what price"),
    ("Credits", "/v1/credits", "The balance, and what moved it"),
    ("Connections", "/v1/connections", "The user's own accounts elsewhere"),
    ("Account", "/v1/me", "Erasing it"),
    ("Users", "/v1/admin/users", "For administrators: plans, grants, spending, erasure"),
    ("Corpora", "/v1/admin/corpora", "For administrators: what the agents search in"),
    ("Service", "/", "Open to everybody"),
)
"""Names, the paths' beginnings, and what they are about; a route has the first that fits."""

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "invalid_request": "the request is not as described; the message names the first thing that is wrong",
        "unauthorized": "there is no valid ID token, or its user was erased",
        "insufficient_credits": "a chat needs 5 available credits; says `required`, `available`, `resets_at` and "
        "`upgrade`",
        "forbidden": "only administrators may",
        "not_found": "there is no such thing, or it belongs to somebody else",
        "conversation_busy": "a chat is running in the conversation: wait for its `answer`, or cancel it",
        "idempotency_conflict": "the Idempotency-Key was used with another body in the last 24 hours",
        "too_large": "the body is over 10 MB, or its files are over 4 MB in all",
        "rate_limited": "too many requests, streams or chats at a time; says `retry_after`",
        "internal": "something went wrong on the server's side",
        "unavailable": "something that is needed cannot be reached; try again",
        "timeout": "the request took too long; try again",
    }
)
"""What an error code means."""

_RETRY_AFTER: Final = MappingProxyType(
    {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}}
)


@cache
def openapi_document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dualtrack",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # relative to where the document lies: the page's origin, an own domain, or the gateway's address with its stage
        "servers": [{"url": "."}],
        "tags": [{"name": name, "description": about} for name, _, about in TAGS],
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "parameters": _parameters(routes),
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
    names = (*route.path_parameters, *(one.name for one in route.parameters))
    operation: dict[str, Any] = {
        "summary": route.summary,
        "description": route.description,
        "tags": [next(name for name, begins, _ in TAGS if route.path.startswith(begins))],
        "operationId": f"{route.method}_{route.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names],
        "responses": {str(status): _answer(kind) for status, kind in route.answers.items()}
        | _refusals(route.refusals),
    }
    if route.body:
        schema = {"$ref": _REF + route.body.__name__}
        needed = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {
            "required": needed,
            "description": _said_of(route.body),
            "content": {"application/json": {"schema": schema, **_example(route.body.__name__)}},
        }
    return operation | ({"security": []} if route.access == "open" else {})


def _answer(kind: type | None) -> dict[str, Any]:
    if kind is None:
        return {"description": "Done, and nothing to say"}
    if kind is bytes:
        description = "The file from offset on, at most 4 MB of it, with its own type. Send Accept: application/octet-stream"
        return {"description": description, "content": {"*/*": {}}}
    schema = {"schema": {"$ref": _REF + kind.__name__}}
    if kind is answers.Event:
        description = (
            "Server-sent events, each like this. A user can have five streams open; the server closes one "
            "after 60 to 120 s, and the client resumes with Last-Event-ID"
        )
        example = {"example": event_stream(samples()["stream"])}
        return {"description": description, "content": {"text/event-stream": schema | example}}
    return {
        "description": _said_of(kind),
        "content": {"application/json": schema | _example(kind.__name__)},
    }


def event_stream(events: Iterable[Mapping[str, Any]]) -> str:
    """Events, ``{"id", "event", "data"}``, as they stand on the wire."""
    return "".join(
        f"id: {one['id']}\nevent: {one['event']}\ndata: {json.dumps(one['data'], ensure_ascii=False)}\n\n"
        for one in events
    )


@cache
def samples() -> dict[str, Any]:
    """What a stack has sent: ``stream``, how one begins; ``events``, ``bodies`` and ``errors`` by what they are."""
    read: dict[str, Any] = json.loads(_SAMPLES.read_text(encoding="utf-8"))
    return read


def _said_of(kind: type) -> str:
    """The first paragraph of its docstring, on one line."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _example(name: str) -> dict[str, Any]:
    body = samples()["bodies"].get(name)
    return {} if body is None else {"example": body}


def _refusals(codes: Iterable[str]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(STATUS_OF_CODE[code], []).append(code)
    return {
        str(status): {
            "description": "; ".join(f"`{code}`: {CODES[code]}" for code in listed),
            "content": {"application/json": _errors(listed)},
        }
        | ({"headers": dict(_RETRY_AFTER)} if status == STATUS_OF_CODE["rate_limited"] else {})
        for status, listed in sorted(by_status.items())
    }


def _errors(codes: Iterable[str]) -> dict[str, Any]:
    seen = samples()["errors"]
    examples = {code: {"value": seen[code]} for code in codes if code in seen}
    schema = {"schema": {"$ref": _REF + answers.Error.__name__}}
    return schema | ({"examples": examples} if examples else {})


def _schemas(routes: tuple[Route, ...]) -> dict[str, Any]:
    kinds = {kind for route in routes for kind in (route.body, *route.answers.values()) if kind} - {bytes}
    listed = sorted(kinds | {answers.Error, *EVENTS.values()}, key=lambda kind: kind.__name__)
    inputs: Any = [(kind, "validation", TypeAdapter(kind)) for kind in listed]
    _, document = TypeAdapter.json_schemas(inputs, ref_template=_REF + "{model}")
    schemas: dict[str, Any] = document["$defs"]
    return schemas | {answers.Event.__name__: _event_schema()}


def _event_schema() -> dict[str, Any]:
    """One of the events by its name; its data is JSON in a string, as server-sent events have it."""
    return {
        "description": "A server-sent event. Its data is a JSON object with at least `chat_id` and `at`.",
        "oneOf": [_one_event(name, kind) for name, kind in EVENTS.items()],
    }


def _one_event(name: str, kind: type) -> dict[str, Any]:
    return {
        "title": name,
        "description": _said_of(kind),
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[1-9][0-9]*$", "description": "1, 2, 3 … without gaps"},
            "event": {"const": name, "description": "Its name"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": _REF + kind.__name__},
                "description": "JSON",
            },
        },
        "required": ["id", "event", "data"],
    }


def _parameters(routes: tuple[Route, ...]) -> dict[str, Any]:
    return {name: _path_parameter(name) for route in routes for name in route.path_parameters} | {
        one.name: _parameter(one) for route in routes for one in route.parameters
    }


def _path_parameter(name: str) -> dict[str, Any]:
    description, example = PATH_PARAMETERS[name]
    schema = {"type": "string", "minLength": 1, "examples": [example]}
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": description}


def _parameter(one: Parameter[Any]) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.place,
        "required": False,
        "schema": dict(one.schema),
        "description": one.description,
    }
