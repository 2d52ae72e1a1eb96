"""The OpenAPI 3.1 document of the API, made from the routes' declarations (CONTRACT 4).

Request bodies are the models that validate requests, so they cannot drift; the tests validate every real answer
against the types of the answers.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from dualtrack.api import answers
from dualtrack.api.parameters import PATH_EXAMPLES
from dualtrack.errors import STATUS_OF_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.api.parameters import Parameter
    from dualtrack.api.route import Route

VERSION: Final = "1.0.0"
_REF: Final = "#/components/schemas/"

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
            "description": "Chats with tools and a two-track memory.",
        },
        # relative to where the document lies: the page's origin, an own domain, or the gateway's address with its stage
        "servers": [{"url": "."}],
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
        "operationId": f"{route.method}_{route.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names],
        "responses": {str(status): _answer(kind) for status, kind in route.answers.items()}
        | _refusals(route.refusals),
    }
    if route.body:
        schema = {"$ref": _REF + route.body.__name__}
        needed = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    return operation | ({"security": []} if route.access == "open" else {})


def _answer(kind: type | None) -> dict[str, Any]:
    if kind is None:
        return {"description": "Done"}
    if kind is bytes:
        description = "The file from offset on, at most 4 MB of it, with its own type. Send Accept: application/octet-stream"
        return {"description": description, "content": {"*/*": {}}}
    schema = {"schema": {"$ref": _REF + kind.__name__}}
    if kind is answers.Event:
        description = (
            "Server-sent events, each like this. A user can have five streams open; the server closes one "
            "after 60 to 120 s, and the client resumes with Last-Event-ID"
        )
        return {"description": description, "content": {"text/event-stream": schema}}
    return {"description": kind.__name__, "content": {"application/json": schema}}


def _refusals(codes: Iterable[str]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(STATUS_OF_CODE[code], []).append(code)
    content = {"application/json": {"schema": {"$ref": _REF + answers.Error.__name__}}}
    return {
        str(status): {"description": " or ".join(listed), "content": content}
        | ({"headers": dict(_RETRY_AFTER)} if status == STATUS_OF_CODE["rate_limited"] else {})
        for status, listed in sorted(by_status.items())
    }


def _schemas(routes: tuple[Route, ...]) -> dict[str, Any]:
    kinds = {kind for route in routes for kind in (route.body, *route.answers.values()) if kind} - {bytes}
    listed = sorted(kinds | {answers.Error}, key=lambda kind: kind.__name__)
    inputs: Any = [(kind, "validation", TypeAdapter(kind)) for kind in listed]
    _, document = TypeAdapter.json_schemas(inputs, ref_template=_REF + "{model}")
    schemas: dict[str, Any] = document["$defs"]
    return schemas


def _parameters(routes: tuple[Route, ...]) -> dict[str, Any]:
    return {name: _path_parameter(name) for route in routes for name in route.path_parameters} | {
        one.name: _parameter(one) for route in routes for one in route.parameters
    }


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "examples": [PATH_EXAMPLES[name]]}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameter(one: Parameter[Any]) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.place,
        "required": False,
        "schema": dict(one.schema),
        "description": one.description,
    }
