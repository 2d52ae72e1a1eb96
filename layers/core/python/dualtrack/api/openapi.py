"""The OpenAPI 3.1 document of the API, generated from the routes' declarations (CONTRACT 4).

Request bodies are the models that validate requests, answers the types that they are built as. The examples are real
answers of a stack (``samples.json``, which tests/e2e/test_api_samples.py writes and checks).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import TypeAdapter

from dualtrack import __version__, answers
from dualtrack.api.parameters import PATH_PARAMETERS
from dualtrack.api.request import Request
from dualtrack.api.schemas import REF, DocumentPart, description_of, object_schema, schemas_of
from dualtrack.errors import STATUS_OF_CODE
from dualtrack.event_data import EVENTS, EventData
from dualtrack.plugin import FOLDER, id_forms, parts, plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from dualtrack.api.parameters import QueryParameter
    from dualtrack.api.route import Route

_SAMPLES: Final = Path(__file__).with_name("samples.json")

DESCRIPTION: Final = """\
Chats with tools and a two-track memory.

Every call under `/v1` needs `Authorization: Bearer <ID token>`, whose `sub` is the user, or an API key `dt_…` with the
scope that the operation names. Without CloudFront keys call below `/key`: `/key/v1/chats`. A body with unknown fields
is refused. Times are ISO 8601 in UTC. A list has a `cursor` if there is more; send it as `?cursor=`. Every error
is `{"error": {"code", "message"}}`, some with more fields. Clients should ignore fields, events and error codes that
they do not know."""

TAGS: Final = (
    ("Chats", "/v1/chats", "Start, follow, read and cancel chats, with receipts"),
    ("Uploads", "/v1/uploads", "Large files for messages"),
    ("Conversations", "/v1/conversations", "Find, read, rename, fork and delete"),
    ("Tools", "/v1/tools", "What agents can call, and at what price"),
    ("Credits", "/v1/credits", "The balance and its changes"),
    ("Pauses", "/v1/pauses", "Chats that wait for decisions"),
    ("Connections", "/v1/connections", "The user's accounts at other services"),
    ("Keys", "/v1/keys", "API keys of the user, for programs"),
    ("Account", "/v1/me", "Erase the user's account, or an end user of their service"),
    ("Users", "/v1/admin/users", "For administrators: plans, grants, spending, erasure"),
    ("Corpora", "/v1/admin/corpora", "For administrators: the data that agents search"),
    ("Service", "/", "Open to everyone"),
)
"""Name, path prefix and description; a route has the first tag whose prefix matches."""

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "invalid_request": "the request is not as described; the message names the first thing that is wrong",
        "unauthorized": "there is no valid ID token or API key, or its user was erased",
        "insufficient_credits": "a chat needs 5 available credits; has `required`, `available`, `resets_at` and "
        "`upgrade`",
        "key_cap_reached": "the chat does not fit a cap of the API key; has `cap`, its name, and `limit`, `used`, `held`, "
        "`required` and `resets_at`",
        "forbidden": "only administrators may do this, or the API key may not; then it has the `scope` that is missing",
        "not_found": "it does not exist, or it belongs to another user",
        "conversation_busy": "a chat is running in the conversation: wait for its `answer`, or cancel it",
        "conversation_paused": "a chat of the conversation waits for decisions: decide, or cancel it, also with "
        "`on_pause`; has `chat_id` and `url`",
        "nothing_to_continue": "the conversation's last answer was not cut off at its limit of tokens",
        "upload_missing": "nothing was put to the upload's address yet",
        "name_taken": "there is one of this name already",
        "upload_used": "the upload is part of another message already",
        "already_decided": "the call was decided in another way",
        "not_paused": "the chat waits for no decision",
        "expired": "nobody decided in time, or the upload was not used within an hour",
        "idempotency_conflict": "the Idempotency-Key was used with another body in the last 24 hours",
        "too_large": "the request is over 6 MB with its escapes, or its files are over 4 MB in total, uploaded ones over 50 MB",
        "rate_limited": "too many requests, streams or chats at a time; has `retry_after`",
        "internal": "an error on the server",
        "unavailable": "a service that is needed cannot be reached; try again",
        "timeout": "the request took too long; try again",
    }
)
"""The meaning of each error code."""

_RETRY_AFTER: Final = MappingProxyType(
    {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}}
)


@cache
def openapi_document(routes: tuple[Route, ...]) -> answers.OpenAPI:
    """The whole document."""
    paths: dict[str, dict[str, DocumentPart]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dualtrack",
            "version": __version__,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # relative to the document: the page's origin, a custom domain, or the gateway's address with its stage
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
                },
                "apiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "dt_…",
                    "description": "API key of a user. One of a service also sends the header X-Dualtrack-User",
                },
            },
        },
        "security": [{"idToken": []}],
    }


def answers_of(route: Route) -> dict[int, type]:
    """The type of the body by status, as the function that serves the route declares it; NoneType for no body."""
    if route.serve is None:
        return {200: answers.Event}
    known = {"answers": answers, "Request": Request, **_types_beside(route.serve)}
    declared = get_type_hints(route.serve, localns=known)["return"]
    kinds = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    return {(get_origin(kind) or kind).status: next(iter(get_args(kind)), NoneType) for kind in kinds}


def _types_beside(serve: Callable[..., object]) -> dict[str, ModuleType]:
    """The module ``types`` of the plug-in that a route is of, which loads it for this document alone."""
    plugin = serve.__module__.rpartition(".")[0]
    found = next((module for module in parts("types") if module.__package__ == plugin), None)
    return {"types": found} if found else {}


def _operation(route: Route) -> DocumentPart:
    names = (*route.path_parameters, *(parameter.name for parameter in route.parameters))
    operation = {
        "summary": route.summary,
        "description": route.description,
        "tags": [next(name for name, begins, _ in TAGS if route.path.startswith(begins))],
        "operationId": f"{route.method}_{route.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names],
        "responses": {str(status): _answer(kind) for status, kind in answers_of(route).items()}
        | _refusals(route.refusals),
    }
    if route.body:
        schema = {"$ref": REF + route.body.__name__}
        needed = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {
            "required": needed,
            "description": description_of(route.body),
            "content": {"application/json": {"schema": schema, **_example(route.body.__name__)}},
        }
    return operation | _security(route)


def _security(route: Route) -> DocumentPart:
    """A token, or a key with one of the scopes; nothing for an open route, and the document's own for tokens alone."""
    if route.access == "open":
        return {"security": []}
    keys = [{"apiKey": [scope]} for scope in route.scopes]
    return {"security": [{"idToken": []}, *keys]} if keys else {}


def bodies_of(kind: type) -> tuple[type, ...]:
    """The types of a body that has one of several."""
    return get_args(kind) or (kind,)


def _answer(kind: type) -> DocumentPart:
    first, *others = bodies_of(kind)
    if kind is NoneType:
        return {"description": "Done; no content"}
    if kind is bytes:
        description = "At most 4 MB of the file from offset on, with its own type. Send Accept: application/octet-stream"
        return {"description": description, "content": {"*/*": {}}}
    refs = [{"$ref": REF + one.__name__} for one in (first, *others)]
    schema = {"schema": {"anyOf": refs} if others else refs[0]}
    if kind is answers.Event:
        description = (
            "Server-sent events. A user can have five open streams; the server closes each after 60 to 120 s, and "
            "the client resumes with Last-Event-ID"
        )
        example = {"example": event_stream(samples()["stream"])}
        return {"description": description, "content": {"text/event-stream": schema | example}}
    return {
        "description": description_of(first),
        "content": {"application/json": schema | _example(first.__name__)},
    }


def event_stream(events: Iterable[Mapping[str, Any]]) -> str:
    """Events, ``{"id", "event", "data"}``, in the form on the wire."""
    return "".join(
        f"id: {event['id']}\nevent: {event['event']}\ndata: {json.dumps(event['data'], ensure_ascii=False)}\n\n"
        for event in events
    )


@cache
def samples() -> DocumentPart:
    """Real answers of a stack: the beginning of a ``stream``, and ``events``, ``bodies`` and ``errors`` by kind. A
    plug-in has its own ``bodies``."""
    read: DocumentPart = json.loads(_SAMPLES.read_text(encoding="utf-8"))
    for path in FOLDER.glob(f"*/{_SAMPLES.name}"):
        read["bodies"] |= json.loads(path.read_text(encoding="utf-8"))["bodies"]
    return read


def _example(name: str) -> DocumentPart:
    body = samples()["bodies"].get(name)
    return {} if body is None else {"example": body}


def _refusals(codes: Iterable[str]) -> DocumentPart:
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


def _errors(codes: Iterable[str]) -> DocumentPart:
    seen = samples()["errors"]
    examples = {code: {"value": seen[code]} for code in codes if code in seen}
    schema = {"schema": {"$ref": REF + answers.Error.__name__}}
    return schema | ({"examples": examples} if examples else {})


def _schemas(routes: tuple[Route, ...]) -> DocumentPart:
    bodies: Any = [
        (body, "validation", TypeAdapter(body)) for body in {route.body for route in routes} if body
    ]
    _, document = TypeAdapter.json_schemas(bodies, ref_template=REF + "{model}")
    bodies_said = {
        body for route in routes for kind in answers_of(route).values() for body in bodies_of(kind)
    }
    answered = {body for body in bodies_said if is_typeddict(body)}
    events = {kind.__name__: object_schema(EventData, kind) for kind in EVENTS.values()}
    schemas = document["$defs"] | schemas_of({answers.Error, *answered, *EVENTS.values()}) | events
    for name, kind in ((name, kind) for plugin in plugins() for name, kind in plugin.facets.items()):
        added = object_schema(kind, getattr(answers, name))
        schemas[name] = {**added, "properties": schemas[name]["properties"] | added["properties"]}
    return dict(sorted((schemas | {answers.Event.__name__: _event_schema()}).items()))


def _event_schema() -> DocumentPart:
    """An event by its name; its data is JSON in a string, as in server-sent events."""
    return {
        "description": "A server-sent event. Its data is a JSON object with at least `chat_id` and `at`.",
        "oneOf": [_schema_of_event(name, kind) for name, kind in EVENTS.items()],
    }


def _schema_of_event(name: str, kind: type) -> DocumentPart:
    return {
        "title": name,
        "description": description_of(kind),
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[1-9][0-9]*$", "description": "1, 2, 3 … without gaps"},
            "event": {"const": name, "description": "Its name"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": REF + kind.__name__},
                "description": "JSON",
            },
        },
        "required": ["id", "event", "data"],
    }


def _parameters(routes: tuple[Route, ...]) -> DocumentPart:
    return {name: _path_parameter(name) for route in routes for name in route.path_parameters} | {
        parameter.name: _parameter(parameter) for route in routes for parameter in route.parameters
    }


def _path_parameter(name: str) -> DocumentPart:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "examples": ["courses"]}
    form = id_forms().get(name)
    if form:
        schema |= {"pattern": f"^(?:{form.pattern})$", "examples": [form.example]}
    described = PATH_PARAMETERS.get(name) or (form.about if form else "")
    about = {"required": True, "schema": schema, "description": described}
    return {"name": name, "in": "path", **about}


def _parameter(parameter: QueryParameter[Any]) -> DocumentPart:
    return {
        "name": parameter.name,
        "in": parameter.location,
        "required": False,
        "schema": dict(parameter.schema),
        "description": parameter.description,
    }
